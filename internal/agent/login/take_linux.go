package login

import (
	"context"
	"errors"
	"path/filepath"

	"claudebox/internal/agent/object"
	"claudebox/internal/linux/beneath"
)

// Take moves the login that was made inside from an instance's folder to the user's credentials file, whose login it
// replaces. It holds Claude Code's locks while it writes.
func Take(instance, usersFile string) error {
	own, err := beneath.Open(instance)
	if err != nil {
		return err
	}
	defer own.Close()
	made := (&file{own, MadeName}).read() // it is only ever replaced whole, so this needs no lock
	switch {
	case made.fault != nil:
		return made.fault
	case !made.good():
		return errNoneMade
	}
	dir, err := beneath.Open(filepath.Dir(usersFile))
	if err != nil {
		return err
	}
	defer dir.Close()
	to := &file{dir, filepath.Base(usersFile)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return whileRenewing(ctx, to, func() error {
		found := to.read()
		all := object.Of(found.content)
		if len(found.content) > 0 && object.Parse(found.content) == nil {
			return errNotJSON
		}
		all[loginKey] = object.Of(made.content)[loginKey]
		write := func() error { return dir.Replace(to.name, object.Encode(all), privateFile) }
		if err := whileWriting(dir, patience, write); err != nil {
			return err
		}
		return own.Remove(MadeName)
	})
}

var errNoneMade = errors.New("no login was made inside")
