package aftermath

import (
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/project"
)

// Session is one session that lives.
type Session struct {
	home   string
	tree   *beneath.Folder // open throughout: it may be renamed meanwhile
	record record
	file   *os.File
	disk   *time.Timer // brings the record there; nil: not yet
	before project.Seen
	units  map[string]beneath.Stamp
	sums   *sums             // nil: the sandbox was not started
	alone  bool              // no other session lived in the project when it began
	named  map[string]string // tracked places that git's configuration names, and their state
}

// Agent is what an agent writes to beside what it is given.
type Agent struct {
	Instance      string   // its own folder
	Conversations []string // the user's folders of them, see [state.Instance.Conversations]
}

// Begin notes what is in a project, just before a session. home is
// CLAUDEBOX_HOME, which exists.
func Begin(home string, p project.Project, agent Agent) (*Session, error) {
	tree, err := beneath.Open(p.Path)
	if err != nil {
		return nil, failed(p.Path, err)
	}
	begun := false
	defer func() {
		if !begun {
			tree.Close()
		}
	}()
	live, dead, free := others(home)
	defer closeAll(dead)
	for _, f := range dead { // what Sweep could not settle
		r, ok := read(f)
		if !ok {
			continue
		}
		live = append(live, r)
		if rel := r.waitsBelow(tree, p.Seen); rel != "" {
			return nil, diag.Errorf("give away "+p.Path,
				"start claudebox in "+tree.Join(rel)+" once, which looks after it",
				"a session in %s was killed, and nobody has looked at what it left", tree.Join(rel))
		}
	}
	r := record{
		Began: time.Now().UnixNano(), Scope: p.Scope, Inode: inodeOf(tree), ID: identity.Of(tree.FD()),
		Before: inherited(p.Before, live), OpenConfig: p.OpenConfig,
		Tracked: p.Tracked, Covered: slices.Concat(p.ReadOnly, p.Hidden), Hidden: p.Hidden,
		Closed: p.Seen.Closed, Cut: p.Seen.Cut,
		Instance: agent.Instance, Conversations: agent.Conversations,
	}
	for _, rel := range r.Covered {
		if what, err := tree.Look(rel); err == nil && what.Kind != beneath.Absent {
			r.Inodes = append(r.Inodes, what.Stamp.Ino)
		}
	}
	if err := rememberHidden(home, r.ID, tree, p.Stay); err != nil {
		return nil, failed(path.Join(home, memoryFolder), err)
	}
	f, err := r.write(home, free)
	if err != nil {
		return nil, err
	}
	begun = true
	s := &Session{home: home, tree: tree, record: r, file: f, before: p.Seen, units: unitsOf(tree)}
	keepFilled(home, p)
	s.alone = !slices.ContainsFunc(live, func(r record) bool {
		return pathname.Below(r.Scope.Path, p.Path) || pathname.Below(p.Path, r.Scope.Path)
	})
	s.named = namedStates(tree, p.Reported)
	return s, nil
}

// Overlaps reports whether another session lived in the project, above it or below
// it, when this one began.
func (s *Session) Overlaps() bool { return !s.alone }

// Follow does what has time until the session lives. It is called when the
// sandbox has been started.
func (s *Session) Follow() {
	s.sums = sum(s.record.Scope.Path, s.before.Files)
	s.disk = time.AfterFunc(onDiskAfter, func() { onDisk(s.file.Name()) })
}

// unitsOf looks at the places that are told of as one.
func unitsOf(tree *beneath.Folder) map[string]beneath.Stamp {
	units := map[string]beneath.Stamp{}
	for _, unit := range hostrun.Units {
		if what, err := tree.Look(unit.Pattern); err == nil && what.Kind != beneath.Absent {
			units[unit.Pattern] = what.Stamp
		}
	}
	return units
}

// End compares what is there now with what was, and makes harmless what the
// agent made of git's. Nothing may run inside any more. The session's record
// ends, unless something could not be made harmless: then the next launch
// tries again.
func (s *Session) End() Report {
	defer s.file.Close()
	s.sums.stop()
	if s.disk != nil {
		s.disk.Stop()
	}
	tree := s.tree
	defer tree.Close()
	after := s.record.look(tree, &s.before)
	if !s.before.Same || !after.Same { // else it stands there
		keep(s.home, s.record.Scope, after)
	}
	live, dead, _ := others(s.home)
	closeAll(dead)
	s.record.beside = slices.DeleteFunc(live, func(r record) bool {
		return r.Began == s.record.Began && r.ID == s.record.ID
	})
	r := s.record.settle(s.home, tree, after)
	r.compare(s, tree, after)
	r.compareNamed(s, tree)
	r.compareLinks(s, tree)
	r.finish()
	if len(r.Failures) == 0 {
		release(s.file)
	}
	return r
}

// Sweep ends the sessions that were killed. Their reports hold only what was
// made harmless: what else changed since is not known any more. A session whose
// project is not there, as its disk is not mounted, waits for a later launch.
//
// near are folders where one may be that was moved.
func Sweep(home string, near ...string) []Report {
	live, dead, _ := others(home)
	var reports []Report
	var wait waiting
	for _, f := range dead {
		was, ok := read(f)
		if !ok {
			release(f)
			continue
		}
		was.beside = live
		tree := was.find(near)
		if tree == nil {
			wait = append(wait, absent{f, was.Began})
			r := was.killed(f)
			if was.clean(&r); !r.Silent() {
				reports = append(reports, r)
			}
			continue
		}
		reports = append(reports, was.sweep(home, tree, f))
		tree.Close()
	}
	wait.bound(time.Now())
	closeAll(dead)
	return reports
}

func (was record) sweep(home string, tree *beneath.Folder, f *os.File) Report {
	r := was.settle(home, tree, was.look(tree, nil))
	killed := was.killed(f)
	r.Killed, r.Began = killed.Killed, killed.Began
	was.clean(&r)
	r.finish()
	if len(r.Failures) == 0 {
		release(f)
	}
	return r
}

// killed begins the report on a session that was.
func (was record) killed(f *os.File) Report {
	r := Report{Project: was.Scope.Path, Killed: true}
	if info, err := f.Stat(); err == nil {
		r.Began = info.ModTime().UTC().Truncate(time.Second)
	}
	return r
}

// clean does for the user's conversations what the killed session could not.
func (was record) clean(r *Report) {
	for _, dir := range was.Conversations {
		removed, err := state.CleanConversations(dir)
		for _, name := range removed {
			r.add(name, Removed, state.WhyRemoved)
		}
		if err != nil {
			r.Failures = append(r.Failures, "look through your conversations in "+dir+": "+err.Error()+
				"; remove what is no file there before you run Claude Code outside")
		}
	}
}

// settle makes harmless what the agent made, and takes down what it added to
// the index.
func (was record) settle(home string, tree *beneath.Folder, after project.Seen) Report {
	r := Report{Project: was.Scope.Path, Cut: after.Cut, Closed: was.closedInside(after), Failures: was.unseen(after)}
	if err := was.takeDown(home, tree, after); err != nil { // first: what is moved aside may be put back
		r.Failures = append(r.Failures, "take down what was added to git's index: "+err.Error())
	}
	was.mend(&r, home, tree, after)
	was.instance(&r, home)
	r.outside(home, tree, after.NewLinks)
	was.pipes(&r, tree, after.Files)
	return r
}

// takeDown remembers the names that a session added to git's indexes for another
// reason than that it made the files: what was read-only or hidden would be
// so no more next time, and what is not there would not be hidden when the
// user makes it.
func (was record) takeDown(home string, tree *beneath.Folder, after project.Seen) error {
	pushed, held := map[identity.ID][]string{}, map[identity.ID][]string{}
	for _, name := range after.All() {
		what, err := tree.Look(name)
		absent := err == nil && what.Kind == beneath.Absent && was.Scope.MayHide(name)
		counts := slices.Contains(was.Tracked, name) || !absent && !was.covers(tree, name)
		for _, at := range after.Indexed(name) { // any of them may be the last to hold it
			held[at.Git] = append(held[at.Git], at.Name)
			if !counts {
				pushed[at.Git] = append(pushed[at.Git], at.Name)
			}
		}
	}
	if err := was.takeDownHidden(home, tree, after); err != nil {
		return err
	}
	for index, names := range held {
		holds := func(name string) bool {
			return slices.Contains(names, name) || was.Scope.Strip != "" && !strings.HasPrefix(name, was.Scope.Strip)
		}
		if err := rememberPushed(home, index, pushed[index], holds); err != nil {
			return err
		}
	}
	return nil
}

// takeDownHidden remembers what was hidden, for each index that may come to hold
// it: git takes names out of commits, which are the agent's to make.
func (was record) takeDownHidden(home string, tree *beneath.Folder, after project.Seen) error {
	names := map[identity.ID][]string{}
	for _, name := range was.Hidden {
		if what, err := tree.Look(name); err == nil && what.Kind == beneath.Absent {
			continue
		}
		for _, at := range after.Indexed(name) {
			names[at.Git] = append(names[at.Git], at.Name)
		}
	}
	for index, list := range names {
		if err := rememberNames(home, coveredFile(index), list); err != nil {
			return err
		}
	}
	return nil
}

// covers reports whether a name is, or lies below, what was read-only or hidden.
// A folder with something hidden in it can be renamed: the file is known by its
// inode then.
func (was record) covers(tree *beneath.Folder, name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if slices.Contains(was.Covered, name) {
			return true
		}
		if what, err := tree.Look(name); err == nil && slices.Contains(was.Inodes, what.Stamp.Ino) {
			return true
		}
	}
	return false
}

// newFolders are those below which the session made all there is: they are
// told of as one.
func newFolders(before, after project.Seen) []string {
	var list []string
	for _, place := range after.Git {
		dir := path.Dir(place)
		if dir != "." && !before.Saw(dir) {
			list = append(list, dir)
		}
	}
	return list
}

func inAny(rel string, folders []string) bool {
	return slices.ContainsFunc(folders, func(dir string) bool { return strings.HasPrefix(rel, dir+"/") })
}

// relativeTo gives a path below dir by its way from there, others as they are.
func relativeTo(dir, file string) string {
	if file == dir {
		return "."
	}
	if rel, ok := strings.CutPrefix(file, dir+"/"); ok {
		return rel
	}
	return file
}
