package login

import "claudebox/internal/linux/beneath"

// reading is what was found of one file.
type reading struct {
	login
	there   bool  // it has a login, if one that has ended
	fault   error // it is there and cannot be used
	content []byte
	stamp   beneath.Stamp
}

// step is what brings the user's login and the agent's copy together.
type step int

const (
	rest   step = iota // as they are
	agree              // they are equal: remember that
	give               // the user's goes inside
	take               // the agent's goes to the user
	refuse             // the agent's is another account's: it stays inside, and is the agent's own now
)

// moment is when a decision is made.
type moment int

const (
	running  moment = iota
	atLaunch        // what has ended inside may be tried once more
)

// decide compares both with base, the sum of the login that both had last;
// empty when the agent's is its own, from a login inside. same reports whether
// both files belong to one account; it is asked only when that matters.
func decide(host, inside reading, base string, when moment, same func() bool) step {
	insideNew := inside.good() && inside.refresh != "" && inside.sum() != base
	switch {
	case !host.there:
		return rest // nobody is logged in, or not as we know it: a logout is not undone
	case !host.good():
		// Claude Code outside was refused. Was it with what the one inside has used?
		if base == "" || !insideNew || !same() {
			return rest
		}
		return take
	case inside.sum() == host.sum():
		return agree
	case !inside.good() || inside.refresh == "":
		if when == running && base == host.sum() {
			return rest // it could not be renewed, and we have no other
		}
		return give
	case base == "":
		return rest // a login made inside
	case !insideNew:
		return give
	case base != host.sum():
		return give // both are new: the user's word counts
	case !same():
		return refuse
	}
	return take
}
