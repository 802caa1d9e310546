package cli

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
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
	o = addLaunchFlags(c.Flags(), slices.Concat([]string{"yes"}, planFlags))
	c.Flags().BoolVar(&attacked, "attack", false, "attack a sandbox from inside")
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

// checkFormats render findings; view is of the stream they go to.
var checkFormats = map[string]func([]doctor.Finding, doctor.View) (string, error){
	"text": func(list []doctor.Finding, v doctor.View) (string, error) { return v.Text(list), nil },
	"json": func(list []doctor.Finding, _ doctor.View) (string, error) { return jsonText(list) },
}

// checkLaunch looks at everything that a launch with these options needs, and
// prints what it finds. It changes nothing. Its error is that a launch would
// not start.
func checkLaunch(sys System, o options, format string) error {
	render, ok := checkFormats[format]
	if !ok {
		return diag.Errorf("print the findings", "use text or json", "there is no format %q", format)
	}
	c := session.Check(sys.Caller(), o.Options)
	v := viewOn(sys.Stdout, c.Facts())
	if err := printFindings(sys, c.Findings, doctor.View{Home: v.Home, Width: v.Width, Colour: v.Colour},
		render); err != nil {
		return err
	}
	if failed := doctor.Count(c.Findings, doctor.Failed); failed > 0 {
		return diag.Errorf("check what a launch needs", "", "%d of %d checks failed", failed, len(c.Findings))
	}
	return nil
}

func printFindings(sys System, list []doctor.Finding, v doctor.View,
	render func([]doctor.Finding, doctor.View) (string, error),
) error {
	text, err := render(list, v)
	if err == nil {
		_, err = io.WriteString(sys.Stdout, text)
	}
	return err
}
