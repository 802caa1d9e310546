package agent

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/agent/shellline"
	"claudebox/internal/diag/pattern"
	"claudebox/internal/linux/pathname"
)

// started is what a shell script starts in its own place, with the script's own arguments behind.
type started struct {
	program string
	words   []string // before the script's arguments
	env     []string // NAME=VALUE, that it exports
}

// Statements of a shell script that start nothing, and say nothing of what is started.
const (
	comment   pattern.Expr = `^(#.*)?$`
	statement pattern.Expr = `^(set [-+].*|if .*|then|else|elif .*|fi|case .*|esac|.*;;|[*|\w]+\)|` +
		`(unset|shopt|umask) .*|exit( \$\?| \d+)?|.*\bcygpath\b.*)$`
	assignment pattern.Expr = `^(export )?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`
)

// shimTarget is a line of the shims of pnpm 12 and of mise's packages of npm, which are long: the program that they
// start, by its path or by one from their own folder.
const shimTarget pattern.Expr = `(?m)^# (?:cmd-shim-target|aube-bin-shim v\d+ target)=(.+)$`

// startsWithWords reports whether a script starts a program of that name with the script's own arguments.
func startsWithWords(text, base string) bool {
	return strings.Contains(text, base+`' "$@"`) || strings.Contains(text, base+`" "$@"`)
}

// ownFolder are the ways in which a script names the folder that it lies in.
const ownFolder pattern.Expr = `\$\((cd .*)?.*(dirname|readlink|realpath)[^;]*\$\{?(0|BASH_SOURCE)`

// startedBy reads a shell script that does nothing but start another program: the shims of npm, pnpm and yarn, that of
// Claude Code's local installation, and people's wrappers that set variables and words. asked is the path by which the
// script is run, name its own. ok is false for any other.
func startedBy(asked, name, text, home string) (found started, ok bool) {
	if at := shimTarget.Compiled().FindStringSubmatch(text); at != nil && startsWithWords(text, path.Base(at[1])) {
		target := at[1]
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		return started{program: path.Clean(target)}, true
	}
	known := map[string]string{"HOME": home, "0": asked}
	seen := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		set := assignment.Compiled().FindStringSubmatch(line)
		switch {
		case comment.Matches(line) || statement.Matches(line):
		case set != nil && ownFolder.Matches(set[3]):
			known[set[2]] = path.Dir(asked)
			if strings.Contains(set[3], "readlink") || strings.Contains(set[3], "realpath") {
				known[set[2]] = path.Dir(name)
			}
		case set != nil && !strings.Contains(set[3], `"$@"`):
			value, literal := expand(set[3], known)
			switch {
			case literal:
				known[set[2]] = value
				if set[1] != "" {
					found.env = append(found.env, set[2]+"="+value)
				}
			case set[2] != "NODE_PATH": // where pnpm's packages lie, which are found without it, too
				return started{}, false
			}
		default:
			one, understood := execOf(line, known)
			if !understood || seen && (one.program != found.program || !slices.Equal(one.words, found.words)) {
				return started{}, false
			}
			found.program, found.words, seen = one.program, one.words, true
		}
	}
	return found, seen
}

// execOf reads a line that starts a program with the script's arguments. A node that is named before it is left out,
// as is the pnpm that pnpm's installer takes for one: the program's own first line says what runs it.
func execOf(line string, known map[string]string) (one started, ok bool) {
	line = strings.TrimPrefix(line, "exec ")
	words := strings.Fields(line)
	if len(words) < 2 || words[len(words)-1] != `"$@"` {
		return one, false
	}
	for _, word := range words[:len(words)-1] {
		text, literal := expand(word, known)
		if !literal {
			return one, false
		}
		one.words = append(one.words, text)
	}
	base := path.Base(one.words[0])
	if len(one.words) > 1 && (base == "node" || base == "pnpm" && path.IsAbs(one.words[1])) {
		one.words = one.words[1:]
	}
	one.program, one.words = path.Clean(one.words[0]), one.words[1:]
	return one, path.IsAbs(one.program)
}

// variable is a variable in a word of the shell.
const variable pattern.Expr = `\$(\w+|\{\w+\})`

// expand is a word without quotes, with known variables and a leading "~/" in their place; literal is false if the
// shell would make something else of it.
func expand(word string, known map[string]string) (text string, literal bool) {
	if len(word) > 1 && (word[0] == '"' || word[0] == '\'') && word[len(word)-1] == word[0] {
		quoted := word[0]
		if word = word[1 : len(word)-1]; quoted == '\'' {
			return word, !strings.Contains(word, "'")
		}
	} else if strings.ContainsAny(word, " \t") {
		return word, false // several words
	}
	literal = true
	if rest, is := strings.CutPrefix(word, "~/"); is {
		word = known["HOME"] + "/" + rest
	}
	word = strings.NewReplacer("${0%/*}", path.Dir(known["0"]), `$(dirname "$0")`, path.Dir(known["0"])).Replace(word)
	text = variable.Compiled().ReplaceAllStringFunc(word, func(v string) string {
		value, is := known[strings.Trim(v, "${}")]
		literal = literal && is
		return value
	})
	return text, literal && !strings.ContainsAny(text, "$`\"'\\*?[]{};&|<>()")
}

// managers are programs that stand for others by the name that they are called by, or by what a shim hands to them.
var managers = strings.Fields("asdf fnm mise nodenv proto proto-shim pyenv rtx vfox volta volta-shim")

// Manager is the version manager whose shim a program is, by its path without links; empty: it is none.
func Manager(real string) string {
	if base := path.Base(real); slices.Contains(managers, base) {
		return strings.TrimSuffix(base, "-shim")
	}
	return ""
}

// isShim returns an error for a program that is a version manager's, which would look for its installations inside.
func (f *finder) isShim(asked, real string) error {
	manager := Manager(real)
	if manager == "" || path.Base(real) == f.Name {
		return nil
	}
	return notExecutable(asked, fmt.Sprintf("`%s which %s` prints the program itself: name that in the profile, "+
		"`agent: {command: [PATH]}`", manager, f.Name), "it is a shim of %s, whose installations are not inside", manager)
}

// inPlace finds what a shell script starts in its own place, by a name that is looked for on PATH, there or by
// "$(which NAME)", and inCall what a script in another language starts so.
const (
	inPlace pattern.Expr = `(?m)(?:^|[;&|{]|\bthen|\belse)[ \t]*exec[ \t]+` +
		`"?(?:\$\((?:which|command -v|type -P)[ \t]+)?([A-Za-z0-9][\w.+-]*)"?(?:[ \t)]|$)`
	inCall pattern.Expr = `(?:exec\w*|spawn\w*|system|Popen|run|(?:check_)?(?:call|output)|which)[ \t]*[(\[ ]*` +
		`["']([A-Za-z0-9][\w.+-]*)["']`
)

// unfound is the program that a shell script starts by the agent's own name, or a version manager, and that will not be
// inside; empty: none.
func (f *finder) unfound(script string) string {
	for _, program := range shellline.Programs(script) {
		if _, is := f.search(f.Inside, program); !is && (program == f.Name || Manager(program) == program) {
			return program
		}
	}
	return ""
}

// starts is an error that says which program of the host a script names that will not be inside; nil: none. It is for
// scripts that [startedBy] does not understand. calls finds what the script starts by a name.
func (f *finder) starts(name, text string, calls pattern.Expr) error {
	missing := ""
	for _, found := range calls.Compiled().FindAllStringSubmatch(text, -1) {
		if _, is := f.search(f.Inside, found[1]); is || slices.Contains(shells, found[1]) {
			missing = ""
			break
		}
		missing = cmp.Or(missing, found[1])
	}
	if calls == inPlace && missing == "" {
		missing = f.unfound(text)
	}
	if missing != "" {
		return cmp.Or(f.isShim(name, missing), notExecutable(name,
			"add the package that has "+missing+" to the profile's packages, or name the agent's program itself: "+
				"`agent: {command: [PATH]}`, with what the script adds behind it",
			"it is a script that starts %s, which is not inside", missing))
	}
	between := func(r rune) bool { return strings.ContainsRune(" \t\n\"'();|&=", r) }
	if calls == inCall {
		between = func(r rune) bool { return strings.ContainsRune(" \t\n\"'();|&=,[]{}+`", r) }
	}
	for _, word := range strings.FieldsFunc(text, between) {
		word, _ = expand(word, map[string]string{"HOME": f.Home, "0": name})
		if calls == inCall && strings.Contains(word, "/") {
			if _, err := f.follow(path.Join("/", word)); err != nil || !path.IsAbs(word) {
				word = path.Join(f.Home, word) // which a call before it gives
			}
		}
		if !path.IsAbs(word) || slices.Contains(shells, path.Base(word)) || word == "/usr/bin/env" || word == name {
			continue
		}
		file, err := f.follow(word)
		if err != nil || !file.info.Mode().IsRegular() || !f.mayExecute(file) || inStore(file.name) {
			continue
		}
		if pathname.Below(word, "/bin") || pathname.Below(word, "/usr") {
			if _, is := f.search(f.Inside, path.Base(word)); is {
				continue
			}
		}
		return cmp.Or(f.isShim(name, word), notExecutable(name,
			"name the program that it starts in the profile: `agent: {command: ["+word+"]}`, with what "+
				"the script adds behind it",
			"it is a script that starts %s, which is not inside", word))
	}
	return nil
}
