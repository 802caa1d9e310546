package plan

import (
	"maps"
	"path"
	"slices"

	"claudebox/internal/profile"
)

// knownAgent is what an agent needs that a profile names without more words.
// To know another one is an entry in [agents], and a preset for its hosts.
type knownAgent struct {
	args []string // always passed, before the caller's words: it asks nothing, and its own sandbox is off
	home []string // folders of its home that are kept for the project
	keys []string // host variables that hold its keys; they pass when they are set
	env  []Env    // what else it needs to know
}

// agents are those that claudebox knows, by the name of their program.
var agents = map[string]knownAgent{
	"claude": {
		args: []string{"--dangerously-skip-permissions"},
		keys: []string{"ANTHROPIC_API_KEY"},
	},
	"codex": {
		args: []string{"--dangerously-bypass-approvals-and-sandbox"},
		home: []string{".codex"},
		keys: []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
	},
	"gemini": {
		args: []string{"--approval-mode=yolo"},
		home: []string{".gemini"},
		keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		env:  []Env{{Name: "GEMINI_CLI_TRUST_WORKSPACE", Value: "true"}, {Name: "GEMINI_SANDBOX", Value: "false"}},
	},
	"opencode": {
		home: []string{".config/opencode", ".local/share/opencode", ".local/state/opencode"},
		keys: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
		env: []Env{
			{Name: "OPENCODE_DISABLE_AUTOUPDATE", Value: "1"},
			{Name: "OPENCODE_PERMISSION", Value: `{"*":"allow"}`},
		},
	},
}

// agentEnvironment are the variables of an agent. One that is not known may
// have the key of the default one.
func agentEnvironment(name string) (keys, made []Env) {
	known, is := agents[name]
	if !is {
		known = agents["claude"]
	}
	for _, key := range known.keys {
		keys = append(keys, Env{Name: key, Secret: true})
	}
	return keys, known.env
}

// keptFolders are the folders of the agent's home that are kept between
// sessions, sorted: those that are known, and what the profile says of them.
func keptFolders(a profile.Agent) []string {
	kept := map[string]bool{}
	for _, folder := range agents[a.Name].home {
		kept[folder] = true
	}
	for folder, how := range a.Home {
		kept[folder] = how == "persist"
	}
	maps.DeleteFunc(kept, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(kept))
}

// KeptFolder is where a folder of the agent's home lies in its instance.
func KeptFolder(folder string) string { return path.Join("home", folder) }

// homeMounts are the kept folders.
func homeMounts(a profile.Agent) []Mount {
	return mapped(keptFolders(a), func(folder string) Mount {
		return Mount{Kind: Bind, Source: "${state}/" + KeptFolder(folder), Destination: "${home}/" + folder}
	})
}
