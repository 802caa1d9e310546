//go:build lab

package claude_test

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
	"claudebox/internal/agent/agenthome"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/secret/broker"
	sessionprogram "claudebox/internal/session/program"
	"claudebox/internal/workspace/hostrun"
)

// The installed Claude Code says which settings it has: of each it is decided whether it enters.
func TestEverySettingOfClaudeCodeIsKnown(t *testing.T) {
	content, err := os.ReadFile(program(t, "CLAUDEBOX_TEST_CLAUDE"))
	must.Do(t, err)
	begin := bytes.Index(content, []byte(`{$schema:()=>`))
	for begin >= 0 && !bytes.Contains(content[begin:begin+200], []byte("JSON Schema reference for Claude Code settings")) {
		next := bytes.Index(content[begin+1:], []byte(`{$schema:()=>`))
		if next < 0 {
			begin = -1
			break
		}
		begin += 1 + next
	}
	if begin < 0 {
		t.Fatal("the schema of the settings is not where it was: look for it in the program")
	}
	var keys []string
	for _, match := range regexp.MustCompile(`[,{]([$\w]+):\(\)=>`).FindAllSubmatch(content[begin:begin+160_000], -1) {
		keys = append(keys, string(match[1]))
	}
	if len(keys) < 100 || !slices.Contains(keys, "statusLine") || !slices.Contains(keys, "hooks") {
		t.Fatalf("read only %d settings: %q", len(keys), keys)
	}
	for _, key := range keys {
		if !agenthome.KnowsSetting(key) {
			t.Errorf("%s: decide in internal/agent/agenthome/settings.go what becomes of it", key)
		}
	}
}

// The installed Claude Code says what it looks for in folders called .claude: what it obeys in a project's is told. The
// user's own ran the tasks that an agent had scheduled (scheduled_tasks.json): unasked, and nothing was said.
func TestAnAgentSchedulesATaskForTheUsersOwnClaude(t *testing.T) {
	content, err := os.ReadFile(program(t, "CLAUDEBOX_TEST_CLAUDE"))
	must.Do(t, err)
	// Those of the home's, what it keeps of its own work, and names that only stand beside .claude in a list.
	others := strings.Fields("daemon hfi-auth.json ide local remote state scheduled_tasks.lock worktrees .claude-plugin .git .husky results")
	var names []string
	for _, match := range regexp.MustCompile(`"\.claude","([\w.-]+)"`).FindAllSubmatch(content, -1) {
		names = append(names, string(match[1]))
	}
	if !slices.Contains(names, "scheduled_tasks.json") || !slices.Contains(names, "settings.json") {
		t.Fatalf("its files are not named as they were: look for them in the program; found %q", names)
	}
	for _, name := range names {
		at := ".claude/" + name
		if hostrun.Means(at) == "" && hostrun.Means(at+"/x") == "" && !slices.Contains(others, name) {
			t.Errorf("%s: decide in internal/workspace/hostrun whether a change of it is told", at)
		}
	}
}

// The installed Claude Code says which variables it reads: of each it is decided what becomes of it.
func TestEveryVariableOfClaudeCodeIsKnown(t *testing.T) {
	content, err := os.ReadFile(program(t, "CLAUDEBOX_TEST_CLAUDE"))
	must.Do(t, err)
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(`process\.env\.([A-Z][A-Z0-9_]{2,})\b`).FindAllSubmatch(content, -1) {
		names[string(match[1])] = true
	}
	// the program's own lists of variables, by their descriptions
	lists := regexp.MustCompile(`\{(?:[$\w]+:\(\)=>[$\w]+,)*CLAUDE_CODE_\w+:\(\)=>[^{}]*\}`)
	for _, list := range lists.FindAll(content, -1) {
		for _, match := range regexp.MustCompile(`[{,]([A-Z][A-Z0-9_]{2,}):\(\)=>`).FindAllSubmatch(list, -1) {
			names[string(match[1])] = true
		}
	}
	if len(names) < 1000 || !names["CLAUDE_CODE_MAX_RETRIES"] || !names["ANTHROPIC_BASE_URL"] {
		t.Fatalf("read only %d variables: look for them in the program", len(names))
	}
	fates := map[string]int{}
	for name := range names {
		fate := fateOfVariable(name)
		if fates[fate]++; fate == "" {
			t.Errorf("%s: decide in internal/session/program/missed.go, or here, what becomes of it", name)
		}
	}
	t.Logf("%d variables: %v", len(names), fates)
}

// apart are names and prefixes of what Claude Code reads besides, and what it would say inside. None enters, and none
// is named: the environment starts empty.
var apart = []struct{ names, because string }{
	{
		"AWS_ AZURE_ CLOUDSDK_ CLOUD_ML_ GCE_ GCLOUD_ GH_ GITHUB_ GOOGLE_ METADATA_ DETECT_GCP_ P4PORT SSH_",
		"logins, which stay outside; a provider that needs one is named by itself",
	},
	{
		"BUILDKITE CF_ CIRCLECI CLOUD_RUN_ CODER CODESPACES C9_ DAYTONA_ DENO_ DEVPOD DYNO FLY_ FUNCTION_ " +
			"GAE_ GITLAB_ GITPOD_ K_ KUBERNETES_ NETLIFY PROJECT_DOMAIN RAILWAY_ RENDER REPL_ RUNNER_ SPACE_ SWE_ " +
			"VERCEL WEBSITE_ APP_URL CI IS_SANDBOX",
		"where it runs: inside it is a sandbox",
	},
	{
		"ALACRITTY_ BROWSER CURSOR_ DISPLAY GNOME_ INTELLIJ_ KITTY_ KONSOLE_ MSYSTEM SESSIONNAME STY " +
			"TERMINAL_ TERMINATOR_ TILIX_ TMUX VSCODE_ WAYLAND_ WSL_ WT_ XTERM_ ZELLIJ " +
			"FORCE_CODE_ INK_",
		"which terminal and windows there are: programs of the sandbox cannot reach them but by its own terminal",
	},
	{
		"APPDATA COMSPEC LOCALAPPDATA OSTYPE PATHEXT SYSTEMROOT COMPUTER_",
		"other systems",
	},
	{
		"API_ BETA_ BUF_ CACERT_ BUN_ COREPACK_ DEBUG DO_NOT_TRACK DS_ GRPC_ JAVA_ NODE SRT_ TSC_ VERBOSE " +
			"XDG_ DPKG_",
		"the libraries that it is built of",
	},
	{
		"AGENT_PROXY_ AI_AGENT ALLOW_ANT_ ANT_ AUTOMODE_ BUGHUNTER_ CCR_ CLAUBBIT CLAUDECODE EMBEDDED_ " +
			"ENVIRONMENT_SERVICE_ LOCAL_BRIDGE SANDBOX_ SDK_ SELF_HOSTED_ SESSION_INGRESS_ SYSTEM_REMINDER_ " +
			"ULTRAPLAN_ USE_ VITALS_ VOICE_",
		"its makers' own services and tests",
	},
}

// fateOfVariable says what becomes of a variable that Claude Code reads: "enters", as it is or adapted; "named", as one
// that is left out; or why nobody misses it. It is empty if that was not decided.
func fateOfVariable(name string) string {
	enters := slices.Concat(plan.VariablesOf("claude"), strings.Fields("ALL_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY PATH"))
	for secret, of := range broker.Usual {
		enters = append(enters, secret, of.Base)
	}
	switch {
	case slices.Contains(enters, name):
		return "enters"
	case len(sessionprogram.NotPassed(host.Environment{name + "=x"}, nil, "allow")) > 0:
		return "named"
	case strings.HasPrefix(name, "CLAUDE_") || strings.HasPrefix(name, "GIT_"):
		return "Claude Code sets it for what it starts"
	}
	for _, one := range apart {
		if slices.ContainsFunc(strings.Fields(one.names), func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return one.because
		}
	}
	return ""
}

// What Claude Code reads and keeps in its folder, by the names that it joins to that folder's path. What is the user's
// own work enters, or is named; the rest is what it keeps for itself.
func TestEveryNameInTheFolderOfClaudeCodeIsKnown(t *testing.T) {
	content, err := os.ReadFile(program(t, "CLAUDEBOX_TEST_CLAUDE"))
	must.Do(t, err)
	before, _, found := bytes.Cut(content, []byte(`(),"keybindings.json"`))
	of := before[bytes.LastIndexByte(before, '(')+1:] // what returns the folder's path
	if !found || len(of) == 0 || len(of) > 10 {
		t.Fatal("look for its folder in the program")
	}
	kept := strings.Fields(".config.json .deep-link-register-failed .last-cleanup .last-update-result.json .update.lock " +
		"active-time.json backups cache ccr chrome cowork_plugins daemon daemon.json daemon.log daemon.scheduled.status.json " +
		"daemon.status.json debug dev-mods dump-prompts feedback feedback-bundles file-history gh-pr-status-cache.json " +
		"hfi-auth.json history.jsonl jobs local mcp-discovery-cache mcp-needs-auth-cache.json memory plans projects " +
		"remote-control remote-settings.json seed-admin session-env sessions shares shell-snapshots startup-perf state " +
		"tasks teams telemetry traces uploads usage-data")
	known := append(append(kept, agenthome.Folders...), "agent-memory")
	for _, f := range agenthome.Files {
		known = append(known, f.Name)
	}
	names := map[string]bool{}
	for _, rest := range bytes.Split(content, fmt.Appendf(nil, `(%s(),"`, of))[1:] {
		name, _, _ := bytes.Cut(rest[:min(len(rest), 100)], []byte(`"`))
		if path.Base(string(name)) == string(name) && !bytes.ContainsAny(name, " ${}") {
			names[string(name)] = true
		}
	}
	if len(names) < 40 || !names["themes"] {
		t.Fatalf("read only %d names: look for them in the program", len(names))
	}
	for name := range names {
		if !slices.Contains(known, name) {
			t.Errorf("~/.claude/%s: decide what becomes of it", name)
		}
	}
}

// D12: a project that switches Claude Code's own sandbox on ("apt install bubblewrap socat") starts in this one.
func TestAProjectThatWantsClaudeCodesOwnSandboxStarts(t *testing.T) {
	w := newWorld(t, script.Say("Here I am."))
	w.write(t, "project/.claude/settings.json", `{"sandbox":{"enabled":true,"failIfUnavailable":true}}`)
	w.print(t).succeed(t, "Here I am.")
}

// D5, D6, D10: the real program finds what enters: an import chain of CLAUDE.md, a linked skill, a hook by /bin/bash.
func TestClaudeCodeFindsWhatIsTheUsers(t *testing.T) {
	w := newWorld(t, script.Say("I have read it."))
	w.write(t, ".claude/CLAUDE.md", "Canary memory-one.\n@RTK.md\n")
	w.write(t, ".claude/RTK.md", "Canary memory-two.\n@docs/deep.md\n")
	w.write(t, ".claude/docs/deep.md", "Canary memory-three.\n")
	w.write(t, "dotfiles/skills/stowed/SKILL.md", "---\nname: stowed\ndescription: Canary skill-one.\n---\nDo it.\n")
	w.write(t, ".claude/skills/own/SKILL.md", "---\nname: own\ndescription: Canary skill-two.\n---\nDo it.\n")
	link(t, "../../dotfiles/skills/stowed", filepath.Join(w.home, ".claude/skills/stowed"))
	w.write(t, ".claude/settings.json", `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"/bin/bash -c 'echo Canary hook-one.'"}]}]}}`)
	w.print(t).succeed(t, "I have read it.")
	first := w.model.Requests()[0].Text()
	for _, want := range []string{"memory-one", "memory-two", "memory-three", "skill-one", "skill-two", "hook-one"} {
		if !strings.Contains(first, "Canary "+want) {
			t.Errorf("%s is not in the first request", want)
		}
	}
}
