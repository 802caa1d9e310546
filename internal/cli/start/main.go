package start

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"syscall"

	"claudebox/internal/agent"
	"claudebox/internal/diag"
	"claudebox/internal/linux/timerslack"
	"claudebox/internal/nix/inside"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/storetree"
	"claudebox/internal/session"
)

// Exit statuses that are claudebox's own, as timeout(1) and env(1) use them.
// Any other status is the agent's.
const (
	exitRefused  = 125 // claudebox refused or failed
	exitCannot   = 126 // the agent was found but cannot be run
	exitNotFound = 127 // the agent was not found
)

// Commands are claudebox's commands. A first word that is exactly one of them is
// claudebox's; anything else is the agent's.
var Commands = []string{
	"plan", "check", "shell", "profile", "allow", "instance", "deny", "why", "version",
	"help", "completion", "__complete", "__completeNoDesc",
}

// Main runs claudebox with all its words, its name being the first, and returns
// its exit status. run is given the others.
func Main(words []string, sys System, run func(args []string, sys System) error) int {
	if status, ran := storetree.Run(words); ran {
		return status
	}
	if status, ran := inside.Run(words); ran {
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

// ByPlan launches by a plan that there is. For everything else the whole program
// takes this one's place. Who changes the profile while he is asked is asked
// again by that one.
func ByPlan(args []string, sys System) error {
	if len(args) > 0 && slices.Contains(Commands, args[0]) {
		return sys.become()
	}
	o, err := Split(args)
	switch {
	case err != nil:
		return err
	case o.Check || o.Help || o.Version:
		return sys.become()
	}
	if err = Launch(sys, o, nil); errors.Is(err, session.ErrNoPlan) {
		return sys.become()
	}
	return err
}

// become replaces this process by the whole program, with the same words. It
// returns only when it cannot. Package syscall gives the limit of open files
// back that it raised.
func (sys System) become() error {
	runtime.LockOSThread()
	timerslack.Restore()
	err := syscall.Exec(sys.Whole, os.Args, os.Environ())
	return &diag.Error{
		Op: "start " + sys.Whole, Err: err,
		Remedy: "install claudebox whole, or build what is missing: go build -o " + sys.Whole + " ./cmd/claudebox-full",
	}
}
