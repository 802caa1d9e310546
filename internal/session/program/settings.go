package program

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
)

// WithSettings is the environment of the host, with those variables that the user's settings of Claude Code set and
// that may enter: for Claude Code they count more than the environment. left are the names of the others.
func WithSettings(facts host.Facts, p plan.Plan) (env host.Environment, left []string) {
	const limit = 1 << 20
	if p.Agent.Name != "claude" {
		return facts.Env, nil
	}
	content, err := smallfile.Read(filepath.Join(ConfigFolder(facts), "settings.json"), limit)
	if err != nil {
		return facts.Env, nil
	}
	var entries []string
	set := object.As[map[string]string](object.Parse(content)["env"])
	for _, name := range slices.Sorted(maps.Keys(set)) {
		entries = append(entries, name+"="+set[name])
		if !Enters(p, name) {
			left = append(left, name)
		}
	}
	return WithEntries(facts.Env, p, entries), left
}

// ConfigFolder is the folder of the user's own Claude Code.
func ConfigFolder(facts host.Facts) string {
	return cmp.Or(MovedConfig(facts), filepath.Join(facts.Home, ".claude"))
}

// JudgeConfig returns an error if the project would show the folder of the user's own Claude Code, where that is not
// the usual one.
func JudgeConfig(facts host.Facts, project string) error {
	moved := MovedConfig(facts)
	config, err := beneath.Canonical(moved)
	if moved == "" || err != nil || !pathname.Below(config, project) && !pathname.Below(project, config) {
		return nil //nolint:nilerr // it is not there
	}
	return diag.Errorf("take "+diag.Name(project)+" as the project", "start claudebox in the folder of one project",
		"CLAUDE_CONFIG_DIR leads to %s: your own Claude Code's login, configuration and history", config)
}

// MovedConfig is the folder that CLAUDE_CONFIG_DIR names; empty: it is the usual one.
func MovedConfig(facts host.Facts) string {
	at := facts.Env.Value("CLAUDE_CONFIG_DIR", "")
	if at = filepath.Clean(at); !filepath.IsAbs(at) || at == filepath.Join(facts.Home, ".claude") {
		return ""
	}
	return at
}
