// Package session makes one launch of what the caller asked for: from profile
// and host through plan, project and state to the words for bwrap. Here the
// effects meet; what is decided is decided by the packages it brings together.
package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// Caller is what called for a session.
type Caller struct {
	Stderr   io.Writer  // for warnings and the progress of what takes long
	Terminal bool       // Stderr is one
	Columns  func() int // how many characters a line of Stderr may have; 0: any number
	Manifest string     // the manifest's file; it may not exist
	Version  string     // claudebox's own
}

// profiles are those that lie on this host.
func (c Caller) profiles(f host.Facts) profiledir.Files {
	return profiledir.New(f, c.Manifest)
}

// flake is where claudebox was built from, if that is known and still there.
func (c Caller) flake() string {
	const longest = 4 << 10
	text, err := smallfile.Read(filepath.Join(filepath.Dir(c.Manifest), "flake"), longest)
	if err != nil {
		return ""
	}
	flake := strings.TrimSpace(string(text))
	if storepath.Check(flake) != nil || unix.Access(filepath.Join(flake, "flake.nix"), unix.R_OK) != nil {
		return ""
	}
	return flake
}

// Options are what was asked for, beside the profile.
type Options struct {
	Profile, Plan, Network string   // a name or file; a file; a tier. Empty: not said
	MountRO, MountRW       []string // HOST[:INSIDE]
	Publish                []string // ports inside that this host may reach
	NetworkLog             string   // the file for what the proxy of tier allow decides; empty: none
	Yes                    bool     // without the question
	DryRun                 bool     // show, and run nothing
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

// Session is one launch with what it was made from.
type Session struct {
	call
	Launch   launch.Launch
	Instance state.Instance

	planned planned
	keeper  *keeper
	shared
	led     []string          // see [call.ledElsewhere]
	linked  map[string]string // sources of mounts that were reached by a link which an agent could have made
	covered []string          // files of the user's own folders that do not enter
	report  report
	network outside
	secrets secrets
	keys    keys
	nix     nixInside
	git     userGit
}

// Close lets go of what the session held. It may be called at any stage.
func (s *Session) Close() error {
	s.nix.close()
	s.release()
	s.network.close()
	s.secrets.close()
	s.keys.close()
	var home error
	if s.Instance.ID != "" {
		home = s.Instance.Close()
	}
	return errors.Join(home, s.keeper.Close())
}

// Prepare makes a session: from the facts of the host through plan and
// project to the launch. With Purpose.Look it changes nothing.
func Prepare(c Caller, o Options, why Purpose) (*Session, error) {
	facts, err := host.Detect()
	if err != nil {
		return nil, err
	}
	if facts.UID == 0 {
		return nil, diag.Errorf("start as root", "run claudebox as the user who owns the project",
			"the agent would have root's own id, inside and outside")
	}
	s := newSession(newCall(c, o, why, facts))
	s.planned, err = s.planner().plan()
	if err == nil {
		err = s.bind(s.planned.plan)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func newSession(c call) *Session {
	return &Session{
		call: c, keeper: &keeper{call: c},
		network: outside{call: c}, secrets: secrets{call: c}, keys: keys{call: c}, nix: nixInside{call: c},
		git: userGit{c, map[string]gitFile{}}, linked: map[string]string{},
	}
}

func (s *Session) planner() planner { return planner{s.call, s.keeper} }

// Plan makes the plan of a launch and stops there. It looks at no project and
// for no agent, so a build of Nix can make one. Mounts of flags belong to a
// launch, not to a plan.
func Plan(c Caller, o Options, why Purpose) (plan.Plan, error) {
	facts, err := host.Detect()
	if err != nil {
		return plan.Plan{}, err
	}
	if len(o.MountRO)+len(o.MountRW) > 0 {
		return plan.Plan{}, diag.Errorf("make a plan", "name the folder in the profile's `mounts`",
			"--mount-ro and --mount-rw stand in no plan")
	}
	asked := newCall(c, o, why, facts)
	k := &keeper{call: asked}
	found, err := planner{asked, k}.plan()
	if !why.Look {
		k.keepNow()
	}
	return found.plan, errors.Join(err, k.Close())
}

// bind gathers what the plan's late values stand for, and binds them.
func (s *Session) bind(p plan.Plan) error {
	var err error
	if !s.why.Look {
		s.sweep()
		err = s.openReport()
	}
	if err != nil {
		return err
	}
	s.led = s.ledElsewhere()
	if s.project, err = s.openProject(p); err != nil {
		return err
	}
	if err := s.secrets.find(p, s.project.Root); err != nil {
		return err
	}
	if s.Instance, err = s.lookAtState(p); err != nil {
		return err
	}
	notes, err := judgeExtraEnv(s.Facts.Env)
	if err != nil {
		return err
	}
	h := launch.Host{
		Notes: notes,
		Facts: s.Facts, Etc: host.ReadEtc(s.Facts.Env), Project: s.project.Path, Dir: s.project.Dir,
		State: s.Instance.Dir, Words: s.options.Words, Seccomp: seccomp.Filter(), Ignored: s.ignored,
		ExtraEnv: extraEnv(s.Facts.Env),
	}
	for _, step := range []func(*launch.Host, plan.Plan) error{
		addTools, s.network.add, s.addAgent, s.addGit, s.nix.add, s.addMounts, s.addState, s.addLimits, s.addRemarks,
		s.addSecrets,
	} {
		if err := step(&h, p); err != nil {
			return err
		}
	}
	if h.Mounts, err = launch.Mounts(p, h, s.real); err != nil {
		return err
	}
	if err := s.judgeWritables(h.Mounts); err != nil {
		return err
	}
	if err := s.guardBeside(&h, p); err != nil {
		return err
	}
	if err := s.judgeSearchPlaces(); err != nil {
		return err
	}
	if s.Launch, err = launch.Bind(p, h); err != nil {
		return err
	}
	if n := s.Launch.ByBwrap(); n > manyMounts {
		s.Launch.Notes = append(s.Launch.Notes, fmt.Sprintf(
			"%d mounts: the cost of starting grows with their square; mount whole folders", n))
	}
	s.warnOfLinks()
	return cmp.Or(s.secrets.judgeFiles(p, s.Launch.Mounts), s.judgeSources())
}

// manyMounts is where mounts begin to cost what a person feels: 200 take
// 40 ms.
const manyMounts = 150

func (s *Session) openProject(p plan.Plan) (project.Project, error) {
	opened, err := project.Open(s.request(p))
	unseen := opened.Cut && !slices.Contains(p.Show, "**")
	if err == nil && unseen && !s.why.Look && (s.options.Yes || !p.Asks()) {
		err = diag.Errorf("hide the project's secret files",
			"start without --yes, in a subfolder, or say `show: [\"**\"]` in the profile to hide nothing",
			"it has more entries than are looked at, and nobody is asked")
	}
	return opened, err
}

// request is what package project is asked for the project.
func (s *Session) request(p plan.Plan) project.Request {
	return project.Request{
		Dir: s.Facts.Cwd, Home: s.Facts.Home, UID: s.Facts.UID, Own: s.ownFolders(), Never: secretPaths(),
		Build: s.build, GitRoot: p.Project == "git-root", WritableConfig: p.Git.Config == "writable",
		Strict: p.Protect.Mode == "strict", Worktrees: p.Beside, Protect: p.Protect.Globs, Hide: p.Hide, Show: p.Show,
		Orders:  slices.Concat(s.planned.orders, s.led),
		UserGit: s.git.all(),
		Memory:  aftermath.NewMemory(s.folders.Home),
		Filled:  func(dir string) project.Filled { return aftermath.Filled(s.folders.Home, dir) },
		Known:   func(scope project.Scope) *project.Seen { return aftermath.Known(s.folders.Home, scope) },
	}
}

// secretPaths are the paths of the host that no sandbox may see (SAND-09).
func secretPaths() []string {
	list := make([]string, len(profile.SecretPaths))
	for i, s := range profile.SecretPaths {
		list[i] = s.Path
	}
	return list
}

// orders are the files of the command line that say what a sandbox may do. In
// the project an agent could change what the next one may.
func orders(f host.Facts, o Options) []string {
	ref := profileRef(f, o)
	var list []string
	if profile.IsFile(ref) {
		list = append(list, profiledir.New(f, "").Absolute(ref, diag.Position{}))
	}
	if o.Plan != "" {
		list = append(list, profiledir.New(f, "").Absolute(o.Plan, diag.Position{}))
	}
	return list
}

func addTools(h *launch.Host, p plan.Plan) error {
	h.Bwrap, h.Env = plan.ToolPath(p, resolve.ToolBwrap), plan.ToolPath(p, resolve.ToolEnv)
	h.CanLay = launch.CanLay()
	if h.OwnPIDs = launch.CanOwnPIDs(); !h.OwnPIDs {
		h.Notes = append(h.Notes, "process 2 is not seen in /proc here: a `kill -9` of claudebox while the sandbox "+
			"is set up could leave it running")
	}
	if h.Etc.Certificates == "" {
		h.Etc.Certificates = plan.ToolPath(p, resolve.ToolCacert)
	}
	return nil
}

// addAgent finds the program that runs inside, and what its loader needs.
func (s *Session) addAgent(h *launch.Host, p plan.Plan) error {
	if len(s.why.Command) > 0 {
		h.Agent, h.LookUp = s.why.Command, true
		return nil
	}
	program, err := agent.Find(agent.Request{
		Name: p.Agent.Name, Command: p.Agent.Command,
		Pinned: plan.ToolPath(p, resolve.ToolAgent), Node: plan.ToolPath(p, resolve.ToolNode),
		Loader: plan.ToolPath(p, resolve.ToolLoader) != "" && p.Compat == "nix-ld", Inside: p.Path,
		Path: s.Facts.Env.Value("PATH", ""), Project: s.project.Path, Home: s.Facts.Home, UID: s.Facts.UID,
		GID:   s.Facts.GID,
		Flake: s.caller.flake(),
	})
	if err != nil {
		return err
	}
	h.Owns = true
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

func agentMount(m agent.Mount) launch.Mount {
	kind := plan.ROBind
	if m.Link {
		kind = plan.Symlink
	}
	return launch.Mount{Kind: kind, Source: m.Source, Destination: m.Destination, Why: "agent"}
}

// addGit makes the sandbox's .gitconfig from the identity that git would pick
// for this folder. No git is run: it would obey the project's configuration.
func (s *Session) addGit(h *launch.Host, p plan.Plan) error {
	identity, err := usergit.Pick(usergit.Sources{
		Files: usergit.Files(s.Facts.Home, s.Facts.Env.Get), Home: s.Facts.Home,
		Repo: repoOf(s.project, s.Facts.Cwd), ReadFile: s.git.read, Canonical: filepath.EvalSymlinks,
	}, s.Facts.Env.Get)
	if err != nil {
		return &diag.Error{
			Op: "read the git identity", Err: err,
			Remedy: "mend the file; `git config --list` says the same",
		}
	}
	if missing := identity.Missing(); missing != "" {
		h.Notes = append(h.Notes, "git commits nothing inside: "+missing+" is not set; outside: "+
			"git config --global "+missing+" …")
	}
	access := usergit.Access{SSHToHTTPS: p.Git.SSHToHTTPS, NoSSH: !isInside(p, "ssh")}
	for _, host := range p.Git.Hosts {
		access.Hosts = append(access.Hosts, usergit.Host{Name: host.Host, Variable: host.Variable})
		if token, _ := s.Facts.Env.Get(host.Variable); token == "" {
			h.Notes = append(h.Notes, "git cannot log in to "+host.Host+": "+host.Variable+" is not set")
		}
	}
	s.addGitHabits(h, p, identity)
	s.keys.add(h, p, identity, &access)
	h.Gitconfig = usergit.Make(identity, safeDirectories(s.project), access)
	return nil
}

// addRemarks adds what a person should know before the start.
func (s *Session) addRemarks(h *launch.Host, p plan.Plan) error {
	if len(s.planned.missing) > 0 {
		h.Notes = append(h.Notes,
			"not in the store yet, to be fetched or built: "+strings.Join(s.planned.missing, ", "))
	}
	changed, notes := overrides(p, s.Facts.Env)
	h.Overrides = changed
	h.Notes = append(h.Notes, notes...)
	addMissed(h, p, s.Facts.Env)
	addNotes(h, "", s.project)
	if p.Network.Tier == "full" && !launch.ClosesAbstractSockets() {
		h.Warnings = append(h.Warnings,
			"this kernel cannot close abstract sockets: X11 and D-Bus of this machine are within reach")
	}
	h.Notes = append(h.Notes, s.planned.remarks...)
	h.Notes = append(h.Notes, s.unseenWords()...)
	return nil
}

// foldersNamed are flags of Claude Code that take a path; the value is shown
// a notice when it is not inside.
var foldersNamed = []string{"--add-dir", "--settings", "--mcp-config", "--plugin-dir"}

// unseenWords lists which paths among the agent's words are not inside.
func (s *Session) unseenWords() []string {
	words := s.options.Words
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
		if err == nil && value != "" && value[0] != '{' && !pathname.Below(path, s.project.Path) {
			notes = append(notes, flag+" "+value+" is not visible inside; add --mount-ro or --mount-rw "+value)
		}
	}
	return notes
}

// extraEnv reads CLAUDEBOX_EXTRA_ENV, a list with commas (SAND-03b).
func extraEnv(env host.Environment) []string {
	var names []string
	for name := range strings.SplitSeq(env.Value(extraVariable, ""), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

const extraVariable = "CLAUDEBOX_EXTRA_ENV"

// judgeExtraEnv refuses what is no name of a variable, and says which are not
// set: nothing that was asked for is left out in silence.
func judgeExtraEnv(env host.Environment) (notes []string, err error) {
	for _, name := range extraEnv(env) {
		if !launch.IsName(name) {
			return nil, diag.Errorf("read "+extraVariable,
				"write names with commas between: "+extraVariable+"=GH_TOKEN,AWS_PROFILE",
				"%q is not the name of a variable", name)
		}
		if _, set := env.Get(name); !set {
			notes = append(notes, name+" of "+extraVariable+" is not set here")
		}
		if what := profile.Effect(name); what != "" {
			notes = append(notes, name+" of "+extraVariable+" "+what)
		}
	}
	return notes, nil
}
