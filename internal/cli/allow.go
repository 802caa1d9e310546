package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/session"
)

const allowLong = `A project can bring a profile of its own, the file .claudebox.yaml at its root.
What it takes away from your profile counts at once. What it adds counts when
you have allowed it: exactly this content, here, over what you were shown. Any
change asks again.`

func newAllowCommand(sys System) *cobra.Command {
	var o session.Options
	c := &cobra.Command{
		Use:   "allow",
		Short: "Show what this project's .claudebox.yaml asks for, and allow it",
		Long:  allowLong,
		Args:  noWords,
		RunE:  func(*cobra.Command, []string) error { return allow(sys, o) },
	}
	addProfileFlag(c, &o)
	c.Flags().StringVar(&o.Network, "network", "", "judge it for launches with this `TIER`")
	c.Flags().BoolVarP(&o.Yes, "yes", "y", false, "allow without asking")
	return c
}

// addProfileFlag is for the profile that a project's own is laid over.
func addProfileFlag(c *cobra.Command, o *session.Options) {
	c.Flags().StringVarP(&o.Profile, "profile", "P", "", "profile that it is laid over, a `NAME|FILE`")
}

func newDenyCommand(sys System) *cobra.Command {
	var o session.Options
	c := &cobra.Command{
		Use:   "deny",
		Short: "Leave this project's .claudebox.yaml out as it stands",
		Long:  allowLong + "\n\nA file that is denied does not count at all, nor does what it takes away.",
		Args:  noWords,
		RunE:  func(*cobra.Command, []string) error { return deny(sys, o) },
	}
	addProfileFlag(c, &o)
	return c
}

func allow(sys System, o session.Options) error {
	asked, warnings, err := session.ProjectFile(sys.Caller(), o, false)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		diag.Warn(sys.Stderr, w)
	}
	if len(asked.Widens) > 0 {
		showAsked(sys, asked)
		if err := confirmed(o.Yes, "Allow exactly this?"); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(sys.Stderr, "%s asks for no more than your profile grants.\n", diag.Visible(asked.File.Path))
	}
	if err := asked.Judge(true); err != nil {
		return err
	}
	_, err = fmt.Fprintf(sys.Stdout, "allowed: %s\n", diag.Visible(asked.File.Path))
	return err
}

func confirmed(yes bool, question string) error {
	if yes {
		return nil
	}
	return confirm(question, "look at the list, then pass `--yes`")
}

// showAsked lists what a project's profile would widen, one a line.
func showAsked(sys System, asked session.Asked) {
	fmt.Fprintf(sys.Stderr, "%s would widen the sandbox:\n", diag.Visible(asked.File.Path))
	for _, w := range asked.Widens {
		for i, line := range layout.Wrap(diag.Visible(strings.TrimSpace(w.What+"  "+string(w.Origin))), 76) {
			fmt.Fprintf(sys.Stderr, "%s%s\n", []string{"  + ", "    "}[min(i, 1)], line)
		}
	}
}

func deny(sys System, o session.Options) error {
	asked, _, err := session.ProjectFile(sys.Caller(), o, true)
	if err != nil {
		return err
	}
	if err := asked.Judge(false); err != nil {
		return err
	}
	_, err = fmt.Fprintf(sys.Stdout, "denied: %s\n", diag.Visible(asked.File.Path))
	return err
}
