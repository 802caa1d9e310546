package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"claudebox/internal/agent"
	"claudebox/internal/audit"
	"claudebox/internal/diag"
	"claudebox/internal/gitconfig"
	"claudebox/internal/host"
	"claudebox/internal/launch"
	"claudebox/internal/nixdaemon"
	"claudebox/internal/plan"
	"claudebox/internal/project"
	"claudebox/internal/resolve"
	"claudebox/internal/seccomp"
	"claudebox/internal/state"
	"claudebox/internal/storepath"
)

// session is one launch with what it was made from.
type session struct {
	facts    host.Facts
	folders  folders
	orders   []string // profile and plan, where the caller named files
	ignored  []string // signals that the caller ignores
	project  project.Project
	instance state.Instance
	launch   launch.Launch
	missing  []string         // packages that a dry run did not fetch
	held     *nixdaemon.Store // keeps store paths alive; nil when nothing has to
}

// close lets go of what the session held. It may be called at any stage.
func (s *session) close() error {
	var store, home error
	if s.held != nil {
		store = s.held.Close()
	}
	if s.instance.ID != "" {
		home = s.instance.Close()
	}
	return errors.Join(home, store)
}

// view is how the session is shown on a stream.
func (s session) view(w io.Writer) audit.View {
	v := audit.View{Home: s.facts.Home, Width: 80}
	if isTerminal(w) {
		v.Colour = s.facts.Env.Value("NO_COLOR", "") == ""
		if width, _, err := term.GetSize(int(w.(*os.File).Fd())); err == nil && width > 0 {
			v.Width = width
		}
	}
	return v
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// purpose says what a session is made for.
type purpose struct {
	look    bool     // nothing may be made or fetched, but for caches
	dry     bool     // not even caches may be written
	command []string // run this instead of the agent
}

// prepare makes a session: from the facts of the host through plan and
// project to the launch. With purpose.look it changes nothing.
func prepare(sys System, o options, why purpose) (session, error) {
	facts, err := host.Detect()
	if err != nil {
		return session{}, err
	}
	if facts.UID == 0 {
		return session{}, diag.Errorf("start as root", "run claudebox as the user who owns the project",
			"the agent would have root's own id, inside and outside")
	}
	s := session{facts: facts, folders: foldersOf(facts), orders: orders(facts, o), ignored: ignoredSignals()}
	p, err := s.choosePlan(sys, o, why)
	if err != nil {
		return session{}, err
	}
	if err := refuseUnbuilt(p); err != nil {
		return session{}, err
	}
	if err := s.bind(p, o, why); err != nil {
		s.close()
		return session{}, err
	}
	return s, nil
}

// bind gathers what the plan's late values stand for, and binds them.
func (s *session) bind(p plan.Plan, o options, why purpose) error {
	var err error
	if s.project, err = s.openProject(p); err != nil {
		return err
	}
	if s.instance, err = s.lookAtState(p); err != nil {
		return err
	}
	h := launch.Host{
		Facts: s.facts, Etc: host.ReadEtc(s.facts.Env), Project: s.project.Path, Dir: s.project.Dir,
		State: s.instance.Dir, Words: o.words, Seccomp: seccomp.Filter(), Ignored: s.ignored,
		ExtraEnv: extraEnv(s.facts.Env), Real: s.real,
	}
	for _, step := range []func(*launch.Host, plan.Plan, options, purpose) error{
		s.addTools, s.addAgent, s.addGit, s.addDaemon, s.addMounts, s.addState, s.addRemarks,
	} {
		if err := step(&h, p, o, why); err != nil {
			return err
		}
	}
	if s.launch, err = launch.Bind(p, h); err != nil {
		return err
	}
	if len(s.launch.Mounts) > manyMounts {
		s.launch.Notes = append(s.launch.Notes, fmt.Sprintf(
			"%d mounts: the cost of starting grows with their square; mount whole folders", len(s.launch.Mounts)))
	}
	return s.judgeSources()
}

// manyMounts is where mounts begin to cost what a person feels: 200 take
// 40 ms.
const manyMounts = 150

func (s *session) openProject(p plan.Plan) (project.Project, error) {
	return project.Open(project.Request{
		Dir: s.facts.Cwd, Home: s.facts.Home, UID: s.facts.UID, Own: s.folders.own(), Never: secretPaths(),
		GitRoot: p.Project == "git-root", WritableConfig: p.Git.Config == "writable",
		Strict: p.Protect.Mode == "strict", Protect: p.Protect.Globs, Orders: s.orders,
	})
}

// orders are the files of the command line that say what a sandbox may do. In
// the project an agent could change what the next one may.
func orders(f host.Facts, o options) []string {
	ref := o.profile
	if ref == "" {
		ref = f.Env.Value("CLAUDEBOX_PROFILE", "")
	}
	var list []string
	if isProfileFile(ref) {
		list = append(list, newProfileFiles(f).absolute(ref, diag.Position{}))
	}
	if o.plan != "" {
		list = append(list, newProfileFiles(f).absolute(o.plan, diag.Position{}))
	}
	return list
}

func (s *session) addTools(h *launch.Host, p plan.Plan, _ options, _ purpose) error {
	h.Bwrap, h.Env = plan.ToolPath(p, resolve.ToolBwrap), plan.ToolPath(p, resolve.ToolEnv)
	if h.OwnPIDs = launch.CanOwnPIDs(); !h.OwnPIDs {
		h.Notes = append(h.Notes, "process 2 is not seen in /proc here: a `kill -9` of claudebox while the sandbox is set up could leave it running")
	}
	if h.Etc.Certificates == "" {
		h.Etc.Certificates = plan.ToolPath(p, resolve.ToolCacert)
	}
	return nil
}

// addAgent finds the program that runs inside, and what its loader needs.
func (s *session) addAgent(h *launch.Host, p plan.Plan, _ options, why purpose) error {
	if len(why.command) > 0 {
		h.Agent, h.LookUp = why.command, true
		return nil
	}
	program, err := agent.Find(agent.Request{
		Name: p.Agent.Name, Command: p.Agent.Command,
		Pinned: plan.ToolPath(p, resolve.ToolAgent), Node: plan.ToolPath(p, resolve.ToolNode),
		Loader: plan.ToolPath(p, resolve.ToolLoader) != "" && p.Compat == "nix-ld", Inside: p.Path,
		Path: s.facts.Env.Value("PATH", ""), Project: s.project.Path, Home: s.facts.Home, UID: s.facts.UID, GID: s.facts.GID,
	})
	if err != nil {
		return err
	}
	h.Agent = slices.Concat([]string{program.Path}, program.Args, p.Agent.Args)
	h.Libraries = program.Libraries
	h.Notes = append(h.Notes, program.Notes...)
	for _, m := range program.Mounts {
		h.Mounts = append(h.Mounts, agentMount(m))
	}
	if program.Store && p.Nix.Store == "closure" {
		return s.addClosure(h, p, program.Path)
	}
	return nil
}

// addClosure mounts what a program of the store refers to beyond the plan's
// own closure.
func (s *session) addClosure(h *launch.Host, p plan.Plan, program string) error {
	root, err := storepath.Of(program)
	if err != nil {
		return err
	}
	var paths []string
	err = s.interruptible(func(ctx context.Context) (err error) {
		paths, err = closure(ctx, s.store(), []string{root})
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range paths {
		if !slices.ContainsFunc(p.Mounts, func(m plan.Mount) bool { return m.Destination == path }) {
			h.Mounts = append(h.Mounts, launch.Mount{Kind: plan.ROBind, Source: path, Destination: path, Why: "agent"})
		}
	}
	return nil
}

func agentMount(m agent.Mount) launch.Mount {
	kind := plan.ROBind
	if m.Link {
		kind = plan.Symlink
	}
	return launch.Mount{Kind: kind, Source: m.Source, Destination: m.Destination, Why: "agent"}
}

// addGit makes the sandbox's .gitconfig from the identity that git would pick
// for this folder. No git is run: it would obey the project's configuration.
func (s *session) addGit(h *launch.Host, _ plan.Plan, _ options, _ purpose) error {
	identity, err := gitconfig.Pick(gitconfig.Sources{
		Files: gitconfig.Files(s.facts.Home, s.facts.Env.Get), Home: s.facts.Home,
		Repo: s.project.Identity(s.facts.Cwd), ReadFile: readGitFile, Canonical: filepath.EvalSymlinks,
	}, s.facts.Env.Get)
	if err != nil {
		return &diag.Error{Op: "read the git identity", Err: err, Remedy: "mend the file; `git config --list` says the same"}
	}
	h.Gitconfig = gitconfig.Make(identity, s.project.SafeDirectories())
	return nil
}

// addRemarks adds what a person should know before the start.
func (s *session) addRemarks(h *launch.Host, p plan.Plan, o options, _ purpose) error {
	if len(s.missing) > 0 {
		h.Notes = append(h.Notes, "not in the store yet, to be fetched or built: "+strings.Join(s.missing, ", "))
	}
	changed, notes := overrides(p, s.facts.Env)
	h.Overrides = changed
	h.Notes = append(h.Notes, notes...)
	for _, n := range s.project.Notes {
		if n.Red {
			h.Warnings = append(h.Warnings, n.Text)
			continue
		}
		h.Notes = append(h.Notes, n.Text)
	}
	if p.Network.Tier == "full" && !launch.ClosesAbstractSockets() {
		h.Warnings = append(h.Warnings, "this kernel cannot close abstract sockets: X11 and D-Bus of this machine are within reach")
	}
	h.Notes = append(h.Notes, s.unseenWords(o.words)...)
	return nil
}

// foldersNamed are flags of Claude Code that take a path; the value is shown
// a notice when it is not inside.
var foldersNamed = []string{"--add-dir", "--settings", "--mcp-config", "--plugin-dir"}

// unseenWords tells which paths among the agent's words are not inside.
func (s *session) unseenWords(words []string) []string {
	var notes []string
	for i, word := range words {
		flag, value, inline := strings.Cut(word, "=")
		if !slices.Contains(foldersNamed, flag) {
			continue
		}
		if !inline && i+1 < len(words) {
			value = words[i+1]
		}
		path, err := filepath.Abs(value)
		if err == nil && value != "" && value[0] != '{' && !isBelow(path, s.project.Path) {
			notes = append(notes, flag+" "+value+" is not visible inside; add --mount-ro or --mount-rw "+value)
		}
	}
	return notes
}

func isBelow(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// extraEnv reads CLAUDEBOX_EXTRA_ENV, a list with commas (SAND-03b).
func extraEnv(env host.Environment) []string {
	var names []string
	for name := range strings.SplitSeq(env.Value("CLAUDEBOX_EXTRA_ENV", ""), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
