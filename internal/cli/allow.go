package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/network/policy"
	"claudebox/internal/profile"
	"claudebox/internal/session"
	"claudebox/internal/session/kept"
	"claudebox/internal/session/planning"
	"claudebox/internal/session/sessions"
)

const allowLong = `A project can bring a profile of its own, the file .claudebox.yaml or
.claudebox.yml at its root, or .claudebox/tools.txt, which lists packages.
What it takes away from your profile counts at once. What it adds counts when
you have allowed it. You allow exactly this content, in this folder, over the
profile that you were shown: after any change of these you are asked again.`

func newAllowCommand(sys System) *cobra.Command {
	var o planning.Options
	c := sys.prints("allow", "Show what this project's own profile asks for, and allow it", allowLong, noWords,
		func([]string) (string, error) { return allow(sys, o) })
	c.Flags().StringVarP(&o.Profile, "profile", "P", "", "profile that it is laid over, a `NAME|FILE`")
	c.Flags().StringVar(&o.Network, "network", "", "judge it for launches with this `TIER`")
	c.Flags().BoolVarP(&o.Yes, "yes", "y", false, "allow without asking")
	return c
}

func newDenyCommand(sys System) *cobra.Command {
	var o planning.Options
	const more = "\n\nA file that is denied does not count at all, nor does what it takes away."
	c := sys.prints("deny", "Leave this project's own profile out as it stands", allowLong+more, noWords,
		func([]string) (string, error) {
			const unread = true // it may be faulty
			asked, _, err := planning.ProjectFile(sys.Caller(), o, unread)
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

func allow(sys System, o planning.Options) (said string, err error) {
	asked, warnings, err := planning.ProjectFile(sys.Caller(), o, false)
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
func showAsked(sys System, asked planning.Asked) {
	fmt.Fprintf(sys.Stderr, "%s would widen the sandbox:\n", diag.Name(asked.File.Path))
	for _, w := range asked.Widens {
		mark := "  + "
		for _, line := range layout.Wrap(diag.Visible(strings.TrimSpace(w.String()+"  "+w.After.Why)), 76) {
			fmt.Fprintf(sys.Stderr, "%s%s\n", mark, line)
			mark = "    "
		}
		if w.Key() == "nixpkgs" {
			fmt.Fprintln(sys.Stderr, "    what no cache has of its packages, "+
				"this machine's Nix builds outside the sandbox")
		}
	}
}

const allowHostLong = `Add hosts to the list of your own profile, whose network has the tier allow. In
tier inet they are addresses of your own network. You are asked first. They
count at once in the sessions of this project and profile that run, and from the
next launch. With --session nothing is written, and they count in these sessions
alone, or in the one that is named, until they end. With --refused they are
those that the last session here was refused, for you to look through: the agent
chose what it asked for.`

const allowHostExample = `  claudebox allow-host registry.npmjs.org
  claudebox allow-host -P work git.example.org:22
  claudebox allow-host --session registry.npmjs.org
  claudebox allow-host --refused`

func newAllowHostCommand(sys System) *cobra.Command {
	var o planning.Options
	var refused bool
	var id string
	words := func(c *cobra.Command, hosts []string) error {
		if named := len(hosts) > 0; named == refused { // both, or neither
			return misused(c, "%s takes hosts, or --refused", c.CommandPath())
		}
		return nil
	}
	c := sys.prints("allow-host HOST[:PORT]… | --refused", "Add hosts to the list of your profile", allowHostLong,
		words, nil)
	c.RunE = func(c *cobra.Command, hosts []string) (err error) {
		if refused {
			if hosts, err = kept.RefusedHosts(sys.Caller(), o); err != nil || len(hosts) == 0 {
				return sys.print("no host that could be listed was refused in the last session here\n", err)
			}
		}
		if !c.Flags().Changed(sessionFlag) {
			return sys.print(allowHosts(sys, o, hosts))
		}
		if id == everySession {
			id = ""
		}
		return sys.print(allowInSessions(sys, o, id, hosts))
	}
	c.Example = allowHostExample
	c.Flags().StringVar(&id, sessionFlag, "", "only while they run: sessions here, or this `ID`")
	c.Flags().Lookup(sessionFlag).NoOptDefVal = everySession
	c.Flags().StringVarP(&o.Profile, "profile", "P", "", "profile that they are added to, a `NAME|FILE`")
	c.Flags().BoolVar(&refused, "refused", false, "those that the last session here was refused")
	c.Flags().BoolVarP(&o.Yes, "yes", "y", false, "add without asking")
	return c
}

// sessionFlag is the flag of the sessions that run; without a value it stands for all of them here.
const (
	sessionFlag  = "session"
	everySession = "here"
)

// allowHosts adds hosts to the user's profile, and lets the sessions that run reach them.
func allowHosts(sys System, o planning.Options, hosts []string) (said string, err error) {
	more, err := kept.AllowHosts(sys.Caller(), o, hosts)
	if more.Tier == profile.TierInet { // even if the file cannot be changed: that remedy would not help
		err = cmp.Or(noneIsHere(hosts), err)
	}
	if err != nil {
		return "", err
	}
	running, err := sessions.Of(sys.Caller(), o, "")
	if err != nil {
		return "", err
	}
	file := diag.Visible(more.File)
	said = file + " lists all of them\n"
	if len(more.Hosts) > 0 {
		fmt.Fprintf(sys.Stderr, "%s would list these hosts too:\n", file)
		if err := confirmHosts(sys, o, more.Hosts, "Add them?"); err != nil {
			return "", err
		}
		if err := more.Save(); err != nil {
			return "", err
		}
		said = "added to " + file + ", from the next launch: " + diag.Visible(strings.Join(more.Hosts, " ")) + "\n"
	}
	opened, _ := openAll(running, hosts)
	return said + opened, nil
}

// noneIsHere returns an error if one of the hosts is an address of this machine, which no list opens.
func noneIsHere(hosts []string) error {
	here, err := session.Addresses()
	if err != nil {
		return &diag.Error{Op: "read this machine's addresses", Err: err}
	}
	for _, text := range hosts {
		e, err := policy.ParseException(text)
		if err != nil || !e.Prefix.IsSingleIP() || !here.Is(e.Prefix.Addr()) {
			continue // of a network this machine's own address stays closed
		}
		port := "PORT"
		if e.Port != 0 {
			port = strconv.Itoa(int(e.Port))
		}
		return diag.Errorf("allow "+text, "write `ports: {out: ["+port+"]}` in the profile: a session reaches it as 127.0.0.1",
			"it is %s, and stays closed", policy.ThisMachine)
	}
	return nil
}

func confirmHosts(sys System, o planning.Options, hosts []string, question string) error {
	for _, host := range hosts {
		fmt.Fprintf(sys.Stderr, "  + %s\n", diag.Visible(host))
	}
	return confirmed(o.Yes, question)
}

// allowInSessions lets sessions that run reach hosts, and writes nothing.
func allowInSessions(sys System, o planning.Options, id string, hosts []string) (said string, err error) {
	running, err := sessions.Of(sys.Caller(), o, id)
	if err != nil {
		return "", err
	}
	const op = "let a session reach hosts"
	if len(running) == 0 {
		remedy := "start one, or name one of another project: --session=ID"
		others, err := sessions.Here(sys.Caller(), "")
		switch {
		case err == nil && len(others) == 1 && o.Profile == "": // it alone can be meant
			return allowInSessions(sys, o, others[0].ID, hosts)
		case err == nil && len(others) > 0:
			remedy = fmt.Sprintf("there is one of another profile: --session=%s", others[0].ID)
		}
		return "", diag.Errorf(op, remedy, "no session of this project and profile runs")
	}
	for _, one := range running {
		err := one.Judge(hosts)
		if err != nil && len(running) == 1 {
			return "", &diag.Error{Op: op, Err: fmt.Errorf("%s: %w", one, err)}
		}
		if err == nil && one.Tier == profile.TierInet {
			if err := noneIsHere(hosts); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(sys.Stderr, "%s in %s\n", one, diag.Name(one.Project))
	}
	fmt.Fprintln(sys.Stderr, "would reach until the end:")
	if err := confirmHosts(sys, o, hosts, "Allow it?"); err != nil {
		return "", err
	}
	said, some := openAll(running, hosts)
	if !some {
		return "", diag.Errorf(op, "start again", "%s", strings.TrimSuffix(said, "\n"))
	}
	return said, nil
}

// openAll lets sessions reach hosts, and says for each what became of it. some: at least one does.
func openAll(running []sessions.Live, hosts []string) (said string, some bool) {
	for _, one := range running {
		if err := one.Open(hosts); err != nil {
			said += one.String() + " does not take it: " + diag.Visible(err.Error()) + "\n"
			continue
		}
		some = true
		said += one.String() + " reaches it now: " + diag.Visible(strings.Join(hosts, " ")) + "\n"
	}
	return said, some
}
