package cli

import (
	"claudebox/internal/cli/start"
	"claudebox/internal/profile/syntax"
)

// System is what the command line is connected to.
type System = start.System

// Main runs the whole of claudebox with all its words, its name being the
// first, and returns its exit status.
func Main(words []string, sys System) int {
	sys.Parser = syntax.Parse
	return start.Main(words, sys, run)
}

func run(args []string, sys System) error {
	if len(args) > 0 && isCommand(args[0]) {
		return runCommand(args, sys)
	}
	o, err := start.Split(args)
	if err != nil {
		return err
	}
	switch {
	case o.Help:
		return runCommand([]string{"help"}, sys)
	case o.Version:
		return runCommand([]string{"version"}, sys)
	case o.Check:
		return checkLaunch(sys, o, "text")
	}
	return start.Launch(sys, o, nil)
}
