package agent

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// shells are interpreters that every sandbox has of its own; the host's are
// not mounted for them.
var shells = []string{"sh", "bash"}

func isShell(interpreter string) bool { return slices.Contains(shells, path.Base(interpreter)) }

// wrapped is the program that a shell script starts when it does nothing
// else, as the one that Claude Code's local installation leaves in
// ~/.claude/local; empty otherwise.
func wrapped(text string) string {
	program := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if program != "" {
			return ""
		}
		if program = started(line); program == "" {
			return ""
		}
	}
	return program
}

// started is the program that a line of shell becomes with the script's own
// words, when its path means what it says.
func started(line string) string {
	rest, become := strings.CutPrefix(line, "exec ")
	rest, words := strings.CutSuffix(rest, ` "$@"`)
	program := strings.Trim(rest, `"`)
	if !become || !words || !path.IsAbs(program) || strings.ContainsAny(program, "\"'$`\\ \t*?[]{}~;&|<>()#") {
		return ""
	}
	return program
}

// script says how to run a script: by its interpreter, spelt out, since the
// interpreter need not be where the script's first line has it.
func (f *finder) script(name, text string) ([]string, error) {
	if f.scripts++; f.scripts > maxScripts {
		return nil, notExecutable(name, "", "interpreters that are scripts themselves, more than %d deep", maxScripts)
	}
	interpreter, words := shebang(text)
	if interpreter == "" {
		return nil, notExecutable(name, "", "its first line names no interpreter")
	}
	if isShell(interpreter) {
		if program := wrapped(text); program != "" {
			return f.words(program)
		}
		f.notes = append(f.notes, path.Base(name)+" is a shell script: what it starts must be inside as well")
	}
	f.own(name, f.packageOfScript)
	first, err := f.interpreter(name, interpreter)
	if err != nil {
		return nil, err
	}
	return slices.Concat(first, words, []string{name}), nil
}

// shebang takes the first line of a script apart as the kernel does, and
// behind env(1) as env does: one word for an interpreter, all that follows
// for its one argument, or for env -S as many as there are.
func shebang(text string) (interpreter string, words []string) {
	line, _, _ := strings.Cut(strings.TrimPrefix(text, "#!"), "\n")
	interpreter, rest, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")), " ")
	rest = strings.TrimSpace(rest)
	if path.Base(interpreter) != "env" {
		if rest != "" {
			words = []string{rest}
		}
		return interpreter, words
	}
	split := strings.Fields(rest)
	if len(split) > 0 && (split[0] == "-S" || split[0] == "--split-string") {
		split = split[1:]
	}
	if len(split) == 0 {
		return "", nil
	}
	return split[0], split[1:]
}

// interpreter finds what runs a script: by a bare name (env's) inside, then
// the manifest's node, then on the caller's PATH; by a path the host's file,
// but for shells.
func (f *finder) interpreter(script, word string) ([]string, error) {
	base := path.Base(word)
	if !path.IsAbs(word) || slices.Contains(shells, base) {
		if name := f.search(f.Inside, base); name != "" {
			return []string{name}, nil
		}
	}
	if base == "node" && f.Node != "" {
		return []string{f.Node}, nil
	}
	f.alone = true
	words, err := f.hostInterpreter(word)
	if errors.Is(err, ErrNotFound) {
		return nil, notExecutable(script, "add the package that has "+base+" to the profile's packages",
			"its interpreter %s is not found", word)
	}
	return words, err
}

func (f *finder) hostInterpreter(word string) ([]string, error) {
	if path.IsAbs(word) {
		return f.words(word)
	}
	name, err := f.onPath(word)
	if err != nil {
		return nil, err
	}
	return f.words(name)
}
