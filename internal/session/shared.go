package session

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/cover"
	"claudebox/internal/workspace/project"
)

// shared are the folders that the agent may change: the project, and those that
// are mounted read-write beside it.
type shared struct {
	project project.Project
	beside  []beside
	holding []*project.Hold // of all, in their order
}

func (s *shared) all() []project.Project {
	list := []project.Project{s.project}
	for _, b := range s.beside {
		list = append(list, b.Project)
	}
	return list
}

// isMoved reports whether a folder lies at another path inside than out here.
func (s *shared) isMoved(folder project.Project) bool {
	return slices.ContainsFunc(s.beside, func(b beside) bool { return b.Path == folder.Path && b.at != b.Path })
}

// hold makes the placeholders that the mounts of the folders rely on, and what
// stands in for folders that are hidden.
func (s *shared) hold(empty string) error {
	hides := false
	for _, folder := range s.all() {
		hold, err := folder.Hold()
		if err != nil {
			return err
		}
		s.holding = append(s.holding, hold)
		hides = hides || slices.ContainsFunc(folder.Mounts, hidesFolder)
	}
	if !hides {
		return nil
	}
	if err := os.Mkdir(empty, 0o555); err != nil && !errors.Is(err, fs.ErrExist) {
		return &diag.Error{Op: "make " + empty, Err: diag.Cause(err), Remedy: "make its folder writable for you"}
	}
	return nil
}

// release takes the placeholders away.
func (s *shared) release() {
	for _, hold := range s.holding {
		hold.Release()
	}
}

// begin writes down what lies in the folders, for the end of the session. On an
// error it returns what was begun till then. home is CLAUDEBOX_HOME.
func (s *shared) begin(home string, agent aftermath.Agent) (after []*aftermath.Session, err error) {
	for _, folder := range s.all() {
		begun, err := aftermath.Begin(home, folder, agent)
		if err != nil {
			return after, err
		}
		after = append(after, begun)
		agent = aftermath.Agent{} // once is enough
	}
	return after, nil
}

// lookAgain refuses a secret that came into a folder while the sandbox was set
// up. It looks only where another session lived meanwhile.
func (s *shared) lookAgain(after []*aftermath.Session) error {
	for i, folder := range s.all() {
		if !after[i].Overlaps() {
			continue
		}
		if rel := folder.Appeared(); rel != "" {
			return diag.Errorf("hide "+folder.Path+"/"+rel, "start again",
				"it came there while the sandbox was set up: another session, or a program of yours, works there")
		}
	}
	return nil
}

// watch keeps the files of the folders covered while the session runs. tell gets
// those that could not be.
func (s *shared) watch(bwrap int, tell func(file string, err error)) (watches []*cover.Watch) {
	for _, folder := range s.all() {
		if !s.isMoved(folder) {
			watches = append(watches, cover.Begin(bwrap, folder.Path, covers(folder), tell))
		}
	}
	return watches
}
