package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/session"
)

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
	c := &cobra.Command{
		Use:     "allow-host HOST[:PORT]… | --refused",
		Short:   "Add hosts to the list of your profile",
		Long:    allowHostLong,
		Example: allowHostExample,
		RunE: func(c *cobra.Command, hosts []string) error {
			if refused == (len(hosts) > 0) {
				return misused(c, "%s takes hosts, or --refused", c.CommandPath())
			}
			return allowHosts(sys, o, hosts)
		},
	}
	c.Flags().StringVarP(&o.Profile, "profile", "P", "", "profile that they are added to, a `NAME|FILE`")
	c.Flags().BoolVar(&refused, "refused", false, "those that the last session here was refused")
	c.Flags().BoolVarP(&o.Yes, "yes", "y", false, "add without asking")
	return c
}

// allowHosts adds hosts to the user's profile; none: those that were refused.
func allowHosts(sys System, o session.Options, hosts []string) error {
	if len(hosts) == 0 {
		var err error
		if hosts, err = session.RefusedHosts(sys.Caller(), o); err != nil {
			return err
		}
		if len(hosts) == 0 {
			_, err = fmt.Fprintln(sys.Stdout, "the last session here was refused no host that could be listed")
			return err
		}
	}
	more, err := session.AllowHosts(sys.Caller(), o, hosts)
	if err != nil {
		return err
	}
	file := diag.Visible(more.File)
	if len(more.Hosts) == 0 {
		_, err = fmt.Fprintf(sys.Stdout, "%s lists all of them\n", file)
		return err
	}
	fmt.Fprintf(sys.Stderr, "%s would list these hosts too:\n", file)
	for _, host := range more.Hosts {
		fmt.Fprintf(sys.Stderr, "  + %s\n", diag.Visible(host))
	}
	if err := confirmed(o.Yes, "Add them?"); err != nil {
		return err
	}
	if err := more.Keep(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(sys.Stdout, "added to %s, from the next launch: %s\n", file,
		diag.Visible(strings.Join(more.Hosts, " ")))
	return err
}
