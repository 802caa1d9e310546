package cli

import (
	"github.com/spf13/cobra"
)

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
			return runLaunch(sys, *o, words)
		},
	}
	c.Flags().SetInterspersed(false)
	o = addLaunchFlags(c.Flags(), shellFlags...)
	return c
}
