// Package program is what runs inside: the agent's program with what its loader needs, or a command in its place, and
// the stage before it that enters the project's dev shell.
package program

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent"
	"claudebox/internal/agent/editor"
	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/diag/pattern"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/devshell"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/leak"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/project"
)

// Request is what decides on the program.
type Request struct {
	planning.Call
	Plan    plan.Plan
	Project project.Project
	Branch  string                 // that the agent works on; empty: none
	Policy  []string               // files of this machine's policy for Claude Code
	Has     func(path string) bool // whether the project has a file where the agent works
}

// Part is the program that runs inside, and what its loader needs.
type Part struct {
	launch.Part
	launch.Agent
}

// Of finds the program, and lets it in. k keeps its store paths.
func Of(r Request, k *planning.Keeper) (made Part, err error) {
	if len(r.Purpose.Command) > 0 {
		made.Agent = launch.Agent{Words: r.Purpose.Command, LookUp: true}
		if slices.Equal(r.Purpose.Command, launch.Shell) {
			made.Mount(launch.Mount{
				Kind: plan.File, Source: "bashrc", Destination: launch.ShellFile, Mode: "0444",
				Data: []byte(launch.ShellText), Why: plan.Base,
			})
		}
		return made, nil
	}
	p, adapts := r.Plan, profile.IsAdapter(r.Plan.Agent.Command)
	if called := r.Options.Called; called != "" && (adapts || !agent.Is(called, p.Agent.Name)) {
		return made, diag.Errorf("start "+diag.Name(called), "run another program in the same sandbox with `claudebox "+
			"shell -- PROGRAM`, or put `--` before its path to give that to the agent", "it is not the agent of profile %s, %s",
			p.Profile, cmp.Or(strings.Join(p.Agent.Command, " "), p.Agent.Name))
	}
	program, err := r.Find(p.Agent.Name, p.Agent.Command)
	if err != nil {
		return made, err
	}
	made.Words, made.OwnsTerminal = slices.Concat([]string{program.Path}, program.Args, p.Agent.Args), true
	if err := made.bring(r, k, program); err != nil || !adapts {
		made.Words = append(made.Words, made.sandboxOff(r)...)
		return made, err
	}
	if program, err = r.Find("claude", nil); err != nil {
		return made, err
	}
	words := slices.Concat([]string{program.Path}, program.Args, plan.AgentArgs("claude"), made.sandboxOff(r))
	script := scriptOf(p, "claude", words)
	made.Mount(script)
	made.Set("CLAUDE_CODE_EXECUTABLE", script.Destination, "agent")
	return made, made.bring(r, k, program)
}

// acpWord is a word of a command line by which a program speaks the Agent Client Protocol: its own name, a package's,
// or a flag.
const acpWord pattern.Expr = `(^|[-/])acp($|[@/])`

// Protocol is what the agent, or the command in its place, speaks with an editor or another program that started it.
// Whoever wrote the profile and the command line has chosen that: nothing of the project's decides it.
func (r Request) Protocol() editor.Protocol {
	program, words := slices.Concat([]string{r.Plan.Agent.Name}, r.Plan.Agent.Command), r.Options.Words
	if len(r.Purpose.Command) > 0 {
		program, words = r.Purpose.Command, nil
	}
	all := slices.Concat(program, words)
	says := func(flag string) bool {
		at := slices.Index(all, flag)
		return slices.Contains(all, flag+"=stream-json") || at >= 0 && slices.Contains(all[at+1:], "stream-json")
	}
	if r.Plan.Agent.Name == "claude" {
		words = nil // a prompt may speak of it
	}
	switch {
	case says("--input-format") && says("--output-format"):
		return editor.Stream
	case slices.ContainsFunc(slices.Concat(program, words), func(word string) bool {
		return strings.Contains(word, "acp") && acpWord.Matches(word) // few launches compile it
	}):
		return editor.ACP
	}
	return ""
}

// bring lets a program in, with what its loader needs.
func (made *Part) bring(r Request, k *planning.Keeper, program agent.Program) error {
	made.wear(r, program.Env)
	made.Note(program.Notes...)
	for _, m := range mountsOfAgent(program) {
		if !made.Has(m.Destination) {
			made.Mount(m)
		}
	}
	made.Libraries = made.Libraries || program.Libraries
	if !program.Store || r.Plan.Nix.Store != "closure" {
		return nil
	}
	paths, err := closureOf(r, k, program.Path)
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

// Find looks an agent up, by the name or by the command of a profile.
func (r Request) Find(name string, command []string) (agent.Program, error) {
	p := r.Plan
	return agent.Find(agent.Request{
		Name: name, Command: command,
		Pinned: plan.ToolPath(p, resolve.ToolAgent), Node: plan.ToolPath(p, resolve.ToolNode),
		PlanHasLoader: plan.ToolPath(p, resolve.ToolLoader) != "" && p.Compat == "nix-ld", Inside: p.Path,
		Path: r.Facts.Env.Value("PATH", ""), Project: r.Project.Path, Home: r.Facts.Home, UID: r.Facts.UID,
		GID: r.Facts.GID, Flake: r.Caller.Flake(),
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
func (made *Part) sandboxOff(r Request) []string {
	if r.Plan.Agent.Name != "claude" {
		return nil
	}
	const limit = 1 << 20
	isOn := func(file string) bool {
		content, err := smallfile.Read(file, limit)
		sandbox := object.Parse(object.Parse(content)["sandbox"])
		return err == nil && object.As[bool](sandbox["enabled"])
	}
	for _, file := range r.Policy {
		if isOn(file) {
			made.LeaveRed("setting", file+" switches Claude Code's own sandbox on, which cannot be made inside "+
				"claudebox's: where it also says failIfUnavailable, it does not start")
		}
	}
	for _, name := range []string{"settings.json", "settings.local.json"} {
		if rel := filepath.Join(".claude", name); isOn(filepath.Join(r.Project.Path, rel)) ||
			isOn(filepath.Join(r.Project.Dir, rel)) {
			made.Leave("setting", "the project's "+rel+" switches Claude Code's own sandbox on, and --settings "+
				"switches it off: claudebox is the sandbox")
			return []string{"--settings", `{"sandbox":{"enabled":false}}`}
		}
	}
	return nil
}

// wear sets inside what a wrapper of the agent exports, but for what enters as a variable of the user's does.
func (made *Part) wear(r Request, exported []string) {
	for _, entry := range exported {
		name, value, _ := strings.Cut(entry, "=")
		switch what := leak.Variable(name, value); {
		case Enters(r.Plan, name):
		case what != "":
			made.Leave("variable", name+" of your wrapper of "+r.Plan.Agent.Name+
				" does not enter: it is probably a secret; `secrets: [{env: "+name+", hosts: [HOST]}]` uses it from outside")
		case profile.Effect(name) == "":
			made.Set(name, value, "your wrapper")
		}
	}
}

// closureOf returns the closure of a program of the store; nil if the plan's own closure has the program. The
// daemon is asked once for as long as the path is the same one: a valid path loses nothing that it refers to.
func closureOf(r Request, k *planning.Keeper, program string) (paths []string, err error) {
	root, err := storepath.Of(program)
	if err != nil || slices.Contains(r.Plan.Pins.Closure, root) {
		return nil, err
	}
	file, key := filepath.Join(r.Folders.Cache, "agent-closure"), root+" "+cachefile.State(root)
	if paths, ok := keptClosure(file, key); ok {
		return paths, nil
	}
	err = planning.Interruptible(r.Heeded, func(ctx context.Context) (err error) {
		paths, err = planning.Closure(ctx, k.Store(), []string{root})
		return err
	})
	if err == nil && !r.Purpose.Dry {
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
