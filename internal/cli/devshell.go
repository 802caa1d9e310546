package cli

import (
	"io"

	"github.com/spf13/cobra"

	"claudebox/internal/session"
	"claudebox/internal/session/planning"
)

const devshellLong = `What the project's dev shell gives the agent, what named it, how old it is,
what it does not bring in, and what Nix and its hook said at last. It is
evaluated inside the sandbox, when a session starts and a file that it depends
on has changed.`

// newDevshellCommand makes the command that shows the project's dev shell.
func newDevshellCommand(sys System) *cobra.Command {
	var o *options
	var refresh bool
	c := &cobra.Command{
		Use: "devshell", Short: "Show what the project's dev shell gives the agent", Long: devshellLong, Args: noWords,
		RunE: func(*cobra.Command, []string) error {
			if refresh {
				again := *o
				again.Refresh, again.NoReport = true, true
				if err := runLaunch(sys, again, []string{"true"}); err != nil {
					return err
				}
			}
			look := planning.Purpose{Look: true, Dry: true, Command: []string{"true"}}
			s, err := session.Prepare(sys.Caller(), o.Options, look)
			if err != nil {
				return err
			}
			defer s.Close()
			_, err = io.WriteString(sys.Stdout, s.Devshell())
			return err
		},
	}
	o = addLaunchFlags(c.Flags(), append([]string{"yes"}, planFlags...)...)
	c.Flags().BoolVar(&refresh, "refresh", false, "evaluate it again, in the sandbox, first")
	return c
}
