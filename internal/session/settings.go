package session

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"

	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/session/planning"
	"claudebox/internal/session/program"
)

// withSettings is the environment of the host, with those variables that the user's settings of Claude Code set and
// that may enter: for Claude Code they count more than the environment. left are the names of the others.
func withSettings(c planning.Call, p plan.Plan) (env host.Environment, left []string) {
	const limit = 1 << 20
	if p.Agent.Name != "claude" {
		return c.Facts.Env, nil
	}
	content, err := smallfile.Read(filepath.Join(configFolder(c.Facts), "settings.json"), limit)
	if err != nil {
		return c.Facts.Env, nil
	}
	var entries []string
	set := object.As[map[string]string](object.Parse(content)["env"])
	for _, name := range slices.Sorted(maps.Keys(set)) {
		entries = append(entries, name+"="+set[name])
		if !program.Enters(p, name) {
			left = append(left, name)
		}
	}
	return program.WithEntries(c.Facts.Env, p, entries), left
}

// configFolder is the folder of the user's own Claude Code.
func configFolder(facts host.Facts) string {
	return cmp.Or(movedConfig(facts), filepath.Join(facts.Home, ".claude"))
}

// judgeConfig returns an error if the project would show the folder of the user's own Claude Code, where that is not
// the usual one.
func judgeConfig(facts host.Facts, project string) error {
	moved := movedConfig(facts)
	config, err := beneath.Canonical(moved)
	if moved == "" || err != nil || !pathname.Below(config, project) && !pathname.Below(project, config) {
		return nil //nolint:nilerr // it is not there
	}
	return diag.Errorf("take "+diag.Name(project)+" as the project", "start claudebox in the folder of one project",
		"CLAUDE_CONFIG_DIR leads to %s: your own Claude Code's login, configuration and history", config)
}

// movedConfig is the folder that CLAUDE_CONFIG_DIR names; empty: it is the usual one.
func movedConfig(facts host.Facts) string {
	at := facts.Env.Value("CLAUDE_CONFIG_DIR", "")
	if at = filepath.Clean(at); !filepath.IsAbs(at) || at == filepath.Join(facts.Home, ".claude") {
		return ""
	}
	return at
}
