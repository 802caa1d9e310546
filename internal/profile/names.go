package profile

import "strings"

// madeNames are variables that claudebox makes inside; a profile that set
// them would break the sandbox or see no effect.
var madeNames = []struct{ name, instead string }{
	{"CLAUDEBOX", "remove it"},
	{"CLAUDE_CONFIG_DIR", "use state: to choose where the agent's home is kept"},
	{"HOME", "remove it; home is at the same path inside"},
	{"NIX_REMOTE", "use nix: {daemon: …}"},
	{"PATH", "use packages: to put programs on PATH"},
	{"SHELL", "remove it; it is the bash of the sandbox"},
	{"TMPDIR", "remove it; it is /tmp inside"},
	{"XDG_RUNTIME_DIR", "remove it; the sandbox has one of its own"},
}

// madeInside is what to do in the place of setting a variable that claudebox
// makes, or "" for all others.
func madeInside(name string) string {
	for _, m := range madeNames {
		if m.name == name {
			return m.instead
		}
	}
	return ""
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

// tokenPrefixes are how well-known tokens begin that could be taken for the
// name of a variable.
var tokenPrefixes = []string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "pypi-", "hf_",
	"sk-", "sk_", "xox", "AKIA", "eyJ",
}

// tokenRun is how many letters, digits and dashes follow at least.
const tokenRun = 16

// isToken reports whether a text is probably a token itself, where a name is
// expected: it must reach neither a message nor a plan.
func isToken(text string) bool {
	inRun := func(c byte) bool { return isAlnum(c) || c == '-' }
	for _, prefix := range tokenPrefixes {
		rest, found := strings.CutPrefix(text, prefix)
		if found && len(rest) >= tokenRun && made(rest[:tokenRun], inRun, inRun) {
			return true
		}
	}
	return false
}
