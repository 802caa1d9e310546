// Package session makes one launch of what the caller asked for: from profile
// and host through plan, project and state to the words for bwrap. Here the
// effects meet; what is decided is decided by the packages it brings together.
//
// [Prepare] is the way from one value to the next: the call, its plan
// (planned.go), the ground that a launch stands on, a part of it for each
// subject, and the launch that is bound of all parts (bind.go). What is open or
// running while the sandbox lives stands beside them, in run.go.
package session

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
)

// Caller is what called for a session.
type Caller struct {
	Stderr   io.Writer  // for warnings and the progress of what takes long
	Terminal bool       // Stderr is one
	Columns  func() int // how many characters a line of Stderr may have; 0: any number
	Manifest string     // the manifest's file; it may not exist
	Version  string     // claudebox's own
}

// Options are what was asked for, beside the profile.
type Options struct {
	Profile, Plan, Network string   // a name or file; a file; a tier. Empty: not said
	MountRO, MountRW       []string // HOST[:INSIDE]
	Publish                []string // ports inside that this host may reach
	NetworkLog             string   // the file for what the proxy of tier allow decides; empty: none
	Yes                    bool     // without the question
	NoReport               bool     // say nothing when the session ends
	ReportJSON             string   // file for what is said then; empty: none
	Words                  []string // the agent's, in order
}

// Purpose says what a session is made for.
type Purpose struct {
	Look    bool     // nothing may be made or fetched, but for caches
	Dry     bool     // not even caches may be written
	Command []string // run this instead of the agent
	Keep    bool     // a plan is made to be kept, and may be for another machine
}

// call is who calls for a session, for what, and where: all that it is made of
// besides files. It is complete when it is made, and never changes.
type call struct {
	Facts   host.Facts
	caller  Caller
	options Options
	why     Purpose
	folders profiledir.Folders
	ignored []string // signals that the caller ignores
	build   string   // state of the running program, which every cache depends on; empty: it is not known
}

func newCall(c Caller, o Options, why Purpose) (call, error) {
	facts, err := host.Detect()
	return callOf(c, o, why, facts), err
}

func callOf(c Caller, o Options, why Purpose, facts host.Facts) call {
	made := call{
		Facts: facts, caller: c, options: o, why: why,
		folders: profiledir.FoldersOf(facts, c.Manifest), ignored: ignoredSignals(),
	}
	if state := cachefile.State("/proc/self/exe"); cachefile.Known(state) {
		made.build = state
	}
	return made
}

// ref is the profile that was asked for.
func (c call) ref() string {
	return cmp.Or(c.options.Profile, c.Facts.Env.Value("CLAUDEBOX_PROFILE", profile.Default))
}

// files are the profiles that lie on this host.
func (c call) files() profiledir.Files { return profiledir.New(c.Facts, c.caller.Manifest) }

// absolute is a path of the command line: from the current folder, from the
// user's home when it begins with "~", or absolute.
func (c call) absolute(path string) string {
	switch rest, tilde := strings.CutPrefix(path, "~"); {
	case tilde && (rest == "" || rest[0] == '/'):
		return filepath.Join(c.Facts.Home, rest)
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(c.Facts.Cwd, path)
}

// Session is one launch with what it was made from, and what is open for it.
type Session struct {
	ground
	parts parts
	bound

	keeper   *keeper
	listener *os.File // of the broker's proxy; nil: it has none, or has taken it
	report   report
}

// Prepare makes a session: from the facts of the host through plan and
// project to the launch. With Purpose.Look it changes nothing. The caller
// closes it.
func Prepare(c Caller, o Options, why Purpose) (*Session, error) {
	asked, err := newCall(c, o, why)
	if err != nil {
		return nil, err
	}
	if asked.Facts.UID == 0 {
		return nil, diag.Errorf("start as root", "run claudebox as the user who owns the project",
			"the agent would have root's own id, inside and outside")
	}
	s := &Session{keeper: &keeper{call: asked}}
	planned, err := planner{asked, s.keeper}.plan()
	if err == nil && !why.Look {
		s.report, err = openReport(asked)
	}
	if err == nil {
		s.ground, err = look(asked, planned)
	}
	var port int
	if err == nil {
		s.listener, port, err = listen(s.ground)
	}
	if err == nil {
		s.parts, err = gather(s.ground, s.keeper, port)
	}
	if err == nil {
		s.bound, err = bind(s.ground, s.parts)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close lets go of what the session held. It may be called at any stage.
func (s *Session) Close() error {
	if s.listener != nil {
		s.listener.Close()
	}
	if s.report.folder != nil {
		s.report.folder.Close()
	}
	var home error
	if s.Instance.ID != "" {
		home = s.Instance.Close()
	}
	return errors.Join(home, s.keeper.Close())
}

// Plan makes the plan of a launch and stops there. It looks at no project and
// for no agent, so a build of Nix can make one. Mounts of flags belong to a
// launch, not to a plan.
func Plan(c Caller, o Options, why Purpose) (plan.Plan, error) {
	asked, err := newCall(c, o, why)
	if err != nil {
		return plan.Plan{}, err
	}
	if len(o.MountRO)+len(o.MountRW) > 0 {
		return plan.Plan{}, diag.Errorf("make a plan", "name the folder in the profile's `mounts`",
			"--mount-ro and --mount-rw stand in no plan")
	}
	k := &keeper{call: asked}
	found, err := planner{asked, k}.plan()
	if !why.Look {
		k.keepNow()
	}
	return found.plan, errors.Join(err, k.Close())
}

// Program is the file of a program on PATH inside; empty: there is none.
func (s *Session) Program(name string) string {
	for _, dir := range s.Launch.Plan.Path {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// NamedPath reports whether a word names a path of the host, and which: what holds
// a slash does, and what is there in the current folder.
func (c call) NamedPath(word string) (string, bool) {
	path := c.absolute(word)
	if strings.HasPrefix(word, "~") || strings.Contains(word, "/") {
		return path, true
	}
	_, err := os.Lstat(path)
	return path, err == nil
}
