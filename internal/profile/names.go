package profile

import (
	"strings"

	"claudebox/internal/profile/shape"
)

// madeNames are variables that claudebox makes inside, with what to do in the place
// of setting one: that would break the sandbox or have no effect.
var madeNames = map[string]string{
	"CLAUDEBOX":         "remove it",
	"CLAUDE_CONFIG_DIR": "use state: to choose where the agent's home is kept",
	"HOME":              "remove it; home is at the same path inside",
	"NIX_REMOTE":        "use nix: {daemon: …}",
	"PATH":              "use packages: to put programs on PATH",
	"SHELL":             "remove it; it is the bash of the sandbox",
	"TMPDIR":            "remove it; it is /tmp inside",
	"XDG_RUNTIME_DIR":   "remove it; the sandbox has one of its own",
}

// effects are variables that do more than carry text (SAND-03b). A name that
// ends in * stands for all that begin so.
var effects = []struct{ name, what string }{
	{"LD_*", "makes the loader run other code in every program"},
	{"GCONV_PATH", "makes programs load other code"},
	{"BASH_ENV", "is run by every bash script"},
	{"ENV", "is run by every interactive sh"},
	{"PROMPT_COMMAND", "is run by every interactive bash"},
	{"NODE_OPTIONS", "can load code into every node program"},
	{"PYTHONSTARTUP", "is run by every interactive python"},
	{"PYTHONPATH", "can load code into every python program"},
	{"PERL5OPT", "can load code into every perl program"},
	{"PERL5LIB", "can load code into every perl program"},
	{"RUBYOPT", "can load code into every ruby program"},
	{"RUBYLIB", "can load code into every ruby program"},
	{"JAVA_TOOL_OPTIONS", "can load code into every java program"},
	{"_JAVA_OPTIONS", "can load code into every java program"},
	{"GIT_ASKPASS", "is run by git"},
	{"GIT_CONFIG*", "changes what git runs"},
	{"GIT_EXTERNAL_DIFF", "is run by git"},
	{"GIT_SSH*", "is run by git"},
	{"SSH_ASKPASS", "is run by ssh"},
	{"SSH_AUTH_SOCK", "names a socket that signs with your SSH keys"},
	{"GPG_AGENT_INFO", "names a socket that signs with your GPG keys"},
	{"DBUS_*", "names a socket that drives your desktop session"},
	{"DOCKER_HOST", "names a socket that gives root on the host"},
	{"DISPLAY", "names a socket that reads your keyboard and screen"},
	{"WAYLAND_DISPLAY", "names a socket of your desktop"},
}

// Effect says what a variable does beyond carrying text ("is run by every
// bash script"), or "" when it does nothing of the kind.
func Effect(name string) string {
	for _, e := range effects {
		prefix, all := strings.CutSuffix(e.name, "*")
		if name == e.name || all && strings.HasPrefix(name, prefix) {
			return e.what
		}
	}
	return ""
}

// tokenPattern is how well-known tokens look that could be taken for the name of a
// variable.
const tokenPattern = `^(gh[pousr]_|github_pat_|glpat-|npm_|pypi-|hf_|sk[_-]|xox|AKIA|eyJ)[A-Za-z0-9-]{16}`

// isToken reports whether a text is probably a token itself, where a name is
// expected: it must reach neither a message nor a plan.
func isToken(text string) bool { return shape.Matches(tokenPattern, text) }
