package profile

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"claudebox/internal/diag/pattern"
	"claudebox/internal/profile/shape"
)

// Rules for texts that are not paths, hosts or packages; for those see paths.go and refs.go.
var (
	anyLine = shape.Rule{
		Name:  "one line of text",
		Judge: checkLine,
	}
	profileName = shape.Rule{
		Name:     "a profile name",
		Pattern:  `^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`,
		Form:     "up to 64 letters, digits, dots, pluses, dashes and underscores",
		Examples: []string{"work"},
	}
	profileRef = shape.Rule{
		Name:     "the name or file of a profile",
		Pattern:  `^.+$`,
		Examples: []string{"default", "./team.yaml"},
		Judge:    checkLine,
	}
	programName = shape.Rule{
		Name:     "the name of a program",
		Pattern:  `^[A-Za-z0-9_][A-Za-z0-9._+-]*$`,
		Examples: []string{"claude"},
		Judge:    checkProgramName,
	}
	commandWord = shape.Rule{
		Name:    "a word of a command line",
		Pattern: `^[\s\S]+$`,
		Remedy:  "remove the word",
	}
	envName = shape.Rule{
		Name:     "the name of an environment variable",
		Pattern:  envPattern,
		Examples: []string{"AWS_PROFILE"},
		Judge:    checkEnvName,
	}
	writePlace = shape.Rule{
		Name: "a path at a host, with a method in front if need be; * is any part of it, and all below is meant, " +
			"with the place itself, if it ends in /",
		Pattern:  `^([A-Z]{1,12} )?/([A-Za-z0-9._~@:+,=$!()&-]+|\*)?(/([A-Za-z0-9._~@:+,=$!()&-]+|\*))*/?$`,
		Examples: []string{"/repos/me/mine/hooks/", "POST /user/keys"},
	}
	headerName = shape.Rule{
		Name:     "the name of a header",
		Pattern:  `^[A-Za-z][A-Za-z0-9-]*$`,
		Examples: []string{"X-Api-Key"},
	}
	serverName = shape.Rule{
		Name:     "the name of an MCP server",
		Pattern:  `^[A-Za-z0-9_][A-Za-z0-9._-]*$`,
		Examples: []string{"github"},
	}
	memorySize = shape.Rule{
		Name:     "a size of memory",
		Pattern:  `^[1-9][0-9]{0,5}[KMGT]$`,
		Remedy:   "write a number and K, M, G or T: 8G",
		Examples: []string{"8G"},
		Judge:    checkMemorySize,
	}
	devshellRef = shape.Rule{
		Name:     "auto, off, or a flake reference",
		Pattern:  `^[A-Za-z0-9./~#][^ \t]*$`,
		Form:     "what `nix develop` takes",
		Examples: []string{"auto", "off", ".#default"},
		Judge:    checkLine,
	}
	projectFile = shape.Rule{
		Name:     "a file of the project",
		Pattern:  `^[^/~-].*$`,
		Form:     "a path below the project",
		Examples: []string{"shell.nix"},
		Judge:    line(checkProjectFile),
	}
	variableGlob = shape.Rule{
		Name:     "the name of an environment variable, with * for any part of it",
		Pattern:  `^[A-Za-z_*][A-Za-z0-9_*]*$`,
		Examples: []string{"PGHOST", "MY_*"},
	}
	waitTime = shape.Rule{
		Name:     "a time to wait",
		Pattern:  `^[1-9][0-9]{0,3}[smh]$`,
		Remedy:   "write a number and s, m or h: 5m",
		Examples: []string{"5m"},
	}
	cpuShare = shape.Rule{
		Name:     "a share of processors in percent",
		Pattern:  `^[1-9][0-9]{0,5}%$`,
		Remedy:   "write a number and %: 400%",
		Examples: []string{"400%"},
	}
)

func checkProjectFile(text string) *shape.Fault {
	if climbs(text) {
		return fault("name one below the project", "%s leads out of the project", shape.Quote(text))
	}
	return nil
}

const envPattern = `^[A-Za-z_][A-Za-z0-9_]*$`

func fault(remedy, format string, args ...any) *shape.Fault {
	return &shape.Fault{Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

func isControl(r rune) bool { return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 }

func checkLine(text string) *shape.Fault {
	switch {
	case text == "":
		return fault("write a value, or remove the key", "the text is empty")
	case strings.ContainsFunc(text, isControl):
		return fault("", "%s holds a control character or a line break", shape.Quote(text))
	}
	return nil
}

func checkProgramName(text string) *shape.Fault {
	if strings.ContainsAny(text, "/ ") {
		return fault("write agent: {command: [PROGRAM, WORD…]}",
			"%s is a command, not the name of a program", shape.Quote(text))
	}
	return nil
}

func checkEnvName(text string) *shape.Fault {
	name, value, assigned := strings.Cut(text, "=")
	switch {
	case isToken(text):
		return fault("put it into a variable, and name that", "a token stands where the name of a variable is expected")
	case assigned && pattern.Expr(envPattern).Matches(name):
		return fault("name the variable only; constants go under env", "%s=… has a value (%d bytes)", name, len(value))
	case strings.HasPrefix(text, "$"):
		return fault("write it without the $", "%s is not the name of a variable", shape.Quote(text))
	case !pattern.Expr(envPattern).Matches(text):
		return fault("",
			"%s is not the name of a variable; expected letters, digits and underscores", shape.Quote(text))
	}
	if instead := madeNames[text]; instead != "" {
		return fault(instead, "%s is made by claudebox and cannot be set", text)
	}
	return nil
}

// minTasks and maxTasks bound the limit on processes and threads: a shell with an
// agent in it needs minTasks; Linux allows at most maxTasks (PID_MAX_LIMIT).
const minTasks, maxTasks = 32, 4194304

// minMemory is the smallest limit on memory, in bytes: with less an agent does not start.
const minMemory = 64 << 20

// units are the units of memory by letter, in bytes; percent is that of processors, seconds are those of time.
var (
	units   = map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}
	percent = map[byte]int64{'%': 1}
	seconds = map[byte]int64{'s': 1, 'm': 60, 'h': 3600}
)

func checkMemorySize(text string) *shape.Fault {
	if size := amount(text, units); size > 0 && size < minMemory {
		return fault("write 64M or more", "%s is too little for an agent to start", shape.Quote(text))
	}
	return nil
}

// amount reads a whole number followed by a one-letter unit and returns it in the
// smallest unit; it returns 0 if text is anything else.
func amount(text string, units map[byte]int64) int64 {
	last := max(0, len(text)-1)
	n, err := strconv.ParseInt(text[:last], 10, 32)
	if err != nil {
		return 0
	}
	return n * units[text[last]]
}

// line returns a check that refuses empty text and control characters (checkLine),
// and then calls judge.
func line(judge func(text string) *shape.Fault) func(text string) *shape.Fault {
	return func(text string) *shape.Fault {
		if fault := checkLine(text); fault != nil {
			return fault
		}
		return judge(text)
	}
}

// madeFolders are the entries of the agent's home that claudebox always makes itself.
var madeFolders = []string{
	".bun", ".cache", ".cargo", ".claude", ".claude.json", ".gitconfig", ".gradle", ".m2", ".npm",
}

// checkHomeFolder checks the name of a folder below the agent's home. text must not be empty.
func checkHomeFolder(text string) *shape.Fault {
	switch {
	case text[0] == '~':
		return fault("write it without ~/", "%s: the folder is below home anyway", shape.Quote(text))
	case strings.HasPrefix(text, "/"):
		return fault("", "%s is absolute; expected a folder below home", shape.Quote(text))
	case path.Clean(text) != text || text == "." || climbs(text):
		return fault("write "+path.Clean("/" + text)[1:], "%s is not a plain path below home", shape.Quote(text))
	}
	first, _, _ := strings.Cut(text, "/")
	switch {
	case first[0] != '.':
		return fault("", "%s does not begin with a dot; expected a folder of an agent's own", shape.Quote(text))
	case slices.Contains(madeFolders, first):
		return fault("", "%s is made by claudebox", shape.Quote(text))
	}
	return nil
}

// climbs reports whether a path has a segment "..".
func climbs(text string) bool { return slices.Contains(strings.Split(text, "/"), "..") }

// madeNames are the variables that claudebox sets inside; a profile may not set
// them, as that would break the sandbox or have no effect. The value is the remedy.
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

// effects are variables that make programs run code or connect somewhere.
// A name that ends in * matches all names with that prefix.
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

// Effect returns what a variable makes programs do ("is run by every bash
// script"), or "" if the variable is not known to have such an effect.
func Effect(name string) string {
	for _, e := range effects {
		prefix, all := strings.CutSuffix(e.name, "*")
		if name == e.name || all && strings.HasPrefix(name, prefix) {
			return e.what
		}
	}
	return ""
}

// tokenPattern matches well-known kinds of access tokens that could pass as the
// name of a variable.
const tokenPattern = `^(gh[pousr]_|github_pat_|glpat-|npm_|pypi-|hf_|sk[_-]|xox|AKIA|eyJ)[A-Za-z0-9-]{16}`

// isToken reports whether a text, where the name of a variable is expected, is
// probably an access token. It must then appear in no message and no plan.
func isToken(text string) bool { return pattern.Expr(tokenPattern).Matches(text) }
