package git

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"claudebox/internal/workspace/gitconfig"
)

// grammar reports whether a file may hold this, whoever wrote it. None but
// [anything] lets control characters through: some of these files reach the
// terminal.
type grammar func(content string) bool

func anything(string) bool { return true }

func nothing(string) bool { return false }

func text(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0
	})
}

func oneLine(s string) bool { return text(s) && strings.Count(strings.TrimRight(s, "\n"), "\n") == 0 }

// matching takes what a pattern matches as a whole. It is compiled when it is
// first asked: all of them together take 3 ms, and most launches ask none.
func matching(pattern string) grammar {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(?:` + pattern + `)\z`) })
	return func(s string) bool { return compiled().MatchString(s) }
}

var (
	number = matching(`[0-9]{0,9}\s*`)
	// hashes are object names, several on a line where git maps old to new.
	hashes = matching(`(?:[0-9a-f]{4,64}\s*)*`)
	// flag is a file that counts by being there, or holds a plain word.
	flag   = matching(`(?:[A-Za-z0-9-]{0,60}\s*){0,4}`)
	branch = matching(`(?:[A-Za-z0-9._/+@=#-]{1,1000}|detached HEAD)?\s*`)
	// words are arguments without what a shell would take for more.
	words    = matching(`[A-Za-z0-9._/=:@~^, '\n-]*`)
	author   = matching(`(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)='(?:[^'[:cntrl:]]|'\\'')*'\n?)*`)
	signing  = matching(`(?:-S[0-9A-Fa-f]*|--no-gpg-sign)?\s*`)
	strategy = matching(`(?:ort|recursive|resolve|octopus|ours|subtree)?\s*`)
	// applying are options of git-apply that choose no file.
	applying = matching(`(?: ?'?(?:-C[0-9]+|-p[0-9]+|--ignore-whitespace|--whitespace=[a-z-]+|--reject|--3way)'?)*\s*`)
)

// harmlessSteps are the commands of a list that run no program (git-rebase(1)).
var harmlessSteps = []string{
	"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f", "drop", "d", "break", "b", "label", "l",
	"reset", "t", "merge", "m", "update-ref", "u", "noop", "revert",
}

func steps(s string) bool {
	for line := range strings.Lines(s) {
		if words := strings.Fields(line); len(words) > 0 && words[0][0] != '#' &&
			!slices.Contains(harmlessSteps, words[0]) {
			return false
		}
	}
	return text(s)
}

// attributes choose none of the user's own filters, diff and merge drivers.
func attributes(s string) bool {
	for line := range strings.Lines(s) {
		words := strings.Fields(line)
		for _, word := range words[min(1, len(words)):] {
			name, _, set := strings.Cut(strings.TrimLeft(word, "-!"), "=")
			if strings.HasPrefix(words[0], "[attr]") ||
				set && slices.Contains([]string{"filter", "diff", "merge"}, name) {
				return false
			}
		}
	}
	return text(s) && !strings.ContainsAny(s, "\"")
}

// options are those of an interrupted cherry-pick.
func options(s string) bool {
	entries, err := gitconfig.Parse([]byte(s))
	return err == nil && text(s) && !slices.ContainsFunc(entries, func(e gitconfig.Entry) bool {
		return e.Section != "options" || e.Name == "strategy" && !strategy(e.Value) ||
			e.Name == "gpg-sign" && !signing("-S"+e.Value)
	})
}
