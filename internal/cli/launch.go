package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session"
	"claudebox/internal/ui/audit"
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

// runLaunch prepares a session, shows what will enter, asks, and runs it. A dry
// run stops after showing.
func runLaunch(sys System, o options, command []string) error {
	var seen []string
	for {
		approved, err := startSeen(sys, o, command, seen)
		if approved == nil || err != nil {
			return err
		}
		seen = approved
	}
}

// startSeen starts what the user has seen, and shows what they have not. What
// they approve of is given back, and is to be prepared anew: an answer takes
// time, and meanwhile they, or another session, make files that have to be
// hidden and protected. It is kept, so that the next audit can say what has
// changed since.
func startSeen(sys System, o options, command, seen []string) (approved []string, err error) {
	s, err := session.Prepare(sys.Caller(), o.Options, session.Purpose{Look: o.DryRun, Dry: o.DryRun, Command: command})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if o.DryRun {
		return nil, show(sys, s)
	}
	if err := launch.CheckBwrap(s.Launch.Bwrap); err != nil {
		return nil, err
	}
	if seen == nil || !slices.Equal(seen, audit.Lines(s.Launch)) {
		if approved, err = approve(sys, s, o.Yes); err != nil || approved != nil {
			return approved, err
		}
		sys.announce(s)
	}
	s.Instance.Approve(seen)
	began := time.Now()
	err = s.Run()
	sys.askAboutLogin(s, o)
	if command == nil && !o.NoReport && isTerminal(sys.Stderr) {
		sys.sayResume(s, o, began)
	}
	return nil, err
}

// sayResume says how the conversation goes on in the sandbox. Claude Code's own
// last line would have it go on outside.
func (sys System) sayResume(s *session.Session, o options, began time.Time) {
	if s.Launch.Plan.Agent.Name != "claude" ||
		slices.ContainsFunc(o.Words, func(w string) bool { return w == "-p" || w == "--print" }) {
		return
	}
	const clock = time.Second // what times of files may be behind
	if id := s.Instance.LastConversation(s.Launch.Dir, began.Add(-clock)); id != "" {
		diag.Note(sys.Stderr, "resume with: claudebox "+o.sandboxWords()+"--resume "+id)
	}
}

// sandboxWords are the flags that make the sandbox what it is, as a shell reads
// them, with a blank behind: without them the next one could be wider.
func (o options) sandboxWords() string {
	var b strings.Builder
	for _, f := range o.flags() {
		if !slices.Contains(planFlags, f.name) {
			continue
		}
		for _, value := range f.values() {
			b.WriteString("--" + f.name + " " + launch.Quote(value) + " ")
		}
	}
	return b.String()
}

// show prints the very launch: for people on standard error, the words on
// standard output.
func show(sys System, s *session.Session) error {
	argv, err := s.Launch.Argv()
	if err != nil {
		return err
	}
	s.JudgeImports()
	fmt.Fprintln(sys.Stderr, viewOn(sys.Stderr, s.Facts).Text(s.Launch))
	_, err = fmt.Fprint(sys.Stdout, argv)
	return err
}

// approve shows what will enter and has the user confirm it, unless a flag or the
// profile say that it need not be. What they approved of is given back; nil: nobody
// was asked.
func approve(sys System, s *session.Session, yes bool) (lines []string, err error) {
	if yes || !s.Launch.Plan.Asks() {
		return nil, refuseLinked(s)
	}
	lines = audit.Lines(s.Launch)
	approved := s.Instance.Approved()
	if s.Launch.Plan.Confirm == "changed" && slices.Equal(lines, approved) {
		return nil, nil
	}
	return lines, sys.question(s, audit.Difference(approved, lines), len(approved) > 0)
}

// question shows what will enter and asks about it, until the user has said
// yes or no. Without an earlier launch that was approved here nothing changed.
func (sys System) question(s *session.Session, changes []string, earlier bool) error {
	s.JudgeImports()
	view := viewOn(sys.Stderr, s.Facts)
	if !earlier {
		changes = nil
	}
	for {
		fmt.Fprint(sys.Stderr, view.Brief(s.Launch, changes))
		answer, err := ask(audit.Question, "pass `--yes`, or set `confirm: never` in the profile")
		if err != nil {
			return err
		}
		switch answer {
		case "y", "yes":
			return nil
		case "d", "details":
			err = page(s.Launch, view.Text(s.Launch)+view.Changes(changes))
		case "p", "plan":
			err = page(s.Launch, view.Plan(s.Launch))
		default:
			return errDeclined
		}
		if err != nil {
			return err
		}
	}
}

// announce says what starts, where nobody was asked about it: red remarks
// always, the rest to a person at a terminal.
func (sys System) announce(s *session.Session) {
	view := viewOn(sys.Stderr, s.Facts)
	fmt.Fprint(sys.Stderr, view.Warnings(s.Launch))
	if isTerminal(sys.Stderr) {
		fmt.Fprint(sys.Stderr, view.Line(s.Launch))
	}
}

// refuseLinked refuses what a person has to look at once, when none is asked: a
// mount whose source an agent could have exchanged.
func refuseLinked(s *session.Session) error {
	for _, m := range s.Linked() {
		if !slices.Contains(s.Instance.Approved(), audit.MountLine(m.Mount)) {
			return diag.Errorf("mount "+m.Source+" ("+m.Why+")",
				"name that path itself, or look at the link and start once without `--yes` to approve of it",
				"it is reached by the link %s, which an agent could have made", m.Link)
		}
	}
	return nil
}

// Bound is the launch that a call of claudebox with these words would run. It
// changes nothing, and is there for measurements.
func Bound(args []string, sys System) (launch.Launch, error) {
	o, err := split(args)
	if err != nil {
		return launch.Launch{}, err
	}
	s, err := session.Prepare(sys.Caller(), o.Options, session.Purpose{Look: true})
	if err != nil {
		return launch.Launch{}, err
	}
	return s.Launch, s.Close()
}
