package agenthome

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"claudebox/internal/agent/object"
	"claudebox/internal/agent/toml"
	"claudebox/internal/diag"
)

// Other is an agent beside Claude Code: where its user's own set-up lies, and what becomes of each setting. One that no
// list has is left out, and named.
type Other struct {
	Moved  string // the variable that names the user's folder
	Folder string // the usual one, below the home
	Login  string // a file below the home that is there if the user has logged in
	Keys   string // a file in the folder from which the agent takes keys; empty: there is none

	settings []string // files in the folder; a later one counts more, and is the one inside
	memory   string   // likewise, with what the user always tells the agent
	memories []string // those that can be it: the first that is there counts
	folders  []string // folders there, which the agent reads and does not change

	enters []string // settings that enter, if they hold no secret; "a.b" is b in the table a
	files  []string // those that name files or folders: they enter if these are inside
	runs   []string // those that are commands, which enter if they can run inside

	servers, hooks, providers string // those with MCP servers, hooks, and who is asked for models
	address                   string // the one that names another address for OPENAI_API_KEY

	left  map[string]string // why others do not enter
	quiet []string          // those that nobody misses, or all of a table that have no row of their own
}

// Others are the agents beside Claude Code, by name (Codex 0.169.0, Gemini CLI 0.61.0, OpenCode 1.18.33).
var Others = map[string]Other{
	"codex": {
		Moved: "CODEX_HOME", Folder: ".codex", Login: ".codex/auth.json",
		settings: []string{"config.toml"}, memory: "AGENTS.md",
		memories: []string{"AGENTS.override.md", "AGENTS.md"},
		folders:  []string{"agents", "prompts", "rules", "skills"},
		enters: strings.Fields(`
			analytics auto_review background_terminal_max_timeout check_for_update_on_startup compact_prompt
			developer_instructions disable_paste_burst features feedback file_opener forced_login_method
			hide_agent_reasoning history include_apps_instructions include_environment_context model
			model_auto_compact_token_limit model_context_window model_provider model_reasoning_effort
			model_reasoning_summary model_supports_reasoning_summaries model_verbosity oss_provider personality
			plan_mode_reasoning_effort project_doc_fallback_filenames project_doc_max_bytes
			project_root_markers review_model service_tier show_raw_agent_reasoning skills.bundled
			suppress_unstable_features_warning tool_output_token_limit tools tui web_search`),
		files:   []string{"experimental_compact_prompt_file", "model_catalog_json", "model_instructions_file"},
		runs:    []string{"notify"},
		servers: "mcp_servers", hooks: "hooks", providers: "model_providers", address: "openai_base_url",
		left: map[string]string{
			"chatgpt_base_url":         "a login would be sent there",
			"otel":                     "it names who is told, and a token for that",
			"shell_environment_policy": "`env` in the profile says what is inside",
			"log_dir":                  "it names a folder of this machine",
			"sqlite_home":              "it names a folder of this machine",
			"profile":                  "write what it holds at the top of the file",
			"profiles":                 "write what one of them holds at the top of the file",
		},
		quiet: strings.Fields(`
			allow_login_shell approval_policy approvals_reviewer cli_auth_credentials_store default_permissions
			mcp_oauth_credentials_store notice permissions projects sandbox_mode sandbox_workspace_write windows
			zsh_path`),
	},
	"gemini": {
		Moved: "GEMINI_CLI_HOME", Folder: ".gemini", Login: ".gemini/oauth_creds.json",
		settings: []string{"settings.json"}, memory: "GEMINI.md",
		memories: []string{"GEMINI.md"}, Keys: ".env",
		folders: []string{"agents", "commands", "extensions", "policies", "skills"},
		enters: strings.Fields(`
			agents billing context.discoveryMaxDirs context.fileFiltering context.fileName context.importFormat
			context.includeDirectoryTree context.loadMemoryFromIncludeDirectories context.memoryBoundaryMarkers
			contextManagement experimental.enableAgents experimental.modelSteering experimental.taskTracker
			experimental.useOSC52Copy experimental.useOSC52Paste general hooksConfig mcp.allowed mcp.excluded
			model modelConfigs output privacy security.auth.selectedType security.disableAlwaysAllow skills
			tools.core tools.disableLLMCorrection tools.exclude tools.shell tools.truncateToolOutputThreshold
			tools.useRipgrep ui useWriteTodos`),
		files:   []string{"context.includeDirectories"},
		runs:    []string{"mcp.serverCommand", "tools.callCommand", "tools.discoveryCommand"},
		servers: "mcpServers", hooks: "hooks",
		left: map[string]string{
			"telemetry": "it names who is told", "policyPaths": "it names files of this machine",
		},
		quiet: strings.Fields(`
			$schema admin adminPolicyPaths advanced ide security tools.allowed tools.autoAccept
			tools.confirmationRequired tools.sandbox tools.sandboxAllowedPaths tools.sandboxNetworkAccess`),
	},
	"opencode": {
		Moved: "OPENCODE_CONFIG_DIR", Folder: ".config/opencode", Login: ".local/share/opencode/auth.json",
		settings: []string{"config.json", "opencode.json", "opencode.jsonc"}, memory: "AGENTS.md",
		memories: []string{"AGENTS.md", "~/.claude/CLAUDE.md"},
		folders: strings.Fields("agent agents command commands mode modes plugin plugins skill skills themes tool " +
			"tools"),
		enters: strings.Fields(`
			agent attachment command compaction default_agent disabled_providers enabled_providers experimental
			keybinds mode model share small_model snapshot subagent_depth theme tool_output tools tui username
			watcher`),
		files:   []string{"instructions", "shell", "skills.paths"},
		servers: "mcp", providers: "provider",
		left: map[string]string{
			"plugin":      "it would be fetched at each start; one in .opencode/plugin of the project counts",
			"formatter":   "it names programs; in opencode.json of the project it counts",
			"lsp":         "it names programs; in opencode.json of the project it counts",
			"enterprise":  "a login would be sent there",
			"skills.urls": "they would be fetched at each start",
			"references":  "it names folders of this machine",
			"reference":   "it names folders of this machine",
		},
		quiet: strings.Fields("$schema autoshare autoupdate layout logLevel permission server"),
	},
}

// pointer is what each of these agents is told first: none looks where Claude Code does.
const pointer = "This session runs in a sandbox, claudebox. Read /etc/claude-code/CLAUDE.md before you begin: it " +
	"says what is inside,\nand what to do where a file, a program or a host is missing.\n"

// Beside leads from the folder of Claude Code in an instance to what is kept beside it of the home.
const Beside = "../home/"

// files are those that are made of what its user has set up.
func (of Other) made() []File {
	sources := func(names []string) func(Request) []string {
		return func(r Request) (paths []string) {
			for _, name := range names {
				at := path.Join(r.Theirs, name)
				if rest, ofHome := strings.CutPrefix(name, "~/"); ofHome {
					at = path.Join(r.UserHome, rest)
				}
				paths = append(paths, at)
			}
			return paths
		}
	}
	last := of.settings[len(of.settings)-1]
	return []File{
		{Beside + path.Join(of.Folder, last), sources(of.settings), of.makeSettings},
		{Beside + path.Join(of.Folder, of.memory), sources(of.memories), of.makeMemory},
	}
}

// makeMemory takes what the user always tells the agent, behind [pointer].
func (of Other) makeMemory(_ Request, f From) Made {
	var theirs []byte
	if i := slices.IndexFunc(f.Sources, func(content []byte) bool { return len(content) > 0 }); i >= 0 {
		theirs = f.Sources[i]
	}
	theirs, left := withoutSecrets(of.memory, theirs)
	made := remember([]byte(pointer+"\n"+string(theirs)), of.memory, f)
	made.Left = left
	return made
}

// makeSettings merges the user's settings that enter with those that were changed inside, as for Claude Code.
func (of Other) makeSettings(r Request, f From) (made Made) {
	host := object.Object{}
	for i, text := range f.Sources {
		o, err := parse(of.settings[i], text)
		if err != nil {
			text := "your " + path.Join(r.Theirs, of.settings[i]) + " does not enter: it " + err.Error()
			made.Left = append(made.Left, diag.Left{Kind: "file", Text: text})
		}
		maps.Copy(host, o)
	}
	if len(r.Servers) > 0 && host[of.servers] == nil {
		host.Set(of.servers, object.Object{}) // so that those are named
	}
	given, left := r.kept(of, "", host)
	last := of.settings[len(of.settings)-1]
	inside, err := parse(last, f.Old)
	before := object.Parse([]byte(f.Given))
	if err != nil {
		before, inside = nil, nil
	}
	settings, clashes := merge(before, given, inside)
	made.Left, made.Given, made.Aside = append(made.Left, left...), string(object.Encode(given)), err != nil
	made.Content = f.Old
	if err != nil || len(settings)+len(inside) > 0 && !same(object.Encode(settings), object.Encode(inside)) {
		made.Content = written(last, settings)
	}
	var own []string
	for _, key := range append([]string{of.servers, of.hooks, of.providers}, of.runs...) {
		if settings[key] != nil && !same(settings[key], given[key]) {
			own = append(own, key)
		}
	}
	if len(own) > 0 {
		made.Notes = []string{"set inside, in an earlier session, and kept: " + strings.Join(own, ", ") + " of " + last}
	}
	if len(clashes) > 0 {
		made.Once = []string{changedTwice + strings.Join(clashes, ", ")}
	}
	return made
}

// parse reads a file of settings.
func parse(name string, text []byte) (object.Object, error) {
	if path.Ext(name) == ".toml" {
		table, err := toml.Parse(text)
		if err != nil {
			return nil, err
		}
		return object.Parse(object.Encode(table)), nil
	}
	o := object.Parse(object.Plain(text))
	if o == nil && len(text) > 0 {
		return nil, errors.New("is no JSON object")
	}
	return o, nil
}

// written is what [parse] reads.
func written(name string, settings object.Object) []byte {
	if path.Ext(name) == ".toml" {
		return toml.Format(object.As[map[string]any](object.Encode(settings)))
	}
	return object.Indented(settings, "  ")
}

// kept returns the settings of a table that enter. prefix is the name of the table, with a dot; empty: it is the whole.
func (r Request) kept(of Other, prefix string, host object.Object) (kept object.Object, left []diag.Left) {
	kept = object.Object{}
	for _, key := range slices.Sorted(maps.Keys(host)) {
		value, said := r.setting(of, prefix+key, host[key])
		left = append(left, said...)
		if !slices.Contains([]string{"", "{}", "[]", "null"}, string(value)) {
			kept[key] = value
		}
	}
	return kept, left
}

// setting returns what of a setting enters.
func (r Request) setting(of Other, name string, value json.RawMessage) (kept json.RawMessage, left []diag.Left) {
	last := strings.LastIndexByte(name, '.')
	reason := of.left[name]
	switch {
	case of.hasBelow(name):
		below, left := r.kept(of, name+".", object.Of(value))
		return object.Encode(below), left
	case name == of.servers:
		return r.serversOf(value)
	case name == of.hooks:
		fit, left := r.hooks(value)
		return object.Encode(fit), left
	case name == of.providers:
		return r.providersOf(value)
	case name == of.address:
		value, left = bareAddress("your setting "+name, value)
		return value, append(left, r.keyLeft("the key for "+name, "OPENAI_API_KEY", object.As[string](value))...)
	case slices.Contains(of.files, name):
		if reason = SecretIn(name, value); reason == "" {
			return r.seen(name, value)
		}
	case slices.Contains(of.runs, name):
		reason = r.refuse(object.Object{"command": object.Encode(commandLine(value))})
	case slices.Contains(of.enters, name):
		reason = SecretIn(name[last+1:], value)
	case slices.Contains(of.quiet, name), slices.Contains(of.quiet, name[:max(last, 0)]):
		return nil, nil
	case reason == "":
		return nil, []diag.Left{{Kind: "setting", Text: "your setting " + name + " does not enter"}}
	}
	if reason != "" {
		return nil, []diag.Left{{Kind: "setting", Text: "your setting " + name + " does not enter: " + reason}}
	}
	return value, nil
}

// keyLeft names a key that does not come to an address, if that is one.
func (r Request) keyLeft(what, variable, address string) []diag.Left {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil
	}
	if reason := ask(r.Keyed, variable+" "+at.String()); reason != "" {
		return []diag.Left{{Kind: "key", Red: true, Text: what + " does not enter: " + reason}}
	}
	return nil
}

// hasBelow reports whether settings in a table have a row of their own.
func (of Other) hasBelow(name string) bool {
	return slices.ContainsFunc(slices.Concat(of.enters, of.files, of.runs), func(row string) bool {
		return strings.HasPrefix(row, name+".")
	})
}

// commandLine is a command as a shell would read it, from a text or from a list of words.
func commandLine(raw json.RawMessage) string {
	words := object.As[[]string](raw)
	for i, word := range words {
		words[i] = diag.Quote(word)
	}
	return cmp.Or(strings.Join(words, " "), object.As[string](raw))
}

// seen keeps what names a file that is inside, an address, or one of the project; raw is a text or a list of such.
func (r Request) seen(name string, raw json.RawMessage) (kept json.RawMessage, left []diag.Left) {
	fits := func(file string) bool {
		isPlace := strings.HasPrefix(file, "/") || strings.HasPrefix(file, "~")
		reason := ask(r.Sees, file)
		if isPlace && reason != "" {
			text := "your setting " + name + " names " + file + ": " + reason
			left = append(left, diag.Left{Kind: "file", Text: text})
		}
		return !isPlace || reason == ""
	}
	if file := object.As[string](raw); file != "" {
		if !fits(file) {
			raw = json.RawMessage("null")
		}
		return raw, left
	}
	list := object.As[[]string](raw)
	return object.Encode(slices.DeleteFunc(list, func(file string) bool { return !fits(file) })), left
}

// serversOf returns the MCP servers that enter as [Request.servers] does, also for the shape of OpenCode's.
func (r Request) serversOf(raw json.RawMessage) (json.RawMessage, []diag.Left) {
	all := object.Of(raw)
	for name := range all {
		server := object.Of(all[name])
		if words := object.As[[]string](server["command"]); len(words) > 0 {
			server.Set("command", words[0])
			server.Set("args", words[1:])
		}
		if env := server["environment"]; env != nil {
			server["env"] = env
			delete(server, "environment")
		}
		all.Set(name, server)
	}
	kept, left := r.servers(all, r.Theirs)
	for name := range kept {
		before, server := object.Of(object.Of(raw)[name]), object.Of(kept[name])
		if words := object.As[[]string](before["command"]); len(words) > 0 {
			server["command"] = before["command"]
			delete(server, "args")
		}
		if before["environment"] != nil {
			server.Set("environment", object.Of(server["env"]))
			delete(server, "env")
		}
		kept.Set(name, server)
	}
	return object.Encode(kept), left
}

// providersOf returns who the user's models are asked at, without secrets. It names those whose key does not come.
func (r Request) providersOf(raw json.RawMessage) (json.RawMessage, []diag.Left) {
	var left []diag.Left
	kept := object.Of(raw)
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		provider := object.Of(kept[name])
		options, written, noAddress := object.Of(provider["options"]), false, false
		key, _ := strings.CutPrefix(strings.TrimSuffix(object.As[string](options["apiKey"]), "}"), "{env:")
		key = cmp.Or(object.As[string](provider["env_key"]), key, strings.ToUpper(name)+"_API_KEY")
		what := "the key of your provider " + name
		for _, table := range []object.Object{options, provider} {
			for of, value := range table {
				switch {
				case slices.Contains([]string{"base_url", "baseURL", "api"}, of):
					var said []diag.Left
					table[of], said = bareAddress("your provider "+name, value)
					left, noAddress = append(left, said...), noAddress || table[of] == nil
				case of != "options" && (of == "auth" || SecretIn(of, value) != ""):
					delete(table, of)
					written = true
				}
			}
		}
		if provider["options"] != nil {
			provider.Set("options", options)
		}
		kept.Set(name, provider)
		address := cmp.Or(object.As[string](provider["base_url"]), object.As[string](options["baseURL"]))
		unreached := r.CannotRun(Command{Address: address})
		switch {
		case noAddress: // without one another would be asked
			delete(kept, name)
		case unreached != "":
			text := "your provider " + name + " is not reached: " + unreached
			left = append(left, diag.Left{Kind: "setting", Text: text})
		case written:
			left = append(left, diag.Left{Kind: "key", Red: true, Text: what + " does not enter: it is written in " +
				"the file, or a program says it; name a variable there that has it"})
		default:
			left = append(left, r.keyLeft(what, key, address)...)
		}
	}
	return object.Encode(kept), left
}

// bareAddress returns an address of the user's without what is probably a secret in it, which it names.
func bareAddress(of string, address json.RawMessage) (json.RawMessage, []diag.Left) {
	if SecretIn("", address) == "" {
		return address, nil
	}
	said := diag.Left{Kind: "key", Red: true, Text: "what is probably a secret in the address of " + of +
		" stays outside: name a variable there that has it"}
	address = object.Encode(bare(object.As[string](address)))
	if SecretIn("", address) != "" {
		address = nil
		said.Text = "the address of " + of + " does not enter, and nothing is asked there: it is a secret itself"
	}
	return address, []diag.Left{said}
}
