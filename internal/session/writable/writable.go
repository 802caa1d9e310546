// Package writable has the folders that an agent may change, while a session runs: what protects them is open before
// the agent starts and watched over, and what the agent left there is settled at the end.
package writable

import (
	"cmp"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/within"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/alarm"
	"claudebox/internal/session/crossing"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/live"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/cover"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/project"
)

// Folders are the folders that an agent may change.
type Folders struct {
	List     []guarded.Folder
	Kept     guarded.Places
	Template string // see [guard.Request]
	Git      *crossing.Git
	Alarm    *alarm.Alarm
	Events   *live.Events
	Process  int // process 1 inside, once there is one

	holds   []*project.Hold // the stand-ins
	reviews []*aftermath.Session
	ending  *aftermath.Ending // nil: it has not begun
	watches []*cover.Watch    // of the covered files
	guards  []*guard.Guard
	looks   sync.Mutex     // at other sessions, while guards serve
	notes   sync.WaitGroup // of remotes of the user's repositories
}

// Hold makes the stand-ins: files and folders that are absent and that mounts have to lie on.
func (f *Folders) Hold() error {
	for _, folder := range f.List {
		hold, err := folder.Hold()
		if err != nil {
			return err
		}
		f.holds = append(f.holds, hold)
		if err := f.Kept.MakeHeld(folder.Project); err != nil {
			return err
		}
	}
	return nil
}

// Release removes the stand-ins.
func (f *Folders) Release() {
	for _, hold := range f.holds {
		hold.Release()
	}
}

// Begin records what is in the folders, to compare with at the end of the session, and opens what watches over them.
// agent says what of the agent's own is compared; mounts are those of the launch.
func (f *Folders) Begin(agent aftermath.Agent, mounts []launch.Mount) error {
	names := map[string]string{} // of sessions, one for each folder
	for _, folder := range f.List {
		names[folder.Path] = rand.Text()[:16]
		agent.Held = guard.InSession(f.Kept.Held(folder.Project), names[folder.Path])
		begun, err := aftermath.Begin(f.Kept.Own, folder.Project, agent)
		if ends := (*aftermath.EndsError)(nil); errors.As(err, &ends) {
			return diag.Wrap("give away "+diag.Name(folder.Path), launch.Again(err), diag.StartAgain)
		}
		if err != nil {
			return err
		}
		f.reviews = append(f.reviews, begun)
		// The first record has the agent's own files; once is enough.
		agent = aftermath.Agent{Ends: agent.Ends, With: begun}
	}
	for _, folder := range f.outerFirst() {
		if err := f.guard(folder, names[folder.Path]); err != nil {
			return err
		}
	}
	return f.watchCovers(mounts)
}

// Rehearse opens what watches over the folders, where that changes nothing outside claudebox's own folder.
func (f *Folders) Rehearse(mounts []launch.Mount) error {
	for _, folder := range f.outerFirst() {
		if f.Kept.IsHeldInGit(folder.Project) {
			continue // it would be made there
		}
		if err := f.Kept.MakeHeld(folder.Project); err != nil {
			return err
		}
		if err := f.guard(folder, "check"); err != nil {
			return err
		}
	}
	return f.watchCovers(mounts)
}

// outerFirst lists the folders, one that lies in another after that.
func (f *Folders) outerFirst() []guarded.Folder {
	return slices.SortedStableFunc(slices.Values(f.List), func(a, b guarded.Folder) int {
		return cmp.Compare(len(a.Path), len(b.Path))
	})
}

// guard opens what holds back what the agent makes in a folder. session is a name that no other session has. One that
// lies in another has that one's guard, which sees what is moved between both: two would not stop to give a repository
// of the user's new files, each as the other has.
func (f *Folders) guard(folder guarded.Folder, session string) error {
	if slices.ContainsFunc(f.guards, func(outer *guard.Guard) bool { return outer.Has(folder.Path) }) {
		return nil
	}
	guarding, err := guard.Open(f.guardRequest(folder, session))
	switch {
	case errors.Is(err, guard.ErrApart), errors.Is(err, guard.ErrNoExchange):
		f.Alarm.Say("what your tools obey unasked is not held back in " + diag.Name(folder.Path) + ": " + err.Error())
	case err != nil:
		return unwatched(folder.Path, err)
	default:
		f.guards = append(f.guards, guarding)
	}
	return nil
}

// watchCovers begins to watch over the covered files, also those of folders that the agent can only read.
func (f *Folders) watchCovers(mounts []launch.Mount) error {
	watch := func(top string, files []cover.File) error {
		watch, err := cover.Open(top, files, f.Alarm.Uncovered)
		if err != nil {
			return unwatched(top, err)
		}
		f.watches = append(f.watches, watch)
		return nil
	}
	known := map[string]bool{}
	for _, folder := range f.List {
		files := covers(folder)
		for _, file := range files {
			known[file.Inside] = true
		}
		if err := watch(folder.Path, files); err != nil {
			return err
		}
	}
	lent := lentCovers(mounts, lending.EmptyFolder(f.Kept.Own), known)
	if len(lent) == 0 {
		return nil
	}
	return watch(lent[0].Top, lent)
}

// unwatched is the error of a launch whose covers cannot be watched over.
func unwatched(folder string, err error) error {
	remedy := diag.StartAgain
	if !errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENOSPC) {
		err = launch.Again(err)
	} else {
		remedy = "end programs that watch files (editors, other sessions), or raise the limits: `sudo sysctl " +
			"fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288`, and keep them in /etc/sysctl.d"
	}
	return &diag.Error{Op: "watch over what is covered in " + folder, Err: err, Remedy: remedy}
}

// LookAgain refuses a secret that came into a folder while the sandbox was set up, where another session lived
// meanwhile; and a cover that is not there. From then on the alarm tells of what is lost. [within.ErrGone]: the sandbox
// is not there.
func (f *Folders) LookAgain(bwrap int) error {
	for i, folder := range f.List {
		if !f.reviews[i].Overlaps() {
			continue
		}
		if rel := folder.Appeared(); rel != "" {
			came := errors.New("it came there while the sandbox was set up")
			return diag.Wrap("hide "+diag.Name(folder.Path+"/"+rel), launch.Again(came),
				diag.StartAgain)
		}
	}
	for _, guarding := range f.guards {
		if err := guarding.Prepare(f.Process); err != nil {
			return diag.Wrap("make ready for repositories that you make in "+diag.Name(guarding.Path),
				launch.Again(err), diag.StartAgain)
		}
	}
	for _, watch := range f.watches {
		if err := watch.Begin(bwrap); errors.Is(err, within.ErrGone) {
			return err
		} else if err != nil {
			return diag.Wrap("cover a file", launch.Again(err),
				diag.StartAgain)
		}
	}
	return nil
}

// Follow begins to hold back what the agent makes. The agent has started.
func (f *Folders) Follow() {
	for _, review := range f.reviews {
		review.Follow()
	}
	for _, guarding := range f.guards {
		guarding.Serve()
	}
}

// Close ends the watches.
func (f *Folders) Close() {
	for _, watch := range f.watches {
		watch.Close()
	}
	for _, guarding := range f.guards {
		for _, rel := range guarding.Close() {
			at := filepath.Join(guarding.Path, rel)
			for _, review := range f.reviews {
				review.AddUsers(at)
			}
			f.Git.SayUsers(at)
		}
	}
	f.notes.Wait()
	for i, review := range f.reviews {
		for _, m := range f.List[i].Mounts {
			if there, err := os.ReadDir(m.Path); m.Mode == project.Own && err == nil && len(there) > 0 {
				review.AddUnseen(m.Path)
			}
		}
	}
	f.watches, f.guards = nil, nil
}

// BeginEnd keeps other sessions from beginning in the folders until the end is over, see [aftermath.Ending].
func (f *Folders) BeginEnd() (over func()) {
	if len(f.reviews) == 0 {
		return func() {}
	}
	var at []string
	for _, folder := range f.List {
		at = append(at, folder.Path)
	}
	ending, err := aftermath.BeginEnd(f.Kept.Own, at)
	if err != nil {
		f.Git.Say(at[0], "what the agent made does not become yours before the next session ends: "+err.Error())
		return func() {}
	}
	f.ending = ending
	return ending.Over
}

// Settle makes repositories of the agent's ones of the user's, and judges what the session left. alone reports whether
// no other session lived in the folders meanwhile. A second call does nothing.
func (f *Folders) Settle(submodules []Submodule) (reports []aftermath.Report, alone bool) {
	alone = f.ending != nil || len(f.reviews) == 0
	if len(f.reviews) > 0 {
		f.adoptRepositories()
		f.bringSubmodules(submodules)
	}
	for _, review := range f.reviews {
		alone = alone && !review.Overlaps()
		reports = append(reports, review.End(reports...))
	}
	f.reviews = nil
	for _, folder := range f.List {
		f.Kept.RemoveHeld(folder.Project)
	}
	return reports, alone
}

// livesAlone reports whether no other session lives in a folder: its agent could write in what is made there.
func (f *Folders) livesAlone() bool {
	f.looks.Lock()
	defer f.looks.Unlock()
	return !slices.ContainsFunc(f.reviews, func(s *aftermath.Session) bool { return !s.IsAlone() })
}

// isAlone is [Folders.livesAlone] at the end, for as long as that lasts: no session begins meanwhile.
func (f *Folders) isAlone() bool { return f.ending != nil && f.livesAlone() }
