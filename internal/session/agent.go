package session

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/login"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/ask"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/leak"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/program"
	"claudebox/internal/workspace/project"
)

// apiKey is the variable that makes the agent use a key instead of the login.
const apiKey = "ANTHROPIC_API_KEY"

// lookAtState finds the instance of this project, and what is to be made of it, see [state.Look].
func lookAtState(in inputs) (state.Instance, error) {
	p := in.Plan
	req := state.Request{
		Request: agenthome.Request{
			Home: in.Folders.Home, UserHome: in.Facts.Home, Config: program.MovedConfig(in.Facts),
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
	if slices.ContainsFunc(in.project.Mounts, func(m project.Mount) bool { return guarded.IsDirenv(in.project, m) }) {
		req.Folders = append(req.Folders, guarded.DirenvFolder(in.project))
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
	home, err := beneath.Leads(filepath.Join(program.ConfigFolder(s.Facts), login.FileName))
	return s.Instance.ID != "" && real != "" && (real == s.Instance.Login.File || err == nil && real == home)
}

// homeOf mounts the folders and files that the agent's home leads to. It returns the links in them.
func homeOf(in inputs) (made launch.Part, links []lending.Link, err error) {
	for _, of := range in.Instance.Imports {
		m := launch.Mount{
			Kind: plan.ROBind, Source: of.Source, Destination: of.Destination, Open: true, Why: lending.WhyClaude,
		}
		if of.At == "" {
			m.Why = "your ~/.agents"
		} else if strings.HasPrefix(of.At, agenthome.Beside) {
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

// mostFiles bounds the search for secrets in the user's folders that enter: a person waits for it before being asked.
const mostFiles = 2000

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
			if content, err := smallfile.Read(name, lending.MostBytes); err == nil {
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
