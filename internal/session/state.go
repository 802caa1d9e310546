package session

import (
	"path/filepath"
	"slices"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/login"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/project"
)

// apiKey is the variable that makes the agent use a key instead of the login.
const apiKey = "ANTHROPIC_API_KEY"

// lookAtState finds the instance of this project, and what is to be made of
// it. It changes nothing.
func (s *Session) lookAtState(p plan.Plan) (state.Instance, error) {
	req := state.Request{
		Request: agenthome.Request{
			Home: s.folders.Home, UserHome: s.Facts.Home,
			Trusted: slices.Compact([]string{s.project.Path, s.project.Dir}),
			Path:    p.Path, Status: "claudebox " + p.Profile + " · " + p.Network.Tier, Servers: p.MCP,
			Inside: func(program string) bool { return isInside(p, program) },
		},
		UID: s.Facts.UID, Kind: state.Kind(p.State), Root: s.project.Root, Caches: plan.CacheFolders(),
		Folders: keptFolders(p),
	}
	if slices.ContainsFunc(p.Env, func(e plan.Env) bool { return e.Name == apiKey && e.From == plan.FromHost }) {
		req.APIKey, _ = s.Facts.Env.Get(apiKey)
	}
	if p.Network.Tier == "none" {
		req.APIKey = ""
	}
	if s.secrets.used {
		req.APIKey = s.secrets.placeholder(apiKey)
	}
	if s.secrets.used && p.Agent.Name == "claude" {
		req.Post, req.Key = s.secrets.postTokens, s.secrets.hello.Config.Key
	}
	return state.Look(req)
}

// IsLogin reports whether a canonical path is that of the user's Claude login, or
// of the agent's inside, which has the same.
func (s *Session) IsLogin(real string) bool {
	home, err := beneath.Leads(filepath.Join(s.Facts.Home, ".claude", login.FileName))
	return s.Instance.ID != "" && real != "" && (real == s.Instance.Login.File || err == nil && real == home)
}

// addState adds the read-only folders that the agent's home leads to, and
// says what of the user's settings does not enter.
func (s *Session) addState(h *launch.Host, p plan.Plan) error {
	for _, in := range s.Instance.Imports {
		kind, why := plan.ROBind, "your ~/.claude"
		if in.Writable {
			kind, why = plan.Bind, "your conversations"
		}
		h.Mounts = append(h.Mounts, launch.Mount{
			Kind: kind, Source: in.Source, Destination: in.Destination, Open: true, Why: why,
		})
		if in.Writable {
			continue
		}
		whole, err := s.coverLent(h, in.Source, in.Destination, p.Show)
		if err == nil && !whole && !slices.Contains(p.Show, "**") {
			err = diag.Errorf("look for secrets in "+in.Source,
				"take away what you do not need, or say `show: [\"**\"]` in the profile",
				"it has more than %d entries", project.LentLimit)
		}
		if err != nil {
			return err
		}
	}
	h.Notes = append(h.Notes, s.Instance.Notes...)
	return nil
}

// keptFolders are those of the instance that hold the agent's home beside
// ~/.claude.
func keptFolders(p plan.Plan) []string {
	folders := make([]string, len(p.Agent.Home))
	for i, folder := range p.Agent.Home {
		folders[i] = plan.KeptFolder(folder)
	}
	return folders
}
