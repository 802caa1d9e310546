package agenthome

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"claudebox/internal/secret/leak"
)

// hooks are the user's that can run inside; notes say of each other one why
// not. The shape is Claude Code's: event, matchers, and the hooks of each.
func (r Request) hooks(raw json.RawMessage) (kept map[string][]object, notes []string) {
	var events map[string][]object
	if len(raw) > 0 && json.Unmarshal(raw, &events) != nil {
		return nil, []string{"your setting hooks does not enter: it has another shape than Claude Code's"}
	}
	kept = map[string][]object{}
	for _, event := range slices.Sorted(maps.Keys(events)) {
		for _, matcher := range events[event] {
			var list, fit []object
			_ = json.Unmarshal(matcher["hooks"], &list) // of another shape: none
			for _, hook := range list {
				if reason := r.refuse(hook); reason != "" {
					notes = append(notes, "your hook of "+event+" does not enter: "+reason)
					continue
				}
				fit = append(fit, hook)
			}
			if len(fit) > 0 {
				matcher = maps.Clone(matcher)
				matcher.set("hooks", fit)
				kept[event] = append(kept[event], matcher)
			}
		}
	}
	return kept, notes
}

// statusLine is the user's own where it can run inside, else one that says
// where the agent runs.
func (r Request) statusLine(raw json.RawMessage) (line json.RawMessage, notes []string) {
	if own := parseObject(raw); own != nil {
		reason := r.refuse(own)
		if reason == "" {
			return raw, nil
		}
		notes = []string{"your setting statusLine does not enter: " + reason}
	}
	if r.Status == "" {
		return nil, notes
	}
	o := object{}
	o.set("statusLine", map[string]string{"type": "command", "command": "echo " + quote(r.Status)})
	return o["statusLine"], notes
}

// quote makes a text one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// refuse says why something that the user has run does not enter; empty: it
// does.
func (r Request) refuse(o object) string {
	var command string
	_ = json.Unmarshal(o["command"], &command) // none: a hook that runs no program
	for _, text := range o {
		if what := leak.Text(string(text)); what != "" {
			return "it holds what looks like " + what
		}
	}
	for _, program := range programs(command) {
		if reason := r.missing(program); reason != "" {
			return reason
		}
	}
	return ""
}

// missing says why a program cannot be run inside.
func (r Request) missing(program string) string {
	for _, prefix := range []string{"~/", "$HOME/", "${HOME}/"} {
		if rest, is := strings.CutPrefix(program, prefix); is {
			program = path.Join(r.UserHome, rest)
		}
	}
	if strings.Contains(program, "$") {
		return "" // only the shell inside knows
	}
	if rest, is := strings.CutPrefix(program, path.Join(r.UserHome, ".claude")+"/"); is {
		if first, _, below := strings.Cut(rest, "/"); below && slices.Contains(Folders, first) {
			return ""
		}
		return program + " is not inside; what lies in ~/.claude/hooks is"
	}
	if r.Inside == nil || r.Inside(program) {
		return ""
	}
	if strings.Contains(program, "/") {
		return program + " is not inside"
	}
	return program + " is not inside: add its package to the profile's `packages`"
}

// shellWords are no programs: the shell has them itself.
var shellWords = []string{
	"!", "{", "}", "[", "[[", ":", ".", "alias", "bg", "break", "case", "cd", "command", "continue", "declare",
	"do", "done", "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "false", "fg", "fi", "for",
	"function", "getopts", "hash", "if", "in", "jobs", "kill", "let", "local", "printf", "pwd", "read",
	"readonly", "return", "set", "shift", "shopt", "source", "test", "then", "time", "times", "trap", "true",
	"type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
}

// programs are what a command line of a shell runs, as far as can be told
// without one.
func programs(command string) []string {
	var found []string
	first := true
	for _, word := range shellSplit(command) {
		name, _, assigns := strings.Cut(word, "=")
		switch {
		case word == "\n":
			first = true
		case !first:
		case assigns && name != "" && !strings.ContainsAny(name, "/$~"):
		case slices.Contains(shellWords, word):
			first = slices.Contains([]string{
				"!", "{", "if", "then", "else", "elif", "do", "while", "until", "exec",
				"command", "time",
			}, word)
		default:
			found, first = append(found, word), false
		}
	}
	return slices.Compact(found)
}

// shellSplit gives the words of a command line, with "\n" where a new command
// begins. Quotes are taken away.
func shellSplit(command string) []string {
	var words []string
	var word strings.Builder
	inWord, quoted := false, rune(0)
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	escaped := false
	for _, c := range command {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quoted != '\'':
			escaped, inWord = true, true
		case quoted != 0:
			if c == quoted {
				quoted = 0
				continue
			}
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quoted, inWord = c, true
		case c == ' ' || c == '\t':
			end()
		case strings.ContainsRune("|&;()\n`", c):
			end()
			words = append(words, "\n")
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	end()
	return words
}
