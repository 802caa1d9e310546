// Package agentstate finds the agent's home for a launch, what enters it of the user's own, and what does not.
package agentstate

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/login"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/ask"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/session/brokering"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/planning"
	"claudebox/internal/session/program"
	"claudebox/internal/ui/why"
	"claudebox/internal/workspace/project"
)

// apiKey is the variable that makes the agent use a key instead of the login.
const apiKey = "ANTHROPIC_API_KEY"

// Request says for which launch.
type Request struct {
	planning.Call
	Plan    plan.Plan
	Project project.Project
	Secrets brokering.Secrets
}

// Look finds the instance of the project, and what is to be made of it, see [state.Look].
func (r Request) Look() (state.Instance, error) {
	p := r.Plan
	req := state.Request{
		Request: agenthome.Request{
			Home: r.Folders.Home, UserHome: r.Facts.Home, Config: program.MovedConfig(r.Facts),
			Trusted: slices.Compact([]string{r.Project.Path, r.Project.Dir}),
			Main:    r.Project.InstanceRoot,
			Status:  "claudebox " + p.Profile + " · " + p.Network.Tier, Servers: p.MCP,
			Refusals: ask.Program + " --" + ask.Refusals,
		},
		Later: true, UID: r.Facts.UID, Kind: state.Kind(p.State), Root: r.Project.InstanceRoot,
		Caches: plan.CacheFolders(),
	}
	for _, folder := range p.Agent.Home { // that is kept beside ~/.claude
		req.Folders = append(req.Folders, plan.KeptFolder(folder))
	}
	req.Folders = append(req.Folders, r.points()...)
	if of, is := agenthome.Others[p.Agent.Name]; is {
		req.Other, req.Theirs = p.Agent.Name, theirsOf(r.Facts, of)
	}
	if slices.ContainsFunc(r.Project.Mounts, func(m project.Mount) bool { return guarded.IsDirenv(r.Project, m) }) {
		req.Folders = append(req.Folders, guarded.DirenvFolder(r.Project))
	}
	if slices.ContainsFunc(p.Env, func(e plan.Env) bool { return e.Name == apiKey && e.From == plan.FromHost }) {
		req.APIKey, _ = r.Facts.Env.Get(apiKey)
	}
	if p.Network.Tier == profile.TierNone {
		req.APIKey = ""
	}
	if r.Secrets.Used {
		req.APIKey = cmp.Or(r.Secrets.Placeholder(apiKey), req.APIKey)
		if p.Agent.Name == "claude" {
			req.AskTokens, req.Key = r.Secrets.AskTokens(r.Caller.Version), r.Secrets.Key()
		}
	}
	found, err := state.Look(req)
	for _, line := range found.Mended {
		diag.Note(r.Caller.Stderr, line)
	}
	return found, err
}

// points are the folders of the instance over which folders of the user's are mounted, below ~/.cache.
func (r Request) points() (list []string) {
	home := r.Facts.Home
	add := func(source, destination string) {
		rel, below := pathname.Cut(destination, home+"/.cache")
		info, err := os.Stat(source)
		if below && rel != "" && err == nil && info.IsDir() {
			list = append(list, "cache/"+rel)
		}
	}
	for _, word := range slices.Concat(r.Options.MountRO, r.Options.MountRW) {
		add(r.Facts.Sides(word))
	}
	late := strings.NewReplacer("${home}", home, "${project}", r.Project.Path)
	for _, m := range r.Plan.Mounts {
		add(late.Replace(m.Source), late.Replace(m.Destination))
	}
	return list
}

// OwnFolders are those in which the user has what is theirs for Claude Code, and for all agents.
func OwnFolders(c planning.Call) (list []string) {
	own := agenthome.Request{UserHome: c.Facts.Home, Config: program.MovedConfig(c.Facts)}
	for _, folder := range own.OwnFolders() {
		list = append(list, folder.Own)
	}
	return list
}

// IsLogin reports whether a canonical path is that of the user's Claude login, or of the agent's inside, which has the
// same.
func IsLogin(facts host.Facts, found state.Instance, real string) bool {
	home, err := beneath.Leads(filepath.Join(program.ConfigFolder(facts), login.FileName))
	return found.ID != "" && real != "" && (real == found.Login.File || err == nil && real == home)
}

// Entering mounts what the agent's home leads to.
type Entering struct {
	launch.Part
	Links []lending.Link // in what is mounted
}

// Mounts mounts the folders and files that the agent's home leads to.
func (r Request) Mounts(found state.Instance, host lending.Host) (made Entering, err error) {
	for _, of := range found.Imports {
		m := launch.Mount{
			Kind: plan.ROBind, Source: of.Source, Destination: of.Destination, Open: true, Why: lending.WhyClaude,
		}
		if of.At == "" {
			m.Why = "your ~/.agents"
		} else if strings.HasPrefix(of.At, agenthome.Beside) {
			m.Why = "your ~/" + agenthome.Others[r.Plan.Agent.Name].Folder
		}
		if of.Writable {
			m.Kind, m.Why = plan.Bind, "your conversations"
			made.Mount(m)
			continue
		}
		if of.File {
			if why, _ := host.Refuse(of.Source); why != "" {
				made.LeaveRed("file", "your "+of.Source+" does not enter: "+why)
			} else {
				made.Mount(m)
			}
			continue
		}
		made.Mount(m)
		lent, there, whole, err := host.Cover(of.Source, of.Destination, true)
		if err == nil && !whole && !slices.Contains(r.Plan.Show, "**") {
			err = diag.Errorf("look for secrets in "+of.Source,
				"take away what you do not need, or say `show: [\"**\"]` in the profile",
				"it has more than %d entries", project.LentLimit)
		}
		if err != nil {
			return made, err
		}
		made.Add(lent)
		below, isBelow := strings.CutPrefix(of.Own, r.Facts.Home)
		ours := isBelow && of.Source == beneath.Real(r.Facts.Home)+below
		for _, rel := range there {
			made.Links = append(made.Links, lending.Link{
				Kind: of.Kind, At: filepath.Join(of.Source, rel), Inside: of.Destination + "/" + rel, Ours: ours,
				Why: m.Why,
			})
		}
	}
	return made, nil
}

// Furnished is the agent's home with its files, and what is to be said of them.
type Furnished struct {
	state.Instance
	Said launch.Part
}

// Furnish looks at the files of the agent's home by what is inside, and says what of the user's does not enter.
func (r Request) Furnish(found state.Instance, inside *view.View) (Furnished, error) {
	if found.ID == "" { // it could not be found, as `claudebox check` tells
		return Furnished{Instance: found}, nil
	}
	err := found.Furnish(inside.Program, r.Sees(inside), r.Secrets.NotSent, r.Reaches)
	var said launch.Part
	said.Note(found.Notes...)
	said.Left = found.Left
	if of := agenthome.Others[r.Plan.Agent.Name]; of.Login != "" {
		theirs := theirsOf(r.Facts, of)
		if (isThere(r.Facts.Home, of.Login) || isThere(theirs, filepath.Base(of.Login))) &&
			!isThere(found.Dir, plan.KeptFolder(of.Login)) {
			said.Leave("login", "your login of "+r.Plan.Agent.Name+" stays outside: log in inside, once for each "+
				"project")
		}
		if of.Keys != "" && isThere(theirs, of.Keys) {
			said.Leave("key", "keys in your "+diag.Name(filepath.Join(theirs, of.Keys))+" stay outside: one that is "+
				"set in the environment is used from there")
		}
	}
	return Furnished{found, said}, err
}

// Reaches says why the host of an address is not reached from inside, and what would change that; empty: it is.
func (r Request) Reaches(word string) string {
	name, isURL := ask.HostOf(word)
	host, ok := why.ParseHost(name)
	if !isURL || !ok {
		return ""
	}
	answer := why.Reach(launch.Launch{Plan: r.Plan, Tier: r.Plan.Network.Tier}, host)
	if answer.Inside || answer.Change == "" {
		return ""
	}
	return answer.Says + ": " + answer.Change
}

// theirsOf is the folder of the user's own set-up for an agent.
func theirsOf(facts host.Facts, of agenthome.Other) string {
	if moved := facts.Env.Value(of.Moved, ""); filepath.IsAbs(moved) {
		return filepath.Clean(moved)
	}
	return filepath.Join(facts.Home, of.Folder)
}

func isThere(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// Sees is [view.View.File], by which the files that claudebox makes in the agent's home are there.
func (r Request) Sees(inside *view.View) func(word string) string {
	return func(word string) string {
		name, _ := inside.Expand(word)
		rel, _ := pathname.Cut(name, filepath.Join(r.Facts.Home, ".claude"))
		if slices.ContainsFunc(agenthome.Files, func(f agenthome.File) bool { return f.Name == rel }) {
			return ""
		}
		return inside.File(word)
	}
}

// Moved says where what was kept for a project is that was moved.
func (r Request) Moved() (made launch.Part) {
	if r.Plan.State != string(state.Project) {
		return made
	}
	if id, from := state.Moved(r.Folders.Home, r.Project.InstanceRoot); id != "" {
		made.Warn("nothing is kept for this project yet; if it was at " + diag.Name(from) + " before, " +
			"`claudebox instance move " + id + "` brings its conversations along")
	}
	return made
}
