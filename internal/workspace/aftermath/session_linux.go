// Package aftermath deals with what a session left in its project: git folders that the agent made are made harmless,
// and what the host's tools would run is told.
//
// [Begin] notes what is there and keeps the note in a file, in claudebox's own folder, that is locked while the session
// lives. [Session.End] looks again at each folder that the agent could write to; review compares the two looks, as a
// function of values, and gives what is to be told and what is to be repaired. A session that was killed, or whose end
// had failures, leaves its note: [Sweep] ends it at the next launch, whatever its project was. A report is kept until
// the user was told of it: [Report.Told].
//
//	sessions/<random>   one session: what was there before it
//	ends/<random>       one end under way, see [Ending]
//	reports/<random>    one report that nobody was told yet
//	memory/             what sessions added to indexes, and what stays hidden
//	made/<random>       git folders that the user has made while one session ran
//	walks/<id>          what was last seen of a large project
//
// It imports package project, and packages that make things harmless or report them. It trusts its own files, which no
// sandbox sees, and nothing of a project.
package aftermath

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// Session is one session that lives.
type Session struct {
	home   string
	tree   *beneath.Folder // open throughout: it may be renamed meanwhile
	record record
	file   *os.File
	disk   *time.Timer // brings the record there; nil: not yet
	before *seen
	held   func() map[string]content // what files held before; nil: the sandbox was not started
	alone  bool                      // no other session lived in the project when it began
}

// Agent says which folders an agent writes to beside those that it is given.
type Agent struct {
	Instance      string   // its own folder
	Conversations []string // the user's folders of them, see [state.Instance.Conversations]
	// Held is the folder with what the session holds back from the given folder while it runs, see [guard.InSession].
	Held string
	Ends []string // [Ends] before the folders were looked at
	With *Session // of another folder that the same agent is given; nil: there is none
}

// began is when the agent's session began.
func (a Agent) began() moment {
	if a.With != nil {
		return a.With.record.Began
	}
	return now()
}

// Begin notes what is in a project, just before a session. home is CLAUDEBOX_HOME, which exists.
func Begin(home string, p project.Project, agent Agent) (begun *Session, err error) {
	tree, err := beneath.Open(p.Path)
	if err != nil {
		return nil, failed(p.Path, err)
	}
	defer func() {
		if err != nil {
			tree.Close()
		}
	}()
	live, dead, strange := others(home)
	defer closeAll(dead)
	if err := cmp.Or(strange.refuse(), refuseApart(p.Path, agent.Held, live),
		refuseEnding(home, p.Path, agent.Ends)); err != nil {
		return nil, err
	}
	for _, r := range dead { // what Sweep could not settle
		live = append(live, r.record)
		rel, found := p.Seen.Where(r.Inode)
		if found && rel != "." && r.ID == identity.At(tree.FD(), rel) {
			at := diag.Name(tree.Join(rel))
			return nil, diag.Errorf("give away "+diag.Name(p.Path),
				"start claudebox in "+at+" once, which looks after it",
				"a session in %s did not finish its report: what it left may not be harmless", at)
		}
	}
	root, _ := tree.Look(".")
	r := record{Held: agent.Held, Places: handover.Outers(p.Places), Noted: Noted{
		Began: agent.began(), Scope: p.Scope, Inode: root.Stamp.Ino, ID: identity.Of(tree.FD()),
		Before:  inherited(p.Before, live),
		Tracked: p.Tracked, Covered: slices.Concat(p.ReadOnly, p.Hidden), Hidden: p.Hidden,
		Closed: p.Seen.Closed, Cut: p.Seen.Cut, Watched: watch(tree, p),
		Instance: agent.Instance, Conversations: agent.Conversations,
	}}
	for _, rel := range p.Filled.Repos {
		if what, err := tree.Look(rel); err == nil {
			r.Filled = append(r.Filled, filled{rel, what.Stamp.Ino})
		}
	}
	for _, rel := range r.Covered {
		if what, err := tree.Look(rel); err == nil && what.Kind != beneath.Absent {
			r.Inodes = append(r.Inodes, what.Stamp.Ino)
		}
	}
	r.Ignoring = ignoringAbove(tree, r.untracked())
	if err := errors.Join(rememberHidden(home, stayFile, r.ID, tree, p.Stay),
		rememberHidden(home, hiddenFile, r.ID, tree, p.Hidden),
		rememberHidden(home, enteredFile, r.ID, tree, p.Scope.Entered)); err != nil {
		return nil, failed(path.Join(home, memoryFolder), err)
	}
	f, err := r.store(home, agent.Ends)
	if err != nil {
		return nil, err
	}
	keepFilled(home, p)
	r.noteBeside(live, strange.live > 0)
	return &Session{
		home: home, tree: tree, record: r, file: f, before: &seen{Seen: p.Seen}, alone: r.isAloneAt(p.Path),
	}, nil
}

// refuseApart refuses a folder that a session which lives has, too, where one of both has not what the other holds
// back.
func refuseApart(folder, held string, live []record) error {
	for _, r := range live {
		if r.overlaps(folder) && !guard.Shares(r.Held, held) {
			return diag.Errorf("give away "+diag.Name(folder), "end it first",
				"a session in %s of another claudebox, or on another file system than ~/.claudebox, lives: what one "+
					"holds back of new repositories would lead nowhere in the other", diag.Name(r.Scope.Path))
		}
	}
	return nil
}

// overlaps reports whether a path lies in the session's project, or the project below it.
func (was record) overlaps(at string) bool {
	return pathname.Overlap(was.Scope.Path, at)
}

// IsAlone reports whether no other session lives in the project, above it or below it, now.
func (s *Session) IsAlone() bool { return s.IsAloneAt(s.record.Scope.Path) }

// IsAloneAt reports whether no other session now has a path of the project, or lives in a folder below it.
func (s *Session) IsAloneAt(at string) bool {
	s.lookBeside()
	return s.record.isAloneAt(at)
}

// lookBeside notes which other sessions live.
func (s *Session) lookBeside() {
	live, dead, strange := others(s.home)
	closeAll(dead)
	s.record.noteBeside(live, strange.live > 0)
}

// noteBeside notes which of the sessions that live are other ones: those of one session began in one moment.
func (was *record) noteBeside(live []record, strange bool) {
	was.beside = slices.DeleteFunc(live, func(r record) bool { return r.Began == was.Began })
	was.strange = strange
}

// isAloneAt reports whether no session that lives may have a path, or one below it.
func (was record) isAloneAt(at string) bool {
	return !was.strange && !slices.ContainsFunc(was.beside, func(r record) bool { return r.overlaps(at) })
}

// Overlaps reports whether another session lived in the project, above it or below it, when this one began; after
// [Session.End], also whether one does now.
func (s *Session) Overlaps() bool { return !s.alone }

// Held are the folders with what was held back while the session ran, and while others ran there that have ended.
func (s *Session) Held() []string {
	s.lookBeside()
	return s.record.held()
}

// held lists the folders with what was held back in the session's project, but for those of sessions that live, or may.
func (was record) held() (folders []string) {
	if was.Held == "" {
		return nil
	}
	for _, at := range guard.Sessions(guard.HeldOf(was.Held)) {
		lives := slices.ContainsFunc(was.beside, func(r record) bool { return path.Base(r.Held) == path.Base(at) }) ||
			was.strange && path.Base(at) != path.Base(was.Held)
		if lives {
			continue
		}
		if in, err := beneath.Open(path.Dir(at)); err == nil {
			_ = in.Chmod(path.Base(at), privateDir) // an agent may have closed it
			in.Close()
			folders = append(folders, at)
		}
	}
	return folders
}

// AddUsers notes a git place that the user has made while the session ran, and that was covered there. What a file
// leads to is looked at all the same.
func (s *Session) AddUsers(at string) {
	s.record.made = append(s.record.made, at)
	if info, err := os.Lstat(at); err == nil && info.IsDir() {
		s.AddAdopted(at)
	}
}

// KeepUsers notes a git folder that the user has made while the session ran, and in which no agent can write any more,
// for whoever ends the session if it is killed. One that cannot be noted is judged then as if the agent had made it.
func (s *Session) KeepUsers(id identity.ID) { s.keepUsers(string(id)) }

// KeepRemotes notes what is to be said of the remotes of one that [Session.KeepUsers] has noted: an agent can have
// named them before.
func (s *Session) KeepRemotes(id identity.ID, text string) {
	s.keepUsers(string(id) + "\t" + diag.Visible(text))
}

func (s *Session) keepUsers(line string) {
	file := madeFile(s.file)
	_ = os.Mkdir(path.Dir(file), privateDir) // most times it is there
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintln(f, line)
	f.Close()
	onDisk(file)
}

// AddUnseen notes a folder that the agent did not see, as it had one of its own there: all in it is the user's.
func (s *Session) AddUnseen(at string) {
	s.record.unseen = append(s.record.unseen, at)
	s.AddUsers(at + "/.git")
}

// AddAdopted notes a git folder that has become the user's.
func (s *Session) AddAdopted(at string) { s.record.Places = append(s.record.Places, at) }

// keptUsers are the git folders that [Session.KeepUsers] noted of the session of a record, and what is to be said of
// their remotes.
func keptUsers(record *os.File) map[identity.ID]string {
	kept := map[identity.ID]string{}
	noted, _ := os.ReadFile(madeFile(record)) // most have none
	for line := range strings.Lines(string(noted)) {
		id, remotes, isRead := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !isRead {
			remotes = "which remotes it has, `git remote -v` there says"
		}
		if id != "" {
			kept[identity.ID(id)] = remotes
		}
	}
	return kept
}

// Follow begins what need not delay the start. It is called when the sandbox has been started.
func (s *Session) Follow() {
	s.held = meanwhile(func(ended context.Context) map[string]content {
		return take(ended, s.record.Scope.Path, s.before.Files)
	})
	s.disk = time.AfterFunc(onDiskAfter, func() { onDisk(s.file.Name()) })
}

// End compares what is there now with what was there before, and makes git places harmless that the agent made. Nothing
// may run inside any more. The session's record is removed, unless something could not be made harmless: then the next
// launch tries again. What reports tell already is left out: one folder may lie in another. The caller tells the user,
// and calls [Report.Told].
func (s *Session) End(told ...Report) Report {
	defer release(s.file)
	s.record.begun(s.file)
	if s.disk != nil {
		s.disk.Stop()
	}
	defer s.tree.Close()
	s.alone = s.IsAlone() && s.alone
	r := s.record.settle(s.home, s.tree, s)
	r.leaveOut(told)
	r.finish()
	r.keep(s.home, s.record.Began) // before the record goes
	if len(r.Failures) == 0 {
		drop(s.file)
	}
	return r
}

// Sweep ends the sessions that were killed, or whose end had failures. Their reports hold what was made harmless, and
// what was changed since they began: which changes are the session's is not known any more. A session whose project is
// not there, perhaps because its disk is not mounted, waits for a later launch. Reports that nobody was told come
// first, as they were. The caller tells the user, and calls [Report.Told] for each.
//
// near are folders that may lie in a project that was moved.
func Sweep(home string, near ...string) []Report {
	reports := untold(home)
	live, dead, strange := others(home) // what cannot be read is told by Begin, which refuses
	var waiting []remains
	for _, was := range dead {
		was.beside, was.strange = live, strange.live > 0
		was.begun(was.file)
		r, tree := Report{Project: was.Scope.Path}, was.find(near)
		if tree == nil {
			waiting = append(waiting, was)
		} else {
			was.kept = keptUsers(was.file)
			r = was.settle(home, tree, nil)
			tree.Close()
			r.leaveOut(reports)
		}
		r.Unfinished = true
		if info, err := was.file.Stat(); err == nil {
			r.Began = info.ModTime().UTC().Truncate(time.Second)
		}
		was.clean(&r)
		r.finish()
		r.keep(home, was.Began)
		if tree != nil && len(r.Failures) == 0 {
			drop(was.file)
		}
		if tree != nil || !r.Silent() {
			reports = append(reports, r)
		}
	}
	bound(waiting, time.Now())
	closeAll(dead)
	return reports
}

// leaveOut leaves out what is at a path that one of the reports mentions, but for what was taken out.
func (r *Report) leaveOut(reports []Report) {
	told := map[string]bool{}
	for _, of := range reports {
		for _, c := range of.Changes {
			told[path.Join(of.Project, c.Path)] = true
		}
	}
	r.Changes = slices.DeleteFunc(r.Changes, func(c Change) bool {
		return c.Change != TakenOut && told[path.Join(r.Project, c.Path)]
	})
}

// clean removes from the user's conversations what the session left there.
func (was record) clean(r *Report) {
	for _, dir := range was.Conversations {
		removed, err := state.CleanConversations(dir)
		for _, name := range removed {
			r.Changes = append(r.Changes, Change{Path: name, Change: Removed, Means: state.WhyRemoved})
		}
		if err != nil {
			r.fail("look through your conversations in "+diag.Name(dir),
				fmt.Errorf("%w; remove what is no file there before you run Claude Code outside", err))
		}
	}
}

// settle judges all that the agent could write to. of is nil for a session that did not finish its report.
func (was record) settle(home string, tree *beneath.Folder, of *Session) Report {
	p := place{was: was}
	r := Report{Project: was.Scope.Path}
	var owns []func() *own
	for _, dir := range append(slices.Clone(was.Conversations), was.Instance) {
		owns = append(owns, was.lookOwn(home, dir))
	}
	was.known = sync.OnceValue(func() handover.Known { return handover.Recall(home) })
	left := was.bringOut(&r, tree)
	var walked *project.Seen
	if of != nil {
		p.before, walked = of.before, &of.before.Seen
	}
	var look git.Look
	p.after, look = was.look(tree, walked)
	look.Git = slices.DeleteFunc(look.Git, func(rel string) bool { // it leads nowhere
		return guard.IsLink(guard.Stops(home), tree, rel)
	})
	r.Changes = append(r.Changes, was.learn(tree, look)...)
	r.stuck(tree, look, left)
	p.was = was
	p.after.wholes = was.Watched.again(tree)
	if of != nil {
		if of.held != nil {
			p.after.equal = equal(tree, of.held(), p.before.Files, p.after.Files)
		}
		if !p.before.Same || !p.after.Same { // else it stands there
			keep(home, was.Scope, p.after.Seen)
		}
	}
	r.Cut, r.Closed = p.after.cut, p.after.unread
	if !was.Cut && !r.Cut {
		r.Beyond = p.after.Beyond()
	}
	if of != nil {
		r.fail("remember what the session could read", was.rememberHad(home, tree, p.after.Seen))
	}
	for _, dir := range p.after.unread { // the next launch looks again
		r.fail("look into "+diag.Name(dir), errors.New("it was closed inside"))
	}
	if p.after.Cut && !was.Cut {
		r.fail("look at all of the project", errors.New("it has more entries than can be, since this session"))
	}
	r.Changes = append(r.Changes, was.staged(tree, p.after.Seen, walked)...)
	r.Changes = append(r.Changes, was.unignored(tree)...)
	p.after.links = was.leading(home, tree, p.after.NewLinks)
	r.judge(home, tree, p, look)
	for _, wait := range owns {
		if found := wait(); found != nil {
			was.disarmOwn(&r, home, found)
		}
	}
	return r
}

// learn notes which git folders that were not there before are the user's all the same: an end has adopted them, which
// may have been cut short then, they were moved, or the user has made them while a session ran that was killed. Files
// called .git that lead to where one was while it was held back lead to it then.
func (was *record) learn(tree *beneath.Folder, look git.Look) (told []Change) {
	for _, rel := range slices.Concat(look.Git, look.Bare) {
		at := tree.Join(rel)
		if !was.Before.Has(at) && !was.isUsers(at) && was.known().Has(at, was.Places...) {
			was.Places = append(slices.Clip(was.Places), at)
		}
		if remotes, isKept := was.kept[identity.At(tree.FD(), rel)]; isKept {
			was.Places, was.made = append(slices.Clip(was.Places), at), append(was.made, at)
			if remotes != "" {
				in := strings.TrimSuffix(rel, "/.git")
				told = append(told, Change{Path: in, Change: Yours, Means: whyYours + remotes})
			}
		}
	}
	for _, rel := range look.Git {
		handover.Lead(tree, rel, func() map[string]string { return was.known().Things })
	}
	return told
}

// whyYours is what is said of a repository of the user's before its remotes.
const whyYours = "a repository that you made while the session ran; "

// own is what lies in a folder of the agent's own.
type own struct {
	root *beneath.Folder
	record
	look git.Look
}

// lookOwn begins to look at a folder of the agent's own, beside what else is looked at, and returns what waits for it;
// nil: there is none, or it is gone.
func (was record) lookOwn(home, dir string) (wait func() *own) {
	wait = sync.OnceValue(func() *own {
		root, err := beneath.Open(dir)
		if err != nil {
			return nil
		}
		inner := record{since: was.since}
		inner.Began, inner.Places, inner.Scope = was.Began, was.Places, project.Scope{Build: was.Scope.Build, Path: dir}
		known := Memory{home: home}.Known(inner.Scope)
		seen, look := inner.look(root, known)
		if known == nil || !seen.Same {
			keep(home, inner.Scope, seen.Seen)
		}
		return &own{root, inner, look}
	})
	go wait()
	return wait
}

// disarmOwn has git find no repository in a folder of the agent's own that was made or changed there since the session
// began, and by which it would run something: the user may come there.
func (was record) disarmOwn(r *Report, home string, in *own) {
	defer in.root.Close()
	old := func(rel string) bool {
		return !git.Touched(in.root, rel, was.since) && !in.cameTo(in.root, rel) ||
			in.Scope.Path == was.Instance && (pathname.Below(rel, handover.Folder) || // only git in a box opens those
				pathname.Below(rel, guard.FolderBefore)) // which no tool looks for by its name
	}
	in.look.Git, in.look.Bare = slices.DeleteFunc(in.look.Git, old), slices.DeleteFunc(in.look.Bare, old)
	in.mendAlternates(in.root, slices.Concat(in.look.Git, in.look.Bare))
	anywhere := func(string) bool { return true } // nobody fetches there
	if strangers := in.strangers(in.root, in.look, anywhere); len(strangers) > 0 {
		was.mend(r, home, in.root, strangers)
	}
}

// strangers returns the repairs of git places. fetches reports whether a remote may be at a path on this machine.
func (was record) strangers(root *beneath.Folder, look git.Look, fetches func(at string) bool) []git.Repair {
	look.Skip, look.Judge = was.isUsers, true
	after := git.Gather(root, look)
	after.Deepen(root, was.Before)
	return git.Strangers(git.Comparison{Before: was.Before, After: after, Users: was.leadsToUsers, Fetches: fetches})
}

// bringOut brings out what was held back. It returns where the repositories are that stay so, by [guard.Thing].
func (was record) bringOut(r *Report, tree *beneath.Folder) (left map[string]string) {
	left = map[string]string{}
	compared := git.Comparison{Before: was.Before, Users: was.leadsToUsers}
	end := guard.Ending{
		Alone: func(rel string) bool { return was.isAloneAt(path.Join(tree.Path(), rel)) },
		Leads: func(rel string, content []byte) bool { return compared.LeadsToPart(tree.Join(rel), string(content)) },
		Left: func(rel, at string) {
			outer := tree.Join(path.Join(path.Dir(rel), ".git"))
			switch isAside := path.Base(rel) != ".git"; {
			case isAside && was.known().Has(outer):
				return // it is the agent's own of what is the user's
			case isAside:
				const means = "a repository that was made inside, in whose place another one is: it becomes yours, " +
					"at the end of a session, once that is elsewhere"
				r.Changes = append(r.Changes, Change{Path: rel, Change: HeldBack, Means: means})
				return
			}
			link, _ := tree.Readlink(rel)
			left[guard.Thing(guard.InsideOf(link))] = path.Dir(rel)
			means := "a repository that was made inside is not yours yet: the next session here goes on in it"
			free, back := diag.Command("rm -f --", rel), wayBack(rel, at)
			if back != "" {
				back = free + " && " + back
			}
			if _, err := os.Lstat(at + "/HEAD"); err != nil { // `git init` there would take what is the agent's
				means, back = "it is no repository, and the agent's alone", ""
				if free != "" {
					means += ": `" + free + "` takes its link away"
				}
			}
			r.Changes = append(r.Changes, Change{Path: rel, Change: HeldBack, Means: means, Back: back})
		},
		Changed: func(c git.Change) { r.takenOut(c, func(rel string) string { return rel }) },
	}
	for _, held := range was.held() {
		_, err := guard.BringOut(tree, held, end)
		r.fail("put back what was held back while the session ran", err)
	}
	return left
}

// stuck tells of .git files at which git stops, as they lead to where a repository is held back: with how they lead to
// it once that was brought back, as it is told. left are those repositories.
func (r *Report) stuck(tree *beneath.Folder, look git.Look, left map[string]string) {
	for _, rel := range look.Git {
		name := guard.ThingOf(tree, rel, tree.Join(rel))
		if name == "" {
			continue
		}
		c := Change{Path: rel, Change: HeldBack, Means: "git stops there, as what it leads to is gone"}
		c.Back = diag.Command("rm -f --", rel)
		for thing, dir := range left {
			if part, is := strings.CutPrefix(name, thing+"/"); is {
				c.Means = "git stops there until " + diag.Name(dir) + ", to which it belongs, is yours or brought back"
				c.Back = leadAgain(dir, part, path.Dir(rel))
			}
		}
		r.Changes = append(r.Changes, c)
	}
}

// leadAgain returns the command by which a worktree or a submodule leads to its repository again.
func leadAgain(repository, part, tree string) string {
	if strings.HasPrefix(part, "worktrees/") {
		return diag.Command("git -C", repository, "worktree", "repair")
	}
	of, in := diag.Word(path.Join(repository, ".git", part)), diag.Word(tree)
	if of == "" || in == "" {
		return ""
	}
	return fmt.Sprintf(`echo "gitdir: $PWD"/%s >%s/.git && git config -f %[1]s/config core.worktree "$PWD"/%[2]s`, of, in)
}

// staged returns what the session added to an index so that the user's next commit, or checkout, does what the user
// does not expect: files with names of secrets that are not there yet, and files that tools run of which the index has
// another content now. before is what was seen then, or nil.
func (was record) staged(tree *beneath.Folder, after project.Seen, before *project.Seen) (changes []Change) {
	for _, rel := range after.Names {
		if !slices.Contains(was.Tracked, rel) && was.Scope.Hides(rel) && isAbsent(tree, rel) {
			changes = append(changes, Change{Path: rel, Change: Staged, Means: whyAwaited + unstage(rel)})
		}
	}
	if before == nil {
		return changes
	}
	told := slices.Concat(was.Hidden, checkouts(after, before)) // or these are told as a whole
	for _, rel := range after.Apart(before.Tracked, tree) {
		if !slices.ContainsFunc(told, func(at string) bool { return pathname.Below(rel, at) }) {
			changes = append(changes, Change{Path: rel, Change: Staged, Means: whyApart})
		}
	}
	return changes
}

const whyApart = "your tools run or obey it, and git's index has another content of it now, which the next checkout " +
	"may write: `git diff -R` shows it"

const whyAwaited = "it is in git's index, and not there: if you make it, `git commit -a` takes its content along; " +
	"to take it out: "

// judge looks at the git places of a folder, reviews it, and does the repairs.
func (r *Report) judge(home string, root *beneath.Folder, p place, look git.Look) {
	p.was.mendAlternates(root, look.Git)
	p.strangers = p.was.strangers(root, look, func(at string) bool { return pathname.Below(at, root.Path()) })
	p.agents, _ = beneath.Canonical(home)
	told, repairs := review(p)
	r.Changes = append(r.Changes, told...)
	if len(told)+len(repairs) > 0 {
		p.was.mend(r, home, root, repairs)
	}
}

// mendAlternates has clones that the agent made of a repository of the user's find its objects where they are outside.
func (was record) mendAlternates(root *beneath.Folder, places []string) {
	for _, place := range places {
		name := path.Join(place, "objects/info/alternates")
		const limit = 64 << 10
		content, err := root.Read(name, limit)
		if err != nil {
			continue
		}
		text := string(content)
		for _, outer := range was.Places {
			inside := handover.Place{Outer: outer}.Shared() + "/objects\n"
			text = strings.ReplaceAll(text, inside, outer+"/objects\n")
		}
		if text != string(content) {
			_ = root.Replace(name, []byte(text), 0o644) // else git says that it lacks objects
		}
	}
}

// mend does repairs below a folder, which are told by paths in the project where that is so.
func (was record) mend(r *Report, home string, root *beneath.Folder, repairs []git.Repair) {
	at := func(rel string) string { return strings.TrimPrefix(root.Join(rel), r.Project+"/") }
	r.plan(home, was.Began, repairs, at)
	m := git.Mender{Root: root}
	for _, repair := range repairs { // what fails is tried again by the next launch
		r.fail("make "+diag.Name(root.Join(repair.Rel))+" harmless", diag.Cause(m.Apply(repair)))
	}
	for _, c := range m.Changes {
		r.takenOut(c, at)
	}
}

// takenOut tells of what has another name now. at makes a path for people of one in a change.
func (r *Report) takenOut(c git.Change, at func(rel string) string) {
	back := wayBack(at(c.Rel), at(c.To))
	if back != "" && len(c.Also) > 0 { // names of one folder
		names, usual := "", true
		for _, one := range append([]git.Change{c}, c.Also...) {
			names, usual = names+" "+path.Base(one.Rel), usual && one.To == one.Rel+"."+git.Aside
		}
		if back = ""; usual {
			back = "(" + diag.Command("cd --", at(path.Dir(c.Rel))) + " && for f in" + names + "; do mv -fT -- $f." +
				git.Aside + " $f; done)"
		}
	}
	r.Changes = append(r.Changes, Change{Path: at(c.Rel), Change: TakenOut, Means: c.Text, Back: back})
}
