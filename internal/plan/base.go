package plan

import (
	"maps"
	"path"
	"slices"
	"strings"

	"claudebox/internal/network/hostpattern"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
)

// Sizes of the sandbox's tmpfs mounts in bytes. They are limits, not
// reservations; a build that outgrows /tmp should fail rather than take the
// host's memory down.
const (
	rootSize    = 32 << 20
	tmpSize     = 8 << 30
	homeSize    = 4 << 30
	runtimeSize = 64 << 20
	shmSize     = 2 << 30
)

// Base is the value of Why for what every sandbox has, whatever its profile.
const Base = "base"

// CertificateBundle is where the sandbox finds certificate authorities.
const CertificateBundle = "/etc/ssl/certs/ca-certificates.crt"

// DaemonSocketDir holds the Nix daemon's socket, inside and outside. The
// folder is mounted rather than the socket, so that a daemon that restarts
// stays reachable.
const DaemonSocketDir = "/nix/var/nix/daemon-socket"

// baseMounts are the mounts of every sandbox, whatever the profile says.
var baseMounts = []Mount{
	{Kind: Tmpfs, Destination: "/", Mode: "0755", Size: rootSize},
	{Kind: Proc, Destination: "/proc"},
	{Kind: Dev, Destination: "/dev"},
	{Kind: Tmpfs, Destination: "/dev/shm", Mode: "1777", Size: shmSize},
	{Kind: Tmpfs, Destination: "/tmp", Mode: "1777", Size: tmpSize},
	{Kind: Tmpfs, Destination: "${runtime}", Mode: "0700", Size: runtimeSize},
	{Kind: File, Source: string(MadePasswd), Destination: "/etc/passwd", Mode: "0444"},
	{Kind: File, Source: string(MadeGroup), Destination: "/etc/group", Mode: "0444"},
	{Kind: File, Source: string(MadeNsswitch), Destination: "/etc/nsswitch.conf", Mode: "0444"},
	{Kind: File, Source: string(MadeServices), Destination: "/etc/services", Mode: "0444"},
	{Kind: File, Source: string(MadeProtocols), Destination: "/etc/protocols", Mode: "0444"},
	{Kind: File, Source: string(MadeOSRelease), Destination: "/etc/os-release", Mode: "0444"},
	{Kind: File, Source: string(MadeMachineID), Destination: "/etc/machine-id", Mode: "0444"},
	{Kind: File, Source: string(MadeHosts), Destination: "/etc/hosts", Mode: "0444"},
	{Kind: File, Source: string(MadeNixConf), Destination: "/etc/nix/nix.conf", Mode: "0444"},
	{Kind: File, Source: string(MadeRegistry), Destination: "/etc/nix/registry.json", Mode: "0444"},
	{Kind: File, Source: string(MadeSandboxMD), Destination: "/etc/claude-code/CLAUDE.md", Mode: "0444"},
	{
		Kind: File, Source: string(MadeZone), Destination: "/usr/share/zoneinfo/${zone-name}", Mode: "0444",
		Optional: true,
	},
	{Kind: Symlink, Source: "/usr/share/zoneinfo/${zone-name}", Destination: "/etc/localtime", Optional: true},
	{Kind: ROBind, Source: "${certs}", Destination: CertificateBundle, Optional: true},
	{Kind: Symlink, Source: "ca-certificates.crt", Destination: "/etc/ssl/certs/ca-bundle.crt"},
	{Kind: Tmpfs, Destination: "${home}", Mode: "0755", Size: homeSize},
	{Kind: ROData, Source: string(MadeGitconfig), Destination: "${home}/.gitconfig"},
	{Kind: Bind, Source: "${state}/.claude", Destination: "${home}/.claude"},
	{Kind: Bind, Source: "${project}", Destination: "${project}"},
}

// networkMounts are added for tiers with a resolver: all but none.
var networkMounts = []Mount{
	{Kind: File, Source: string(MadeResolv), Destination: "/etc/resolv.conf", Mode: "0444"},
}

// caches are folders below home where package managers keep what they
// fetched. They lie in the instance, never shared between projects. Only
// the first is a mount; the others are links into it, as a mount costs
// more than ten links.
var caches = []string{
	".cache",
	".npm", ".cargo", ".gradle", ".m2", ".bun", "go",
	".local/share/uv", ".local/share/pnpm", ".local/share/direnv",
}

// hostVariables are the variables that every sandbox gets from the caller's
// environment if they are set. They are about terminal, locale and
// personal preferences, and none is secret. Agents know by some of them, and not
// by asking, which keys and links the terminal can do: without them a newline by
// Shift+Enter sends what was typed. The keys of agents are in [agents].
var hostVariables = []string{
	"COLORTERM", "EDITOR", "FORCE_COLOR", "FORCE_HYPERLINK", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "LANG", "LC_ALL",
	"LC_CTYPE", "LC_TERMINAL", "LC_TERMINAL_VERSION", "LESS", "NO_COLOR", "PAGER", "TERM", "TERM_PROGRAM",
	"TERM_PROGRAM_VERSION", "TZ", "USER", "VISUAL", "VTE_VERSION", "WT_SESSION",
}

// madeVariables are the variables that claudebox sets itself. PWD is
// listed because bwrap sets it with --chdir.
var madeVariables = []Env{
	{Name: "CLAUDEBOX", Value: "1"},
	{Name: "CLAUDE_CONFIG_DIR", Value: "${home}/.claude"},
	{Name: "DISABLE_AUTOUPDATER", Value: "1"},
	{Name: "HOME", Value: "${home}"},
	{Name: "NIX_SSL_CERT_FILE", Value: CertificateBundle},
	{Name: "PWD", Value: "${cwd}"},
	{Name: "SSL_CERT_FILE", Value: CertificateBundle},
	{Name: "TMPDIR", Value: "/tmp"},
	{Name: "XDG_RUNTIME_DIR", Value: "${runtime}"},
}

// toolVariables are variables with the path of a tool; they are set if the resolution has the tool.
var toolVariables = []struct{ name, tool string }{
	{"SHELL", resolve.ToolBash},
	{"LOCALE_ARCHIVE", resolve.ToolLocale},
	{"TERMINFO_DIRS", resolve.ToolTerminfo},
}

// knownAgent has the settings of an agent that a profile can name without further
// settings. To support another agent, add it to [agents] and its hosts to
// [hostpattern.Presets].
type knownAgent struct {
	preset string   // name of the preset with its own hosts, see [hostpattern.Presets]
	args   []string // passed before the caller's arguments: no permission prompts, and its own sandbox is off
	home   []string // folders of its home that are kept for the project
	keys   []string // host variables that hold its API keys; they are passed if they are set
	env    []Env    // other variables that it needs

	variables []string // other host variables of its own; none is secret, or names a program or a path
}

// claudeVariables say which model Claude Code uses, by whom, and how it behaves. Without those that switch something
// off, or name another provider, the agent would do inside what the user does not want.
var claudeVariables = strings.Fields(`
	ANTHROPIC_BETAS ANTHROPIC_CUSTOM_MODEL_OPTION ANTHROPIC_CUSTOM_MODEL_OPTION_DESCRIPTION
	ANTHROPIC_CUSTOM_MODEL_OPTION_NAME ANTHROPIC_CUSTOM_MODEL_OPTION_SUPPORTED_CAPABILITIES
	ANTHROPIC_DEFAULT_FABLE_MODEL ANTHROPIC_DEFAULT_FABLE_MODEL_DESCRIPTION ANTHROPIC_DEFAULT_FABLE_MODEL_NAME
	ANTHROPIC_DEFAULT_FABLE_MODEL_SUPPORTED_CAPABILITIES ANTHROPIC_DEFAULT_HAIKU_MODEL
	ANTHROPIC_DEFAULT_HAIKU_MODEL_DESCRIPTION ANTHROPIC_DEFAULT_HAIKU_MODEL_NAME
	ANTHROPIC_DEFAULT_HAIKU_MODEL_SUPPORTED_CAPABILITIES ANTHROPIC_DEFAULT_MODEL ANTHROPIC_DEFAULT_OPUS_MODEL
	ANTHROPIC_DEFAULT_OPUS_MODEL_DESCRIPTION ANTHROPIC_DEFAULT_OPUS_MODEL_NAME
	ANTHROPIC_DEFAULT_OPUS_MODEL_SUPPORTED_CAPABILITIES ANTHROPIC_DEFAULT_SONNET_MODEL
	ANTHROPIC_DEFAULT_SONNET_MODEL_DESCRIPTION ANTHROPIC_DEFAULT_SONNET_MODEL_NAME
	ANTHROPIC_DEFAULT_SONNET_MODEL_SUPPORTED_CAPABILITIES ANTHROPIC_FOUNDRY_RESOURCE ANTHROPIC_MODEL
	ANTHROPIC_SMALL_FAST_MODEL ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION ANTHROPIC_VERTEX_PROJECT_ID API_TIMEOUT_MS
	AWS_REGION BASH_DEFAULT_TIMEOUT_MS BASH_MAX_OUTPUT_LENGTH BASH_MAX_TIMEOUT_MS CLAUDE_AUTOCOMPACT_PCT_OVERRIDE
	CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR CLAUDE_CODE_AUTO_COMPACT_WINDOW CLAUDE_CODE_DISABLE_1M_CONTEXT
	CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN CLAUDE_CODE_DISABLE_AUTO_MEMORY
	CLAUDE_CODE_DISABLE_BACKGROUND_TASKS CLAUDE_CODE_DISABLE_BUNDLED_SKILLS CLAUDE_CODE_DISABLE_CLAUDE_MDS
	CLAUDE_CODE_DISABLE_CRON CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS CLAUDE_CODE_DISABLE_FAST_MODE
	CLAUDE_CODE_DISABLE_FEATURE_FLAGS CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING
	CLAUDE_CODE_DISABLE_MOUSE CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC CLAUDE_CODE_DISABLE_TERMINAL_TITLE
	CLAUDE_CODE_DISABLE_THINKING CLAUDE_CODE_DISABLE_VIRTUAL_SCROLL CLAUDE_CODE_DISABLE_WORKFLOWS
	CLAUDE_CODE_EFFORT_LEVEL CLAUDE_CODE_ENABLE_TASKS CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS
	CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS CLAUDE_CODE_HIDE_CWD CLAUDE_CODE_MAX_CONTEXT_TOKENS
	CLAUDE_CODE_MAX_OUTPUT_TOKENS CLAUDE_CODE_MAX_RETRIES CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY
	CLAUDE_CODE_NO_FLICKER CLAUDE_CODE_SCROLL_SPEED CLAUDE_CODE_SKIP_BEDROCK_AUTH CLAUDE_CODE_SKIP_VERTEX_AUTH
	CLAUDE_CODE_SUBAGENT_EFFORT CLAUDE_CODE_SUBAGENT_MODEL CLAUDE_CODE_SYNTAX_HIGHLIGHT CLAUDE_CODE_USE_BEDROCK
	CLAUDE_CODE_USE_FOUNDRY CLAUDE_CODE_USE_VERTEX CLAUDE_STREAM_IDLE_TIMEOUT_MS CLOUD_ML_REGION
	DISABLE_AUTO_COMPACT DISABLE_BUG_COMMAND DISABLE_COMPACT DISABLE_COST_WARNINGS DISABLE_ERROR_REPORTING
	DISABLE_FEEDBACK_COMMAND DISABLE_GROWTHBOOK DISABLE_INTERLEAVED_THINKING DISABLE_NON_ESSENTIAL_MODEL_CALLS
	DISABLE_PROMPT_CACHING DISABLE_PROMPT_CACHING_FABLE DISABLE_PROMPT_CACHING_HAIKU DISABLE_PROMPT_CACHING_OPUS
	DISABLE_PROMPT_CACHING_SONNET DISABLE_TELEMETRY ENABLE_CLAUDEAI_MCP_SERVERS ENABLE_PROMPT_CACHING_1H
	ENABLE_TOOL_SEARCH FORCE_HYPERLINK FORCE_PROMPT_CACHING_5M MAX_MCP_OUTPUT_TOKENS MAX_THINKING_TOKENS
	MCP_CONNECTION_NONBLOCKING MCP_CONNECT_TIMEOUT_MS MCP_TIMEOUT MCP_TOOL_TIMEOUT SLASH_COMMAND_TOOL_CHAR_BUDGET
	USE_BUILTIN_RIPGREP
`)

// agents are the agents that claudebox knows, by the name of their program.
var agents = map[string]knownAgent{
	"claude": {
		preset: "anthropic",
		args:   []string{"--dangerously-skip-permissions"},
		keys: []string{
			"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_FOUNDRY_API_KEY", "AWS_BEARER_TOKEN_BEDROCK",
			"CLAUDE_CODE_OAUTH_TOKEN",
		},
		variables: claudeVariables,
	},
	"codex": {
		preset: "openai",
		args:   []string{"--dangerously-bypass-approvals-and-sandbox"},
		home:   []string{".codex"},
		keys:   []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
	},
	"gemini": {
		preset: "gemini",
		args:   []string{"--approval-mode=yolo"},
		home:   []string{".gemini"},
		keys:   []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		env:    []Env{{Name: "GEMINI_CLI_TRUST_WORKSPACE", Value: "true"}, {Name: "GEMINI_SANDBOX", Value: "false"}},
	},
	"opencode": {
		preset: "opencode",
		home:   []string{".config/opencode", ".local/share/opencode", ".local/state/opencode"},
		keys:   []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
		env: []Env{
			{Name: "OPENCODE_DISABLE_AUTOUPDATE", Value: "1"},
			{Name: "OPENCODE_PERMISSION", Value: `{"*":"allow"}`},
		},
	},
}

// argsOf are the words that the agent of a profile always gets; an adapter gives them to what it starts.
func argsOf(a profile.Agent) []string {
	if profile.IsAdapter(a.Command) {
		return nil
	}
	return AgentArgs(a.Name)
}

// AgentArgs are the words that a known agent always gets, before the caller's.
func AgentArgs(name string) []string { return agents[name].args }

// VariablesOf are the names of the variables that a known agent gets, from the host or made.
func VariablesOf(name string) []string {
	names := slices.Concat(hostVariables, agents[name].keys, agents[name].variables)
	for _, e := range slices.Concat(madeVariables, agents[name].env) {
		names = append(names, e.Name)
	}
	for _, tool := range toolVariables {
		names = append(names, tool.name)
	}
	return names
}

// AgentVariables are patterns of the variables that lead an agent, by their names: its keys, its address and all that
// begins as they do.
func AgentVariables() []string {
	patterns := []string{"ANTHROPIC_*", "CLAUDE*", "DISABLE_*"}
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		patterns = append(patterns, strings.ToUpper(name)+"_*")
		for _, key := range agents[name].keys {
			first, _, _ := strings.Cut(key, "_")
			patterns = append(patterns, first+"_*")
		}
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}

// allowed returns the hosts of tier allow, with presets expanded: those that the
// network lists, or the agent's own if it lists none.
func allowed(agent string, n profile.Network) []string {
	own := agents[agent].preset
	if len(n.Allow) == 0 && own != "" && n.Tier == profile.TierAllow {
		return hostpattern.Expand([]string{own})
	}
	return hostpattern.Expand(n.Allow)
}

// keptFolders returns the folders of the agent's home that are kept between
// sessions, sorted: those in [agents], as changed by the profile.
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

// KeptFolder returns the path, relative to the instance, of a folder of the agent's home.
func KeptFolder(folder string) string { return path.Join("home", folder) }
