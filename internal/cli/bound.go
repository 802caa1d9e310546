package cli

import (
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session"
)

// Bound is the launch that a call of claudebox with these words would run. It
// changes nothing, and is there for measurements.
func Bound(args []string, sys System) (launch.Launch, error) {
	o, err := split(args)
	if err != nil {
		return launch.Launch{}, err
	}
	s, err := session.Prepare(sys.Caller(), o.Options, session.Purpose{Look: true})
	if err != nil {
		return launch.Launch{}, err
	}
	return s.Launch, s.Close()
}
