package session

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"claudebox/internal/agent"
	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/editor"
	"claudebox/internal/agent/login"
	"claudebox/internal/agent/object"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/devshell"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/ask"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/leak"
	"claudebox/internal/session/gituse"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// agentPart is the program that runs inside, and what its loader needs.
type agentPart struct {
	launch.Part
	launch.Agent
}

func agentOf(in inputs, k *planning.Keeper) (made agentPart, err error) {
	if len(in.Purpose.Command) > 0 {
		made.Agent = launch.Agent{Words: in.Purpose.Command, LookUp: true}
		if slices.Equal(in.Purpose.Command, launch.Shell) {
			made.Mount(launch.Mount{
				Kind: plan.File, Source: "bashrc", Destination: launch.ShellFile, Mode: "0444",
				Data: []byte(launch.ShellText), Why: plan.Base,
			})
		}
		return made, nil
	}
	p, adapts := in.Plan, profile.IsAdapter(in.Plan.Agent.Command)
	if called := in.Options.Called; called != "" && (adapts || !agent.Is(called, p.Agent.Name)) {
		return made, diag.Errorf("start "+diag.Name(called), "run another program in the same sandbox with `claudebox "+
			"shell -- PROGRAM`, or put `--` before its path to give that to the agent", "it is not the agent of profile %s, %s",
			p.Profile, cmp.Or(strings.Join(p.Agent.Command, " "), p.Agent.Name))
	}
	program, err := findAgent(in, p.Agent.Name, p.Agent.Command)
	if err != nil {
		return made, err
	}
	made.Words, made.OwnsTerminal = slices.Concat([]string{program.Path}, program.Args, p.Agent.Args), true
	if err := made.bring(in, k, program); err != nil || !adapts {
		made.Words = append(made.Words, made.sandboxOff(in)...)
		return made, err
	}
	if program, err = findAgent(in, "claude", nil); err != nil {
		return made, err
	}
	words := slices.Concat([]string{program.Path}, program.Args, plan.AgentArgs("claude"), made.sandboxOff(in))
	script := scriptOf(p, "claude", words)
	made.Mount(script)
	made.Set("CLAUDE_CODE_EXECUTABLE", script.Destination, "agent")
	return made, made.bring(in, k, program)
}

// acpWord is a word of a command line by which a program speaks the Agent Client Protocol: its own name, a package's,
// or a flag.
var acpWord = regexp.MustCompile(`(^|[-/])acp($|[@/])`)

// protocol is what the agent, or the command in its place, speaks with an editor or another program that started it.
// Whoever wrote the profile and the command line has chosen that: nothing of the project's decides it.
func (in inputs) protocol() editor.Protocol {
	program, words := slices.Concat([]string{in.Plan.Agent.Name}, in.Plan.Agent.Command), in.Options.Words
	if len(in.Purpose.Command) > 0 {
		program, words = in.Purpose.Command, nil
	}
	all := slices.Concat(program, words)
	says := func(flag string) bool {
		at := slices.Index(all, flag)
		return slices.Contains(all, flag+"=stream-json") || at >= 0 && slices.Contains(all[at+1:], "stream-json")
	}
	if in.Plan.Agent.Name == "claude" {
		words = nil // a prompt may speak of it
	}
	switch {
	case says("--input-format") && says("--output-format"):
		return editor.Stream
	case slices.ContainsFunc(slices.Concat(program, words), acpWord.MatchString):
		return editor.ACP
	}
	return ""
}

// bring lets a program in, with what its loader needs.
func (made *agentPart) bring(in inputs, k *planning.Keeper, program agent.Program) error {
	made.wear(in, program.Env)
	made.Note(program.Notes...)
	for _, m := range mountsOfAgent(program) {
		if !slices.ContainsFunc(made.Mounts, func(o launch.Mount) bool { return o.Destination == m.Destination }) {
			made.Mount(m)
		}
	}
	made.Libraries = made.Libraries || program.Libraries
	if !program.Store || in.Plan.Nix.Store != "closure" {
		return nil
	}
	paths, err := closureOfAgent(in, k, program.Path)
	made.Closure = append(made.Closure, paths...)
	return err
}

// scriptOf mounts a script on PATH, behind all else, that starts an agent with the words that it always gets.
func scriptOf(p plan.Plan, name string, words []string) launch.Mount {
	script := "#!" + plan.ToolPath(p, resolve.ToolBash) + "\nexec"
	for _, word := range words {
		script += " " + diag.Quote(word)
	}
	return launch.Mount{
		Kind: plan.File, Source: "agent", Destination: filepath.Join(devshell.Programs, name), Mode: "0555",
		Data: []byte(script + " \"$@\"\n"), Why: "agent",
	}
}

// findAgent looks an agent up, by the name or by the command of a profile.
func findAgent(in inputs, name string, command []string) (agent.Program, error) {
	p := in.Plan
	return agent.Find(agent.Request{
		Name: name, Command: command,
		Pinned: plan.ToolPath(p, resolve.ToolAgent), Node: plan.ToolPath(p, resolve.ToolNode),
		PlanHasLoader: plan.ToolPath(p, resolve.ToolLoader) != "" && p.Compat == "nix-ld", Inside: p.Path,
		Path: in.Facts.Env.Value("PATH", ""), Project: in.project.Path, Home: in.Facts.Home, UID: in.Facts.UID,
		GID: in.Facts.GID, Flake: in.Caller.Flake(),
	})
}

// mountsOfAgent are the mounts of a program and of what its loader needs.
func mountsOfAgent(program agent.Program) (list []launch.Mount) {
	for _, m := range program.Mounts {
		kind := plan.ROBind
		if m.Link {
			kind = plan.Symlink
		}
		list = append(list, launch.Mount{Kind: kind, Source: m.Source, Destination: m.Destination, Why: "agent"})
	}
	return list
}

// sandboxOff returns the words that switch off Claude Code's own sandbox where the project's settings switch it on:
// none can be made inside this one. What a policy of this machine says cannot be switched off, and is named.
func (made *agentPart) sandboxOff(in inputs) []string {
	if in.Plan.Agent.Name != "claude" {
		return nil
	}
	const limit = 1 << 20
	isOn := func(file string) bool {
		content, err := smallfile.Read(file, limit)
		sandbox := object.Parse(object.Parse(content)["sandbox"])
		return err == nil && object.As[bool](sandbox["enabled"])
	}
	for _, file := range in.policy.Files {
		if isOn(file) {
			made.LeaveRed("setting", file+" switches Claude Code's own sandbox on, which cannot be made inside "+
				"claudebox's: where it also says failIfUnavailable, it does not start")
		}
	}
	for _, name := range []string{"settings.json", "settings.local.json"} {
		if rel := filepath.Join(".claude", name); isOn(filepath.Join(in.project.Path, rel)) ||
			isOn(filepath.Join(in.project.Dir, rel)) {
			made.Leave("setting", "the project's "+rel+" switches Claude Code's own sandbox on, and --settings "+
				"switches it off: claudebox is the sandbox")
			return []string{"--settings", `{"sandbox":{"enabled":false}}`}
		}
	}
	return nil
}

// wear sets inside what a wrapper of the agent exports, but for what enters as a variable of the user's does.
func (made *agentPart) wear(in inputs, exported []string) {
	for _, entry := range exported {
		name, value, _ := strings.Cut(entry, "=")
		switch what := leak.Variable(name, value); {
		case entersFromSettings(in.Plan, name):
		case what != "":
			made.Leave("variable", name+" of your wrapper of "+in.Plan.Agent.Name+
				" does not enter: it is probably a secret; `secrets: [{env: "+name+", hosts: [HOST]}]` uses it from outside")
		case profile.Effect(name) == "":
			made.Set(name, value, "your wrapper")
		}
	}
}

// closureOfAgent returns the closure of a program of the store; nil if the plan's own closure has the program. The
// daemon is asked once for as long as the path is the same one: a valid path loses nothing that it refers to.
func closureOfAgent(in inputs, k *planning.Keeper, program string) (paths []string, err error) {
	root, err := storepath.Of(program)
	if err != nil || slices.Contains(in.Plan.Pins.Closure, root) {
		return nil, err
	}
	file, key := filepath.Join(in.Folders.Cache, "agent-closure"), root+" "+cachefile.State(root)
	if paths, ok := keptClosure(file, key); ok {
		return paths, nil
	}
	err = planning.Interruptible(in.Heeded, func(ctx context.Context) (err error) {
		paths, err = planning.Closure(ctx, k.Store(), []string{root})
		return err
	})
	if err == nil && !in.Purpose.Dry {
		cachefile.Write(file, []byte(key+"\n"+strings.Join(paths, "\n")))
	}
	return paths, err
}

// keptClosure reads the paths that were cached in file. It reports whether they are for key and all still there.
func keptClosure(file, key string) ([]string, bool) {
	first, rest, _ := strings.Cut(string(cachefile.Read(file)), "\n")
	paths := strings.Split(rest, "\n")
	gone := func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil || storepath.Check(path) != nil
	}
	return paths, first == key && !slices.ContainsFunc(paths, gone)
}

// apiKey is the variable that makes the agent use a key instead of the login.
const apiKey = "ANTHROPIC_API_KEY"

// lookAtState finds the instance of this project, and what is to be made of it, see [state.Look].
func lookAtState(in inputs) (state.Instance, error) {
	p := in.Plan
	req := state.Request{
		Request: agenthome.Request{
			Home: in.Folders.Home, UserHome: in.Facts.Home, Config: movedConfig(in.Facts),
			Trusted: slices.Compact([]string{in.project.Path, in.project.Dir}),
			Status:  "claudebox " + p.Profile + " · " + p.Network.Tier, Servers: p.MCP,
			Refusals: ask.Program + " --" + ask.Refusals,
		},
		Later: true, UID: in.Facts.UID, Kind: state.Kind(p.State), Root: in.project.InstanceRoot,
		Caches: plan.CacheFolders(),
	}
	for _, folder := range p.Agent.Home { // that is kept beside ~/.claude
		req.Folders = append(req.Folders, plan.KeptFolder(folder))
	}
	if of, is := agenthome.Others[p.Agent.Name]; is {
		req.Other, req.Theirs = p.Agent.Name, filepath.Join(in.Facts.Home, of.Folder)
		if moved := in.Facts.Env.Value(of.Moved, ""); filepath.IsAbs(moved) {
			req.Theirs = filepath.Clean(moved)
		}
	}
	if slices.ContainsFunc(in.project.Mounts, func(m project.Mount) bool { return isDirenv(in.project, m) }) {
		req.Folders = append(req.Folders, direnvFolder(in.project))
	}
	if slices.ContainsFunc(p.Env, func(e plan.Env) bool { return e.Name == apiKey && e.From == plan.FromHost }) {
		req.APIKey, _ = in.Facts.Env.Get(apiKey)
	}
	if p.Network.Tier == profile.TierNone {
		req.APIKey = ""
	}
	if in.secrets.Used {
		req.APIKey = cmp.Or(in.secrets.Placeholder(apiKey), req.APIKey)
		if p.Agent.Name == "claude" {
			req.AskTokens, req.Key = in.secrets.AskTokens(in.Caller.Version), in.secrets.Key()
		}
	}
	found, err := state.Look(req)
	for _, line := range found.Mended {
		diag.Note(in.Caller.Stderr, line)
	}
	return found, err
}

// IsLogin reports whether a canonical path is that of the user's Claude login, or
// of the agent's inside, which has the same.
func (s *Session) IsLogin(real string) bool {
	home, err := beneath.Leads(filepath.Join(configFolder(s.Facts), login.FileName))
	return s.Instance.ID != "" && real != "" && (real == s.Instance.Login.File || err == nil && real == home)
}

// homeOf mounts the folders and files that the agent's home leads to. It returns the links in them.
func homeOf(in inputs) (made launch.Part, links []lending.Link, err error) {
	for _, of := range in.Instance.Imports {
		m := launch.Mount{
			Kind: plan.ROBind, Source: of.Source, Destination: of.Destination, Open: true, Why: lending.WhyClaude,
		}
		if strings.HasPrefix(of.At, agenthome.Beside) {
			m.Why = "your ~/" + agenthome.Others[in.Plan.Agent.Name].Folder
		}
		if of.Writable {
			m.Kind, m.Why = plan.Bind, "your conversations"
			made.Mount(m)
			continue
		}
		made.Mount(m)
		if of.File {
			continue
		}
		lent, found, whole, err := in.lending().Cover(of.Source, of.Destination)
		if err == nil && !whole && !slices.Contains(in.Plan.Show, "**") {
			err = diag.Errorf("look for secrets in "+of.Source,
				"take away what you do not need, or say `show: [\"**\"]` in the profile",
				"it has more than %d entries", project.LentLimit)
		}
		if err != nil {
			return made, nil, err
		}
		made.Add(lent)
		below, isBelow := strings.CutPrefix(of.Own, in.Facts.Home)
		ours := isBelow && of.Source == beneath.Real(in.Facts.Home)+below
		for _, rel := range found {
			links = append(links, lending.Link{
				Kind: of.Kind, At: filepath.Join(of.Source, rel), Inside: of.Destination + "/" + rel, Ours: ours,
				Why: m.Why,
			})
		}
	}
	return made, links, nil
}

// furnish looks at the files of the agent's home by what is inside, and says what of the user's does not enter.
func furnish(in inputs) (found state.Instance, said launch.Part, err error) {
	found = in.Instance
	if found.ID == "" { // it could not be found, see [Checkup]
		return found, said, nil
	}
	err = found.Furnish(in.inside.Program, in.seesFile, in.secrets.NotSent)
	said.Note(found.Notes...)
	said.Left = found.Left
	if of := agenthome.Others[in.Plan.Agent.Name]; of.Login != "" {
		_, outside := os.Stat(filepath.Join(in.Facts.Home, of.Login))
		_, inside := os.Lstat(filepath.Join(found.Dir, plan.KeptFolder(of.Login)))
		if outside == nil && inside != nil {
			said.Leave("login", "your login of "+in.Plan.Agent.Name+" stays outside: log in inside, once for each "+
				"project")
		}
	}
	return found, said, err
}

// seesFile is [view.View.File], by which the files that claudebox makes in the agent's home are there.
func (in inputs) seesFile(word string) string {
	name, _ := in.inside.Expand(word)
	rel, _ := pathname.Cut(name, filepath.Join(in.Facts.Home, ".claude"))
	if slices.ContainsFunc(agenthome.Files, func(f agenthome.File) bool { return f.Name == rel }) {
		return ""
	}
	return in.inside.File(word)
}

// Bounds of the search for secrets in the user's folders that enter: a person waits for it before being asked.
const (
	mostFiles = 2000
	mostBytes = 64 << 10 // of a file
)

// JudgeImports notes what looks like a secret in the user's own agents,
// commands, skills and the like, which the agent can read. It takes
// some milliseconds, so only callers who show the launch to a person use it.
func (s *Session) JudgeImports() {
	isCover := func(name string) bool {
		return slices.ContainsFunc(s.Launch.Mounts, func(m launch.Mount) bool {
			return m.Source == name && m.Why == launch.WhyHidden
		})
	}
	left := mostFiles
	for _, in := range s.Instance.Imports {
		_ = filepath.WalkDir(in.Source, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || !d.Type().IsRegular() || isCover(name):
				return nil // what cannot be read by the user cannot be by the agent
			case left == 0:
				return fs.SkipAll
			}
			left--
			if content, err := smallfile.Read(name, mostBytes); err == nil {
				if what := leak.Text(string(content)); what != "" {
					s.Launch.Notes = append(s.Launch.Notes, diag.Name(name)+" enters, and holds what looks like "+what)
				}
			}
			return nil
		})
	}
	if left == 0 {
		s.Launch.Notes = append(s.Launch.Notes,
			fmt.Sprintf("of the folders of your ~/.claude, %d files were looked at for secrets, not all", mostFiles))
	}
}

// noteMoved says where what was kept for a project is that was moved.
func noteMoved(p *launch.Part, in inputs) {
	if in.Plan.State != string(state.Project) {
		return
	}
	if id, from := state.Moved(in.Folders.Home, in.project.InstanceRoot); id != "" {
		p.Warn("nothing is kept for this project yet; if it was at " + diag.Name(from) + " before, " +
			"`claudebox instance move " + id + "` brings its conversations along")
	}
}

// MoveInstance gives the project that the caller stands in what was kept for it where it was before.
func MoveInstance(c planning.Caller, o planning.Options, id string) (said string, err error) {
	found, dir, err := keptFor(c, o)
	if err != nil {
		return "", err
	}
	from, err := state.Move(filepath.Dir(filepath.Dir(dir)), id, found.InstanceRoot)
	if err != nil {
		return "", err
	}
	said = "what was kept for " + diag.Name(from) + " is kept for " + diag.Name(found.InstanceRoot) + " now"
	if HasWaiting(dir) {
		said += "; what had not crossed from the agent's git folder is in " + filepath.Join(dir, handover.Folder)
	}
	return said, nil
}

// InstanceDir is the folder that is kept for the project the caller stands in, whether it is there yet or not.
func InstanceDir(c planning.Caller, o planning.Options) (string, error) {
	_, dir, err := keptFor(c, o)
	return dir, err
}

// keptFor is the project that the caller stands in, and the folder that is kept for it.
func keptFor(c planning.Caller, o planning.Options) (found project.Project, dir string, err error) {
	asked, prof, err := planning.LookUpProfile(c, o)
	if err != nil {
		return found, "", err
	}
	of := planning.Planned{Plan: plan.Plan{Project: string(prof.Project)}}
	found, err = openProject(inputs{Call: asked, Planned: of, userGit: gituse.ReadConfig(asked.Facts)})
	if err != nil {
		return found, "", err
	}
	dir, err = state.Dir(asked.Folders.Home, state.Kind(prof.State), found.InstanceRoot)
	return found, dir, err
}
