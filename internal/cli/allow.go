package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/session"
)

const allowLong = `A project can bring a profile of its own, the file .claudebox.yaml or
.claudebox.yml at its root, or .claudebox/tools.txt, which lists packages.
What it takes away from your profile counts at once. What it adds counts when
you have allowed it. You allow exactly this content, in this folder, over the
profile that you were shown: after any change of these you are asked again.`

func newAllowCommand(sys System) *cobra.Command {
	var o session.Options
	c := sys.prints("allow", "Show what this project's own profile asks for, and allow it", allowLong, noWords,
		func([]string) (string, error) { return allow(sys, o) })
	c.Flags().StringVarP(&o.Profile, "profile", "P", "", "profile that it is laid over, a `NAME|FILE`")
	c.Flags().StringVar(&o.Network, "network", "", "judge it for launches with this `TIER`")
	c.Flags().BoolVarP(&o.Yes, "yes", "y", false, "allow without asking")
	return c
}

func newDenyCommand(sys System) *cobra.Command {
	var o session.Options
	const more = "\n\nA file that is denied does not count at all, nor does what it takes away."
	c := sys.prints("deny", "Leave this project's own profile out as it stands", allowLong+more, noWords,
		func([]string) (string, error) {
			const unread = true // it may be faulty
			asked, _, err := session.ProjectFile(sys.Caller(), o, unread)
			if err == nil && asked.Denied() {
				return "denied before: " + diag.Name(asked.File.Path) + "\n", nil
			}
			if err == nil {
				err = asked.KeepVerdict(false)
			}
			return "denied: " + diag.Name(asked.File.Path) + "\n", err
		})
	c.Flags().StringVarP(&o.Profile, "profile", "P", "", "profile that it is laid over, a `NAME|FILE`")
	return c
}

func allow(sys System, o session.Options) (said string, err error) {
	asked, warnings, err := session.ProjectFile(sys.Caller(), o, false)
	if err != nil {
		return "", err
	}
	diag.Warn(sys.Stderr, warnings...)
	if len(asked.Widens) > 0 {
		showAsked(sys, asked)
		if err := confirmed(o.Yes, "Allow exactly this?"); err != nil {
			return "", err
		}
	} else {
		fmt.Fprintf(sys.Stderr, "%s asks for no more than your profile grants.\n", diag.Name(asked.File.Path))
	}
	return "allowed: " + diag.Name(asked.File.Path) + "\n", asked.KeepVerdict(true)
}

func confirmed(yes bool, question string) error {
	if yes {
		return nil
	}
	return confirm(question, "look at the list, then pass `--yes`")
}

// showAsked lists what a project's profile would widen, one a line.
func showAsked(sys System, asked session.Asked) {
	fmt.Fprintf(sys.Stderr, "%s would widen the sandbox:\n", diag.Name(asked.File.Path))
	for _, w := range asked.Widens {
		mark := "  + "
		for _, line := range layout.Wrap(diag.Visible(strings.TrimSpace(w.String()+"  "+w.After.Why)), 76) {
			fmt.Fprintf(sys.Stderr, "%s%s\n", mark, line)
			mark = "    "
		}
	}
}

const allowHostLong = `Add hosts to the list of your own profile, whose network has the tier allow.
With --refused they are those that the last session here was refused, for you
to look through: the agent chose what it asked for. You are asked before
anything is written, and the hosts count from the next launch.`

const allowHostExample = `  claudebox allow-host registry.npmjs.org
  claudebox allow-host -P work git.example.org:22
  claudebox allow-host --refused`

func newAllowHostCommand(sys System) *cobra.Command {
	var o session.Options
	var refused bool
	words := func(c *cobra.Command, hosts []string) error {
		if named := len(hosts) > 0; named == refused { // both, or neither
			return misused(c, "%s takes hosts, or --refused", c.CommandPath())
		}
		return nil
	}
	c := sys.prints("allow-host HOST[:PORT]… | --refused", "Add hosts to the list of your profile", allowHostLong,
		words, func(hosts []string) (string, error) { return allowHosts(sys, o, hosts) })
	c.Example = allowHostExample
	c.Flags().StringVarP(&o.Profile, "profile", "P", "", "profile that they are added to, a `NAME|FILE`")
	c.Flags().BoolVar(&refused, "refused", false, "those that the last session here was refused")
	c.Flags().BoolVarP(&o.Yes, "yes", "y", false, "add without asking")
	return c
}

// allowHosts adds hosts to the user's profile; if there are none, those that the last session here was refused.
func allowHosts(sys System, o session.Options, hosts []string) (said string, err error) {
	if len(hosts) == 0 {
		if hosts, err = session.RefusedHosts(sys.Caller(), o); err != nil {
			return "", err
		}
		if len(hosts) == 0 {
			return "no host that could be listed was refused in the last session here\n", nil
		}
	}
	more, err := session.AllowHosts(sys.Caller(), o, hosts)
	if err != nil {
		return "", err
	}
	file := diag.Visible(more.File)
	if len(more.Hosts) == 0 {
		return file + " lists all of them\n", nil
	}
	fmt.Fprintf(sys.Stderr, "%s would list these hosts too:\n", file)
	for _, host := range more.Hosts {
		fmt.Fprintf(sys.Stderr, "  + %s\n", diag.Visible(host))
	}
	if err := confirmed(o.Yes, "Add them?"); err != nil {
		return "", err
	}
	added := diag.Visible(strings.Join(more.Hosts, " "))
	return "added to " + file + ", from the next launch: " + added + "\n", more.Save()
}
