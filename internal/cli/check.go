package cli

import (
	"io"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/session"
	"claudebox/internal/ui/doctor"
)

const checkLong = `Look at everything that a launch in this folder needs, and say what is missing
and what to do about it. Nothing is changed, and no agent is run.

With --attack a sandbox of the profile is started around a project that is made
for it, and our own program tries from inside what is known to have worked
against such sandboxes: a line for each, red where it got something. Nothing but
this machine is contacted.

Format json is an array of {name, level, detail, remedy}; the level is ok, info,
warning or failed. The exit status is 0 when nothing failed, else 125.`

func newCheckCommand(sys System) *cobra.Command {
	var (
		o        *options
		format   string
		attacked bool
	)
	c := &cobra.Command{
		Use:   "check [flags]",
		Short: "Check what a launch needs, and say what to do about it",
		Long:  checkLong,
		Args:  noWords,
		RunE: func(*cobra.Command, []string) error {
			if attacked {
				return checkAttacks(sys, *o, format)
			}
			return checkLaunch(sys, *o, format)
		},
	}
	o = addLaunchFlags(c.Flags(), append([]string{"yes"}, planFlags...)...)
	c.Flags().BoolVar(&attacked, "attack", false, "attack a sandbox from inside")
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

// checkLaunch looks at everything that a launch with these options needs, and
// prints what it finds. It changes nothing. Its error is that a launch would
// not start.
func checkLaunch(sys System, o options, format string) error {
	if err := knownFormat(format); err != nil {
		return err
	}
	c := session.Check(sys.Caller(), o.Options)
	if err := printFindings(sys, c.Facts, c.Findings, format); err != nil {
		return err
	}
	if failed := doctor.Count(c.Findings, doctor.Failed); failed > 0 {
		return diag.Errorf("check what a launch needs", "", "%d of %d checks failed", failed, len(c.Findings))
	}
	return nil
}

func knownFormat(format string) error {
	if format != "text" && format != "json" {
		return diag.Errorf("print the findings", "use text or json", "there is no format %q", format)
	}
	return nil
}

func printFindings(sys System, facts host.Facts, list []doctor.Finding, format string) error {
	if format == "json" {
		return printJSON(sys, list)
	}
	_, err := io.WriteString(sys.Stdout, doctor.Text(viewOn(sys.Stdout, facts).View, list))
	return err
}
