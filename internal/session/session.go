// Package session prepares and runs one launch: it finds the plan, the project and the agent's state, and makes
// bwrap's arguments of them. The effects (files, processes, the Nix daemon) meet here; the decisions are made by
// the packages that it calls.
//
// [Prepare] goes from one value to the next: the call, its plan (planned.go), the inputs that all parts of a launch
// are made from, one part for each subject, and the launch that is bound of all parts (bind.go). What is open or
// running while the sandbox lives is in run.go.
package session

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/sandbox/launch"
)

// Caller describes the program that asks for a session.
type Caller struct {
	Stderr   io.Writer  // for warnings and the progress of what takes long
	Terminal bool       // Stderr is a terminal
	Columns  func() int // width of a line of Stderr in characters; 0: unlimited
	Manifest string     // the manifest's file; it may not exist
	Version  string     // of claudebox
}

// Options are the words of the command line, apart from claudebox's commands.
type Options struct {
	Profile, Plan, Network string   // a name or file; a file; a tier. Empty: not given
	Branch, From           string   // work on a checkout of this branch; where a new one begins
	NoBranch               bool     // work in the project, whatever the profile says
	WithChanges            bool     // it begins with what is not committed
	With                   []string // what is copied there besides
	MountRO, MountRW       []string // HOST[:INSIDE]
	Publish                []string // ports inside that this host may reach
	Record                 string   // file for what happens, see [recorder]; empty: none
	NetworkLog             string   // file for the connections and refusals of tiers inet and allow; empty: none
	NoDevshell             bool     // without the project's dev shell
	Refresh                bool     // the dev shell is evaluated again
	Yes                    bool     // start without asking
	NoReport               bool     // say nothing when the session ends
	ReportJSON             string   // file for the report at the end; empty: none
	Words                  []string // for the agent, in order
	Called                 string   // the agent's program as an editor named it, see [agent.Called]; empty: none did
}

// Purpose says what a session is made for.
type Purpose struct {
	Look    bool     // nothing may be made or fetched, but for caches
	Ask     bool     // of a look: the Nix daemon is asked whether what is missing can be had
	Dry     bool     // not even caches may be written
	Command []string // run this instead of the agent
	Keep    bool     // the plan is made to be saved, and may be for another machine
}

// call is one request for a session: who asks, for what, and where. It is all that a session is made of besides
// files. It is complete when [callOf] returns it, and never changes.
type call struct {
	Facts   host.Facts
	caller  Caller
	options Options
	why     Purpose
	folders profiledir.Folders
	heeded  []syscall.Signal // see [launch.Heeded]
	build   string           // state of the running program, which every cache depends on; empty: unknown
}

func newCall(c Caller, o Options, why Purpose) (call, error) {
	facts, err := host.Detect()
	return callOf(c, o, why, facts), cmp.Or(err, o.judge(), profiledir.JudgeHome(facts))
}

func callOf(c Caller, o Options, why Purpose, facts host.Facts) call {
	made := call{
		Facts: facts, caller: c, options: o, why: why, folders: profiledir.FoldersOf(facts, c.Manifest),
		heeded: launch.Heeded(), build: cachefile.State("/proc/self/exe"),
	}
	if !cachefile.Exists(made.build) {
		made.build = ""
	}
	return made
}

// ref is the profile that was asked for.
func (c call) ref() string {
	return cmp.Or(c.options.Profile, c.Facts.Env.Value("CLAUDEBOX_PROFILE", profile.Default))
}

// files gives access to the profiles on this host.
func (c call) files() profiledir.Files { return profiledir.New(c.Facts, c.caller.Manifest) }

// absolute makes a path of the command line absolute and clean. "~" and "~/" stand for the user's home; any other
// relative path starts at the current folder.
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
	inputs
	parts parts
	bound

	keeper   *keeper
	listener *os.File // of the broker's proxy; nil: there is none, or the broker has taken it
	report   report

	conversation string // the last one on the branch
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
	home := lookAtHome(asked)
	planned, err := planner{asked, s.keeper}.plan()
	if err == nil && !why.Look {
		s.report, err = openReport(asked)
	}
	if err == nil {
		s.inputs, err = look(asked, planned, home())
	}
	if !why.Dry {
		s.keeper.writeLater(s.inputs.home.Write)
	}
	if err == nil {
		err = s.make()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// make makes the launch of the session's inputs.
func (s *Session) make() error {
	listener, port, err := listen(s.inputs)
	s.listener = listener
	if err == nil {
		s.parts, err = gather(s.inputs, s.keeper, port)
	}
	if err == nil {
		s.Instance, s.inside = s.parts.instance, s.parts.inside
		s.bound, err = bind(s.inputs, s.parts)
	}
	return err
}

// Close releases all that the session holds. It may be called at any stage of [Prepare].
func (s *Session) Close() error {
	s.listener.Close() // may be nil: then Close only returns an error
	if s.report.folder != nil {
		s.report.folder.Close()
	}
	var home error
	if s.Instance.ID != "" {
		home = s.Instance.Close()
	}
	return errors.Join(home, s.keeper.Close())
}

// Plan makes a plan, and no launch. It neither opens the project nor looks for the agent, so it works in a Nix
// build, too. It refuses --mount-ro and --mount-rw, which belong to a launch, not to a plan.
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
		k.writeNow()
	}
	return found.plan, errors.Join(err, k.Close())
}

// Pager returns the path of claudebox's own less, which is run on the host: no plan or profile chooses it. It is empty
// if there is none.
func (s *Session) Pager() string {
	manifest, err := readManifest(s.caller.Manifest)
	if err != nil {
		return ""
	}
	for _, output := range manifest.Packages["less"].Outputs {
		less := filepath.Join(output, "bin/less")
		if _, err := os.Stat(less); err == nil {
			return less
		}
	}
	return ""
}

// Program returns the path of the program called name on PATH inside; empty if there is none.
func (s *Session) Program(name string) string { return s.inside.Find(name) }

// WhyNot says why the program that a word names cannot be run inside; empty: it can, or that is not known.
func (s *Session) WhyNot(word string) string { return s.inside.Program(word) }

// NamedPath reports whether a word names a path of the host, and returns that path made absolute. A word with a
// slash, or with "~" at its beginning, does; so does one that exists in the current folder.
func (c call) NamedPath(word string) (string, bool) {
	path := c.absolute(word)
	if strings.HasPrefix(word, "~") || strings.Contains(word, "/") {
		return path, true
	}
	_, err := os.Lstat(path)
	return path, err == nil
}
