package program

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/aside"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/devshell"
	"claudebox/internal/nix/inside"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/nixuse"
	"claudebox/internal/workspace/project"
)

// DevshellPart is the stage that makes the environment of the project's dev shell inside, and what is known of it.
type DevshellPart struct {
	launch.Part
	Stage  *launch.Devshell // nil: none is looked for
	state  string           // the folder on the host where Nix inside keeps its state
	folder string           // the folder of the dev shell, below state
}

// Devshell decides whether the sandbox looks for a dev shell. What it is, and whether there is one, is found out
// inside: here only the names of files count, so a project without any of them costs nothing.
func Devshell(r Request, nix nixuse.Part, runs Part) (made DevshellPart, err error) {
	want := r.Plan.Devshell
	if want.Flake == "" && want.File == "" || r.Options.NoDevshell {
		if r.Facts.Env.Value("IN_NIX_SHELL", "")+r.Facts.Env.Value("DIRENV_DIR", "") != "" {
			made.Note("the dev shell that you are in does not enter; `devshell: auto` gives the agent the project's")
		}
		return made, nil
	}
	dir, name := r.Project.Dir, cmp.Or(want.File, want.Flake)
	if want.Flake == profile.DevshellAuto {
		if dir, name = nearest(r, ".envrc", "flake.nix"); name == "" {
			made.noteFile(r)
			return made, nil
		}
		made.noteEnvrc(r)
	}
	if nix.Store == "" {
		const why = "it needs `nix: {daemon: own}`, and a store of the sandbox's own"
		if want.Require {
			return made, diag.Errorf("enter the project's dev shell", "leave it out with --no-devshell", why)
		}
		made.Note("no dev shell: " + why)
		return made, nil
	}
	program, err := aside.Program(devshell.Program)
	if err != nil {
		return made, err
	}
	// A branch's files are others than those of the user's folder, at the same path.
	made.state, made.folder = inside.Var(nix.Store), devshell.FolderOf(dir, want.File, want.Flake, r.Branch)
	request := devshell.Request{
		Flake: want.Flake, File: want.File, Project: r.Project.Path, Dir: r.Project.Dir, System: r.Plan.System,
		Nix: plan.ToolPath(r.Plan, resolve.ToolNix), Bash: plan.ToolPath(r.Plan, resolve.ToolBash),
		Env: plan.ToolPath(r.Plan, resolve.ToolEnv), State: filepath.Join(inside.StateInner, made.folder),
		Hook: !want.NoHook, Require: want.Require, Wait: want.Wait, Vars: want.Vars, Watch: want.Watch,
		Refused: plan.AgentVariables(), Packages: ownFolders(r.Plan), Network: r.Plan.Network.Tier,
		Refresh: r.Options.Refresh, Typed: slices.Equal(r.Purpose.Command, launch.Shell),
	}
	text, err := json.Marshal(request)
	if err != nil {
		return made, err
	}
	made.Stage = &launch.Devshell{Before: []string{devshell.ProgramInner}, Only: r.Options.Refresh}
	made.Stage.Shown = name + ", which is evaluated inside, before the agent"
	if record, known := devshell.Look(made.state, made.folder); known {
		made.Stage.Shown = record.Brief()
	}
	made.Mount(
		launch.Mount{Kind: plan.ROBind, Source: program, Destination: devshell.ProgramInner, Why: plan.Base},
		// Claude Code reads what is written there as it does the notes on the sandbox, which are made before.
		launch.Mount{
			Kind: plan.Tmpfs, Destination: devshell.Rules, Mode: "0755", Size: devshell.RulesSize, Why: plan.Base,
		},
		launch.Mount{
			Kind: plan.File, Source: "devshell", Destination: devshell.RequestInner, Mode: "0444", Data: text,
			Why: plan.Base,
		})
	made.addAgent(r, runs)
	return made, nil
}

// addAgent puts the agent on PATH, behind all else, so that `nix develop -c claude` finds it; with the words that it
// always gets. One that is not found is missed only by who calls it.
func (p *DevshellPart) addAgent(r Request, runs Part) {
	name, words := r.Plan.Agent.Name, runs.Words
	if len(r.Purpose.Command) == 0 && profile.IsAdapter(r.Plan.Agent.Command) {
		return // it has its own, for what it starts
	}
	if len(r.Purpose.Command) > 0 || len(r.Plan.Agent.Command) > 0 {
		name = "claude"
		program, err := r.Find(name, nil)
		if err != nil || program.Libraries {
			return
		}
		words = slices.Concat([]string{program.Path}, program.Args, plan.AgentArgs(name))
		for _, m := range mountsOfAgent(program) {
			if !runs.Has(m.Destination) {
				p.Mount(m)
			}
		}
	}
	p.Mount(scriptOf(r.Plan, name, words))
}

// DevshellFiles are the files by which it is decided whether there is a dev shell: all that can be in the folder of a
// launch, and in those above it in the project.
func DevshellFiles(p project.Project) (list []string) {
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		for _, name := range []string{".envrc", "flake.nix", "shell.nix", "default.nix", "devenv.nix", "devbox.json"} {
			list = append(list, filepath.Join(dir, name))
		}
		if dir == p.Path || dir == "/" {
			return list
		}
	}
}

// nearest returns the folder of a launch, or the nearest above it in the project, that has one of some of
// [DevshellFiles], and the name of the file; an empty one if there is none.
func nearest(r Request, names ...string) (folder, name string) {
	for _, file := range DevshellFiles(r.Project) {
		if slices.Contains(names, filepath.Base(file)) && r.Has(file) {
			return filepath.Dir(file), filepath.Base(file)
		}
	}
	return r.Project.Path, ""
}

// noteFile says how a dev shell comes inside that is no flake's, and that no .envrc names.
func (p *DevshellPart) noteFile(r Request) {
	dir, name := nearest(r, "shell.nix", "default.nix", "devenv.nix", "devbox.json")
	file, err := filepath.Rel(r.Project.Path, filepath.Join(dir, name))
	switch {
	case name == "" || err != nil:
	case strings.HasPrefix(name, "dev"):
		p.Note(file + " makes no dev shell here: " + otherwise)
	default:
		p.Note(file + " is not entered unasked; `devshell: {file: " + file +
			"}` in a profile does it, or `use nix` in .envrc")
	}
}

// otherwise is how programs and variables come inside without a dev shell.
const otherwise = "in the profile `packages` brings programs, and `env` or `extra_env_passthrough` variables"

// noteEnvrc says which lines of .envrc count for nothing inside. It is read in the user's folder, also for a branch.
func (p *DevshellPart) noteEnvrc(r Request) {
	const limit = 64 << 10
	if dir, name := nearest(r, ".envrc"); name != "" {
		content, _ := smallfile.Read(filepath.Join(dir, name), limit)
		p.LeaveAll("direnv line", "of .envrc only `use flake` and `use nix` count inside, and not: ALL; "+otherwise,
			devshell.NotRead(string(content)))
	}
}

// ownFolders counts the folders of PATH that are those of the profile's packages, which come first.
func ownFolders(p plan.Plan) int {
	_, base := p.Packages()
	for i, dir := range p.Path {
		for _, pkg := range base {
			if slices.ContainsFunc(pkg.Outputs, func(o plan.Output) bool { return dir == o.Path+"/bin" }) {
				return i
			}
		}
	}
	return len(p.Path)
}

// Look is what is known of the dev shell by what was made once, if anything is.
func (p DevshellPart) Look() (devshell.Record, bool) { return devshell.Look(p.state, p.folder) }

// Report says for people what the dev shell gives, why there is none, and what Nix and the hook said. want is the
// plan's.
func (p DevshellPart) Report(want plan.Devshell) string {
	if p.Stage == nil {
		why := "the project has no flake.nix and no .envrc, and the profile names none"
		if len(p.Notes) > 0 {
			why = strings.Join(p.Notes, "; ")
		} else if want.Flake == "" && want.File == "" {
			why = "the profile says `devshell: off`"
		}
		return "no dev shell: " + why + "\n"
	}
	record, known := p.Look()
	if !known {
		return "dev shell: " + p.Stage.Shown + "; `claudebox devshell --refresh` does it now\n"
	}
	return record.Report(time.Now()) + devshell.Log(p.state, p.folder)
}
