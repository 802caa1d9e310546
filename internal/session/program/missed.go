package program

import (
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/broker"
)

// The variables that Claude Code reads are some hundreds, so what becomes of each is said by rules: names and prefixes.
// A test compares them with the installed program.

// families are prefixes of variables that change what Claude Code, git and programs that use a network do: whoever set
// one outside would miss it inside. One that does not enter is named.
var families = strings.Fields("ANTHROPIC_ CLAUDE_ GIT_ DISABLE_ ENABLE_ FORCE_ BASH_DEFAULT_ BASH_MAX_ MCP_ MAX_ " +
	"OTEL_ SLASH_ VERTEX_REGION_ FALLBACK_FOR_ALL_PRIMARY_MODELS")

// proxies are the variables by which programs find a proxy, in capitals.
var proxies = []string{"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}

// ownNames are names and prefixes of variables that Claude Code sets for what it starts, which claudebox may be, or its
// makers' services; or that have been taken over already, as git's identity. A person misses none.
var ownNames = strings.Fields("CLAUDE_AGENT_SDK_ CLAUDE_BG_ CLAUDE_BRIDGE_ CLAUDE_CODE_BRIDGE_ CLAUDE_CODE_CCR_ " +
	"CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_EXECPATH CLAUDE_CODE_HOST_ CLAUDE_CODE_RELAUNCH_ " +
	"CLAUDE_CODE_REMOTE CLAUDE_CODE_SESSION_ CLAUDE_CODE_SSE_PORT CLAUDE_CODE_TMUX_ CLAUDE_EFFORT CLAUDE_ENV_FILE " +
	"CLAUDE_PID CLAUDE_PLUGIN_ CLAUDE_PROJECT_DIR CLAUDE_RUNNER_ CLAUDE_SDK_ GIT_AUTHOR_EMAIL " +
	"GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_NAME GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM GIT_CONFIG_SYSTEM " +
	"GIT_EDITOR GIT_PAGER")

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
			"TERM_PROGRAM TERMINAL_ TERMINATOR_ TILIX_ TMUX VSCODE_ VTE_ WAYLAND_ WSL_ WT_ XTERM_ ZELLIJ " +
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

// builds are names and prefixes of variables by which package managers and compilers of many languages know where
// packages come from and how to build: without them packages come from public registries.
var builds = strings.Fields("CARGO_BUILD_ CARGO_NET_ CARGO_PROFILE_ CARGO_REGISTRIES_ CARGO_REGISTRY_ CFLAGS CGO_ " +
	"CPPFLAGS CXXFLAGS BUNDLE_ GOAMD64 GOARCH GOEXPERIMENT GOFLAGS GOINSECURE GONOPROXY GONOSUM GOOS GOPRIVATE " +
	"GOPROXY GOSUMDB GOTOOLCHAIN GRADLE_OPTS JAVA_TOOL_OPTIONS LDFLAGS MAKEFLAGS MAVEN_ARGS MAVEN_OPTS NODE_OPTIONS " +
	"NPM_CONFIG_REGISTRY PIP_ POETRY_ RUSTFLAGS RUSTUP_TOOLCHAIN UV_ YARN_NPM_ YARN_REGISTRY npm_config_registry")

// begins reports whether a name begins as one of a list does.
func begins(name string, list []string) bool {
	return slices.ContainsFunc(list, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// isNamedApart reports whether a variable that does not enter is named to the user.
func isNamedApart(name string) bool { return begins(name, families) && !begins(name, ownNames) }

// FateOfVariable says what becomes of a variable that Claude Code reads: "enters", as it is or adapted; "named", as one
// that is left out; or why nobody misses it. It is empty if that was not decided.
func FateOfVariable(name string) string {
	enters := slices.Concat(plan.VariablesOf("claude"), proxies, []string{"PATH"})
	for secret, of := range broker.Usual {
		enters = append(enters, secret, of.Base)
	}
	switch {
	case slices.Contains(enters, name):
		return "enters"
	case isNamedApart(name):
		return "named"
	case begins(name, ownNames):
		return "Claude Code sets it for what it starts"
	}
	for _, one := range apart {
		if begins(name, strings.Fields(one.names)) {
			return one.because
		}
	}
	return ""
}

// NotPassed lists the variables of families, builds and proxies that are set outside and not
// inside; entering are the names of those inside.
func NotPassed(env host.Environment, entering []string, tier string) []string {
	var list []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" {
			continue
		}
		isProxy := slices.Contains(proxies, strings.ToUpper(name))
		missed := isNamedApart(name) || begins(name, builds) || isProxy && tier != profile.TierAllow
		if missed && !slices.Contains(entering, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// ExtraEnv reads CLAUDEBOX_EXTRA_ENV, a list with commas.
func ExtraEnv(env host.Environment) []string {
	var names []string
	for name := range strings.SplitSeq(env.Value(ExtraVariable, ""), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// ExtraVariable is the host's variable that lists further ones to let in.
const ExtraVariable = "CLAUDEBOX_EXTRA_ENV"

// JudgeExtraEnv returns an error if a word is not the name of a variable, and notes on those that are not set or that
// have an effect of their own: nothing that was asked for is left out in silence.
func JudgeExtraEnv(env host.Environment) (made launch.Part, err error) {
	for _, name := range ExtraEnv(env) {
		if !launch.IsName(name) {
			return made, diag.Errorf("read "+ExtraVariable,
				"write names with commas between: "+ExtraVariable+"=GH_TOKEN,AWS_PROFILE",
				"%q is not the name of a variable", name)
		}
		if _, set := env.Get(name); !set {
			made.Note(name + " of " + ExtraVariable + " is not set here")
		}
		if what := profile.Effect(name); what != "" {
			made.Note(name + " of " + ExtraVariable + " " + what)
		}
	}
	return made, nil
}
