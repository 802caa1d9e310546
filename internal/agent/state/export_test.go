package state

import "claudebox/internal/linux/beneath"

// OpenThen does what [Instance.Prepare] does with an instance that exists, and
// something else before it is locked. It reports whether the instance is held.
func (in *Instance) OpenThen(do func()) (held bool, err error) {
	if in.open, err = beneath.Open(in.Dir); err != nil {
		return false, err
	}
	do()
	return in.lock()
}

// FindThen does what [Look] does, and something else before it looks into the
// folder that it has found.
func (in *Instance) FindThen(do func()) error {
	dir, _, err := in.find()
	if err != nil {
		return err
	}
	do()
	in.draft, err = lookInto(in.place, dir)
	return err
}
