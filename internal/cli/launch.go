package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/profile/grant"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session"
	"claudebox/internal/session/planning"
	"claudebox/internal/ui/audit"
)

// newShellCommand makes the command that runs another program in the same sandbox as a launch.
func newShellCommand(sys System) *cobra.Command {
	var o *options
	c := &cobra.Command{
		Use:   "shell [flags] [-- command…]",
		Short: "The same sandbox with a shell, or a command, instead of the agent",
		RunE: func(c *cobra.Command, words []string) error {
			if len(words) == 0 {
				words = launch.Shell
			}
			if flag := planFlagIn(words); flag != "" && c.ArgsLenAtDash() < 0 {
				return misused(c, "%[1]s must stand before the command (%[2]s); put `--` before that to give %[1]s to it",
					flag, words[0])
			}
			return runLaunch(sys, *o, words)
		},
	}
	c.Flags().SetInterspersed(false)
	o = addLaunchFlags(c.Flags(), shellFlags...)
	return c
}

// planFlagIn returns the first word behind that of a command by which a launch would have another sandbox; empty: none.
func planFlagIn(command []string) string {
	for at := 1; at < len(command) && command[at] != "--"; at++ {
		found, _, err := new(options).readFlags(command[at:])
		decides := func(s setting) bool { return slices.Contains(planFlags, s.flag.name) }
		if err == nil && slices.ContainsFunc(found, decides) {
			return command[at]
		}
	}
	return ""
}

// runLaunch prepares a session, shows what will enter, asks, and runs it; it asks
// again where what enters has changed since the answer. A dry run stops after showing.
func runLaunch(sys System, o options, command []string) error {
	// Each meets it anew: an agent that makes and removes a `.vscode` in a loop spoils one in six. Each lays a Landlock
	// domain over the last one; the kernel takes 16.
	const most = 10
	start := starting{sys: sys, o: o, command: command}
	for tries := 0; ; {
		approved, err := start.try()
		if errors.Is(err, launch.ErrAgain) && tries < most { // other sessions work here, or begin
			tries++
			continue
		}
		if approved == nil || err != nil {
			return err
		}
		start.seen = approved
	}
}

// starting is a launch that is tried again after each answer of the user's, and where something changed meanwhile.
type starting struct {
	sys     System
	o       options
	command []string

	seen grant.Set // what the user approved of at the last try
	said string    // what announce printed last
}

// try prepares a session. If what enters is what the user has seen, or need not be asked about, it runs the session and
// returns nil. Else it asks, and returns what the user approved of, for the next try: while the user thought, files may
// have been made that have to be hidden. What was approved is kept, so that the next question can say what changed.
func (a *starting) try() (approved grant.Set, err error) {
	sys, o := a.sys, a.o
	why := planning.Purpose{Look: o.DryRun, Dry: o.DryRun, Command: a.command}
	s, err := session.Prepare(sys.Caller(), o.Options, why)
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
	if approved, err = a.approve(s); err != nil || approved != nil {
		return approved, err
	}
	began := time.Now()
	err = s.Run()
	sys.sayMissing(s, a.command, err)
	sys.askAboutLogin(s, o)
	if a.command == nil && !o.NoReport && isTerminal(sys.Stderr) {
		sys.sayResume(s, o, began)
	}
	return nil, err
}

// sayMissing says why a command could not be run, and how its program comes inside.
func (sys System) sayMissing(s *session.Session, command []string, err error) {
	const cannotRun, notFound = 126, 127
	var ended *launch.ExitError
	if len(command) == 0 || !errors.As(err, &ended) || ended.Code != cannotRun && ended.Code != notFound {
		return
	}
	if reason := s.WhyNot(command[0]); reason != "" {
		diag.Note(sys.Stderr, diag.Visible(reason))
	}
}

// sayResume prints the command that continues the conversation in the sandbox. The one
// that Claude Code prints itself would continue it outside.
func (sys System) sayResume(s *session.Session, o options, began time.Time) {
	if s.Launch.Plan.Agent.Name != "claude" ||
		slices.ContainsFunc(o.Words, func(w string) bool { return w == "-p" || w == "--print" }) {
		return
	}
	const clock = time.Second // the times of files may lag behind the clock by this much
	if id := s.LastConversation(began.Add(-clock)); id != "" {
		diag.Note(sys.Stderr, "resume with: claudebox "+o.sandboxWords()+"--resume "+id)
	}
}

// sandboxWords are the flags of this launch that decide what the sandbox is, quoted
// for a shell, each followed by a blank. Resumed without them it could be wider.
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

// show prints a launch without starting it: the audit on standard error, bwrap's words on standard output.
func show(sys System, s *session.Session) error {
	argv, err := s.Launch.Argv()
	if err != nil {
		return err
	}
	fmt.Fprintln(sys.Stderr, viewOn(sys.Stderr, s.Facts).Text(s.Launch))
	_, err = fmt.Fprint(sys.Stdout, argv)
	return err
}

// subject is what a user is asked about: the name by which the answer is kept, what
// enters, and what was approved last.
type subject struct {
	name          string
	now, approved grant.Set
}

// subjectOf returns the subject of a launch: a profile with its agent, or a command of the user's own in the same
// sandbox. A command's answer is kept under a name of its own. It is compared with the agent's where that lets in all
// that the command's does, or where there is no other.
func subjectOf(s *session.Session, command []string) subject {
	about := subject{name: s.Launch.Plan.Profile, now: audit.Grants(s.Launch, s.PlanDigest(s.Folders))}
	if dir := s.BranchDir(); dir != "" { // an answer is for all branches: they differ by the folder alone
		about.name += ", a branch"
		for i, g := range about.now {
			about.now[i].Name = strings.ReplaceAll(g.Name, dir, "(branch)")
			about.now[i].Of = strings.ReplaceAll(g.Of, dir, "(branch)")
		}
		about.now = about.now.Sorted()
	}
	about.approved = about.kept(s)
	if command == nil {
		return about
	}
	about.name += ", a command"
	isAgent := func(g grant.Grant) bool { return g.Key == "agent" }
	about.now, about.approved = slices.DeleteFunc(about.now, isAgent), slices.DeleteFunc(about.approved, isAgent)
	if own := about.kept(s); len(own) > 0 && about.grants(s) {
		about.approved = own
	}
	return about
}

// kept returns what was approved last under the subject's name.
func (a subject) kept(s *session.Session) grant.Set {
	return audit.DecodeApproval(s.Instance.Approved(a.name), a.now)
}

// grants reports whether the launch lets in what was not approved; see [grant.Sides.Within].
func (a subject) grants(s *session.Session) bool {
	gone := func(path string) bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
	return len(a.approved) == 0 || refuseLinked(s, a.approved) != nil ||
		!audit.Sides(s.Launch, a.approved, a.now).Within(gone)
}

// approve lets a session start if what enters is what the user has just seen, or need not be asked about: then it
// returns nil. Else it asks, and returns what was approved.
func (a *starting) approve(s *session.Session) (grant.Set, error) {
	asksNobody := a.o.Yes || s.Confirm(s.Folders) == "never"
	if asksNobody && len(a.seen)+len(s.Linked()) == 0 { // what was approved does not count
		a.announce(s)
		return nil, nil
	}
	about := subjectOf(s, a.command)
	if slices.Equal(a.seen, about.now) {
		s.Instance.Approve(about.name, audit.EncodeApproval(a.seen))
		return nil, nil
	}
	approved, err := about.approve(a.sys, s, a.o, asksNobody)
	if approved == nil && err == nil {
		a.announce(s)
	}
	return approved, err
}

// approve shows what will enter and asks, unless a flag, the profile, or an earlier answer makes that needless. It
// returns what was approved; nil, if nobody was asked. If the flag or the profile says not to ask, it fails where
// [refuseLinked] does.
func (a subject) approve(sys System, s *session.Session, o options, asksNobody bool) (grant.Set, error) {
	if asksNobody {
		return nil, refuseLinked(s, a.approved)
	}
	if s.Confirm(s.Folders) == "changed" && !a.grants(s) {
		if kept := audit.EncodeApproval(a.now); !bytes.Equal(kept, s.Instance.Approved(a.name)) {
			s.Instance.Approve(a.name, kept) // it is less: what comes back is asked about
		}
		return nil, nil
	}
	if o.Called != "" {
		return nil, refuseToAsk(s, o)
	}
	var changes []grant.Change
	if len(a.approved) > 0 {
		changes = audit.Sides(s.Launch, a.approved, a.now).Changes()
	}
	return a.now, sys.question(s, changes)
}

// refuseToAsk is the error, of one line, of a launch that an editor asked for and that the user must be asked about: an
// editor shows the last line, and has no terminal, but for one perhaps that it was started from.
func refuseToAsk(s *session.Session, o options) error {
	if s.Confirm(s.Folders) == "always" {
		return errors.New("the profile asks at each start, which an editor cannot: write `confirm: changed` there")
	}
	return errors.New("you were not asked yet about what enters: run `" +
		strings.TrimSpace("claudebox "+o.sandboxWords()) + "` here once in a terminal")
}

// question shows what will enter, with its changes since the last answer, and asks
// about it until the user has said yes or no.
func (sys System) question(s *session.Session, changes []grant.Change) error {
	view := viewOn(sys.Stderr, s.Facts)
	for {
		fmt.Fprint(sys.Stderr, view.Brief(s.Launch, changes))
		answer, err := ask(audit.Question, "pass `--yes`, set `confirm: never` in a profile of your own, or start it here "+
			"once in a terminal")
		if err != nil {
			return err
		}
		switch answer {
		case "y", "yes":
			return nil
		case "d", "details":
			err = page(s.Pager(), view.Text(s.Launch)+view.Changes(changes))
		case "p", "plan":
			err = page(s.Pager(), view.Plan(s.Launch))
		case "", "n", "no", "q":
			return errDeclined
		default:
			diag.Note(sys.Stderr, diag.Visible(answer)+" is none of y, n, d, p")
		}
		if err != nil {
			return err
		}
	}
}

// announce says what starts, where nobody was asked about it: red remarks
// always, the rest to a person at a terminal. What the last try said it does not say again.
func (a *starting) announce(s *session.Session) {
	view := viewOn(a.sys.Stderr, s.Facts)
	say := view.Warnings(s.Launch)
	if isTerminal(a.sys.Stderr) {
		say += view.Line(s.Launch)
	}
	if say != a.said {
		fmt.Fprint(a.sys.Stderr, say)
	}
	a.said = say
}

// refuseLinked is for launches that ask nobody. It returns an error for a mount that was never approved and
// that is reached by a link which an agent could have made.
func refuseLinked(s *session.Session, approved grant.Set) error {
	for _, m := range s.Linked() {
		if !slices.Contains(approved, audit.MountGrant(m.Mount)) {
			return diag.Errorf("mount "+m.Source+" ("+m.Why+")",
				"name that path itself, or look at the link and start once without `--yes` to approve of it",
				"it is reached by the link %s, which an agent could have made", m.Link)
		}
	}
	return nil
}
