package program

import (
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
)

// The variables that Claude Code reads are some hundreds, so what becomes of each is said by rules: names and prefixes.
// A test compares them with the installed program (TestEveryVariableOfClaudeCodeIsKnown).

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
	"CLAUDE_CODE_REMOTE CLAUDE_CODE_SESSION_ CLAUDE_CODE_SSE_PORT CLAUDE_CODE_TMUX_ CLAUDE_EFFORT " +
	"CLAUDE_PID CLAUDE_PLUGIN_ CLAUDE_PROJECT_DIR CLAUDE_RUNNER_ CLAUDE_SDK_ GIT_AUTHOR_EMAIL " +
	"GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_NAME GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM GIT_CONFIG_SYSTEM " +
	"GIT_EDITOR GIT_PAGER")

// builds are names and prefixes of variables by which package managers, compilers, version managers and tests of many
// languages know where packages come from and how to build: without them packages come from public registries.
var builds = strings.Fields("ASDF_ CARGO_BUILD_ CARGO_NET_ CARGO_PROFILE_ CARGO_REGISTRIES_ CARGO_REGISTRY_ CFLAGS " +
	"CGO_ CMAKE_ CONDA_CHANNELS CONDARC CPATH CPLUS_INCLUDE_PATH CPPFLAGS CXXFLAGS C_INCLUDE_PATH BUNDLE_ GOAMD64 " +
	"GOARCH GOEXPERIMENT GOFLAGS GOINSECURE GONOPROXY GONOSUM GOOS GOPRIVATE GOPROXY GOSUMDB GOTOOLCHAIN GOWORK " +
	"GRADLE_OPTS GRADLE_USER_HOME JAVA_TOOL_OPTIONS LDFLAGS LD_LIBRARY_PATH LIBRARY_PATH MAKEFLAGS " +
	"MAVEN_ARGS MAVEN_OPTS MISE_ENV NODENV_VERSION NODE_OPTIONS NPM_CONFIG_REGISTRY NPM_CONFIG_USERCONFIG PIP_ " +
	"POETRY_ PYENV_VERSION PYTEST_ADDOPTS RBENV_VERSION RUSTC_WRAPPER RUSTFLAGS RUSTUP_TOOLCHAIN UV_ YARN_NPM_ " +
	"YARN_REGISTRY npm_config_registry npm_config_userconfig")

// exact are names of variables of the same kind that are the beginning of others.
var exact = strings.Fields("BASH_ENV CC CXX HATCH_ENV NODE_ENV RIPGREP_CONFIG_PATH")

// locales are the variables by which what programs print and sort differs from LANG.
var locales = strings.Fields("LC_COLLATE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME")

// services are names and prefixes of variables by which a project's programs find databases, clouds, containers, and
// what is installed in a place of its own.
var services = strings.Fields("ANDROID_HOME AWS_DEFAULT_REGION AWS_ENDPOINT_URL AWS_PROFILE AWS_REGION COMPOSE_ " +
	"CONTAINER_HOST DATABASE_URL DJANGO_SETTINGS_MODULE DOCKER_CONTEXT DOCKER_HOST GH_HOST HF_HOME JAVA_HOME " +
	"KUBECONFIG MONGODB_URI MYSQL_ NODE_PATH PERL5LIB PGDATABASE PGHOST PGPORT PGSERVICE PGUSER PKG_CONFIG_PATH " +
	"PLAYWRIGHT_BROWSERS_PATH PUPPETEER_EXECUTABLE_PATH PYTHONPATH RAILS_ENV REDIS_URL SPRING_PROFILES_ACTIVE " +
	"VAULT_ADDR")

// begins reports whether a name begins as one of a list does.
func begins(name string, list []string) bool {
	return slices.ContainsFunc(list, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// isNamedApart reports whether a variable that does not enter is named to the user.
func isNamedApart(name string) bool { return begins(name, families) && !begins(name, ownNames) }

// NotPassed lists the variables of families, builds, exact, services, proxies and locales that are set outside and not
// inside; entering are the names of those inside.
func NotPassed(env host.Environment, entering []string, tier string) []string {
	var list []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" || slices.Contains(host.ToolsVariables, name) { // of these tells [networking.Missing]
			continue
		}
		isProxy := slices.Contains(proxies, strings.ToUpper(name)) && tier != profile.TierAllow
		differs := slices.Contains(locales, name) && env.Value("LC_ALL", "") == "" && value != env.Value("LANG", "") &&
			hasLocale(value)
		missed := isNamedApart(name) || begins(name, builds) || begins(name, services) ||
			slices.Contains(exact, name) || differs || isProxy
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
		if !diag.IsVariable(name) {
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
