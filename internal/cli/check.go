package cli

import (
	"github.com/spf13/cobra"
)

const checkLong = `Look at everything that a launch in this folder needs, and say what is missing
and what to do about it. Nothing is changed, and no agent is run.

The exit status is 0 when a launch would start, else 125.`

func newCheckCommand(sys System) *cobra.Command {
	var (
		o      *options
		format string
	)
	c := &cobra.Command{
		Use:   "check [flags]",
		Short: "Check what a launch needs, and say what to do about it",
		Long:  checkLong,
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return checkLaunch(sys, *o, format) },
	}
	o = addLaunchFlags(c.Flags(), append([]string{"yes"}, planFlags...))
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

// checkLaunch looks at what a launch needs. It changes nothing.
func checkLaunch(sys System, o options, _ string) error {
	s, err := prepare(sys, o, purpose{look: true})
	if err != nil {
		return err
	}
	return s.close()
}
