package cli

import (
	"errors"

	"claudebox/internal/agent"
	"claudebox/internal/diag"
	"claudebox/internal/nix/inside"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/storetree"
	"claudebox/internal/ui/attack"
)

// Exit statuses that are claudebox's own, as timeout(1) and env(1) use them.
// Any other status is the agent's.
const (
	exitRefused  = 125 // claudebox refused or failed
	exitCannot   = 126 // the agent was found but cannot be run
	exitNotFound = 127 // the agent was not found
)

// Main runs claudebox with all its words, its name being the first, and returns
// its exit status.
func Main(words []string, sys System) int {
	if status, ran := storetree.Run(words); ran {
		return status
	}
	if status, ran := inside.Run(words); ran {
		return status
	}
	if status, ran := attack.Run(words); ran {
		return status
	}
	err := closeInherited()
	if err == nil {
		err = run(words[1:], sys)
	}
	var agent *launch.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &agent):
		return agent.Code
	}
	diag.Print(sys.Stderr, err)
	return exitCode(err)
}

// run runs a command, or launches the agent.
func run(args []string, sys System) error {
	words, near := findCommand(args)
	if near != "" {
		var err error
		if words, err = meant(args, near); err != nil {
			return err
		}
	}
	if words != nil {
		return runCommand(words, sys)
	}
	o, err := split(args)
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
	return runLaunch(sys, o, nil)
}

// exitCode maps claudebox's own failures.
func exitCode(err error) int {
	switch {
	case errors.Is(err, agent.ErrNotFound):
		return exitNotFound
	case errors.Is(err, agent.ErrNotExecutable):
		return exitCannot
	}
	return exitRefused
}
