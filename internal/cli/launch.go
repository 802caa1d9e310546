package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"claudebox/internal/audit"
	"claudebox/internal/launch"
)

// launchAgent is what `claudebox` without a command does.
func launchAgent(sys System, o options) error {
	if o.check {
		return checkLaunch(sys, o, "text")
	}
	return start(sys, o, nil)
}

// start prepares a session, shows what will enter, asks, and runs it. A dry
// run stops after showing.
func start(sys System, o options, command []string) error {
	s, err := prepare(sys, o, purpose{look: o.dryRun, dry: o.dryRun, command: command})
	if err != nil {
		return err
	}
	defer s.close()
	if o.dryRun {
		return s.show(sys)
	}
	if err := launch.CheckBwrap(s.launch.Bwrap); err != nil {
		return err
	}
	if err := s.ask(sys, o); err != nil {
		return err
	}
	return s.run()
}

// run makes what the launch needs on the host, and takes it away again.
func (s *session) run() error {
	if err := s.instance.Prepare(); err != nil {
		return err
	}
	hold, err := s.project.Hold()
	if err != nil {
		return err
	}
	defer hold.Release()
	restore, err := copyInput()
	if err != nil {
		return err
	}
	defer restore()
	s.launch.Outlive = s.project.Holds() || s.launch.Plan.State == "ephemeral"
	return s.launch.Run()
}

// show prints the very launch: for people on standard error, the words on
// standard output.
func (s session) show(sys System) error {
	argv, err := s.launch.Argv()
	if err != nil {
		return err
	}
	fmt.Fprintln(sys.Stderr, s.view(sys.Stderr).Text(s.launch))
	_, err = fmt.Fprint(sys.Stdout, argv)
	return err
}

// ask shows what will enter and has the user confirm it, unless a flag or the
// profile say that he need not. What he approved is kept, so that the next
// audit can say what has changed since.
func (s session) ask(sys System, o options) error {
	if o.yes || s.launch.Plan.Confirm == "never" {
		return nil
	}
	lines := audit.Lines(s.launch)
	approved := s.instance.Approved()
	if s.launch.Plan.Confirm == "changed" && slices.Equal(lines, approved) {
		return nil
	}
	view := s.view(sys.Stderr)
	text := view.Text(s.launch)
	if diff := audit.Difference(approved, lines); len(approved) > 0 && len(diff) > 0 {
		text += view.Changes(diff)
	}
	fmt.Fprintln(sys.Stderr, text)
	if err := confirm("Start?"); err != nil {
		return err
	}
	s.instance.Approve(lines)
	return nil
}

// newShellCommand runs something else in the very sandbox of a launch.
func newShellCommand(sys System) *cobra.Command {
	var o *options
	c := &cobra.Command{
		Use:   "shell [flags] [-- command…]",
		Short: "The same sandbox with a shell, or a command, instead of the agent",
		RunE: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 {
				words = []string{"bash"}
			}
			return start(sys, *o, words)
		},
	}
	c.Flags().SetInterspersed(false)
	o = addLaunchFlags(c.Flags(), shellFlags)
	return c
}
