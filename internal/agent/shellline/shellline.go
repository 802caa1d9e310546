// Package shellline says what a shell would run for a command line, and what it would give to that, as far as that can
// be told without a shell. The settings of agents and of git have such lines.
package shellline

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// line is one command line.
type line struct {
	source   string
	programs []string
	asked    []string // the line looks itself whether they are there
}

// Programs returns the programs that are run, each once. None of a line that no shell reads.
func Programs(command string) []string {
	l := line{source: command}
	l.walk(func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			l.call(l.texts(n.Args))
		case *syntax.FuncDecl:
			l.asked = append(l.asked, n.Name.Value)
		}
		return true
	})
	var found []string
	for _, name := range l.programs {
		if !slices.Contains(l.asked, name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// Words returns the words that may name a file which is read, without quotes, and with variables as they are written:
// arguments, values, and what is read from. What is written to is made.
func Words(command string) (words []string) {
	l := line{source: command}
	l.walk(func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			if n.Op == syntax.RdrIn {
				words = append(words, l.text(n.Word))
			}
			return false
		case *syntax.Word:
			words = append(words, l.text(n))
		}
		return true
	})
	return words
}

// walk visits all that a shell would read in the line: nothing of one that no shell reads.
func (l *line) walk(visit func(syntax.Node) bool) {
	if file, err := syntax.NewParser().Parse(strings.NewReader(l.source), ""); err == nil {
		syntax.Walk(file, visit)
	}
}

func (l *line) texts(list []*syntax.Word) (words []string) {
	for _, word := range list {
		words = append(words, l.text(word))
	}
	return words
}

// text returns a word without quotes.
func (l *line) text(word *syntax.Word) string {
	var b strings.Builder
	for _, part := range word.Parts {
		l.part(&b, part)
	}
	return b.String()
}

func (l *line) part(b *strings.Builder, part syntax.WordPart) {
	switch part := part.(type) {
	case *syntax.Lit:
		for rest := part.Value; rest != ""; {
			before, after, _ := strings.Cut(rest, `\`)
			b.WriteString(before)
			if rest = after; rest != "" { // what a backslash stands before, be it another one
				b.WriteByte(rest[0])
				rest = rest[1:]
			}
		}
	case *syntax.SglQuoted:
		b.WriteString(part.Value)
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			l.part(b, inner)
		}
	default:
		b.WriteString(l.source[part.Pos().Offset():part.End().Offset()])
	}
}

// builtins are commands of the shell itself, and no programs.
var builtins = strings.Fields(`: . [ alias bg break cd continue declare echo eval exit export false fg getopts hash jobs
	kill let local printf pwd read readonly return set shift shopt source test times trap true type ulimit umask unalias
	unset wait`)

// Other commands that the words of a command are given to.
var (
	shells  = []string{"sh", "bash", "dash", "zsh", "ksh"}                                       // the word behind -c
	runners = []string{"env", "ionice", "nice", "nohup", "setsid", "stdbuf", "timeout", "xargs"} // programs
	passing = []string{"command", "exec"}                                                        // of the shell itself
	asking  = []string{"hash", "type", "which"}                                                  // whether one is there
)

// call notes what a simple command runs.
func (l *line) call(words []string) {
	if len(words) == 0 || words[0] == "" {
		return
	}
	name, rest := words[0], words[1:]
	isFlag := len(rest) > 0 && slices.Contains([]string{"-v", "-V"}, rest[0])
	switch {
	case slices.Contains(asking, name), name == "command" && isFlag:
		l.asked = append(l.asked, rest...)
		if name == "which" {
			l.programs = append(l.programs, name)
		}
	case slices.Contains(passing, name):
		l.call(behindFlags(rest))
	case slices.Contains(builtins, name):
	default:
		l.programs = append(l.programs, name)
		if slices.Contains(runners, path.Base(name)) {
			l.call(behindFlags(rest))
		}
		if slices.Contains(shells, path.Base(name)) {
			l.script(rest)
		}
	}
}

// script notes what the line behind a shell's -c runs.
func (l *line) script(words []string) {
	for i, word := range words[:max(0, len(words)-1)] {
		if strings.HasPrefix(word, "-") && strings.HasSuffix(word, "c") {
			l.programs = append(l.programs, Programs(words[i+1])...)
			return
		}
	}
}

// behindFlags returns the program that a runner is given, with its words: what stands behind the runner's own flags,
// variables, times, numbers and places.
func behindFlags(words []string) []string {
	for len(words) > 0 {
		word := words[0]
		name, _, assigns := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "-"):
			if takesWord(word) && len(words) > 1 {
				words = words[1:]
			}
		case word == "", strings.IndexAny(word, "{0123456789") == 0, assigns && !strings.ContainsAny(name, "/$~"):
		default:
			return words
		}
		words = words[1:]
	}
	return nil
}

// takesWord reports whether a flag of a runner takes the next word.
func takesWord(flag string) bool {
	return len(flag) == len("-x") && strings.Contains("CEILPSacdknsu", flag[1:])
}
