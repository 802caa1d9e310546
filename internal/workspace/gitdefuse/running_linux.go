package gitdefuse

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
)

// What an interrupted rebase, cherry-pick or `git am` goes on with. A list of
// steps may hold shell commands; a strategy is the name of a program, which
// may be a path (git runs git-merge-NAME).
var (
	stepLists  = []string{"rebase-merge/git-rebase-todo", "sequencer/todo"}
	strategies = []string{"rebase-merge/strategy", "rebase-apply/strategy"}
	sequencer  = "sequencer/opts"
)

// RunningPlaces are all of them, below a git folder.
func RunningPlaces() []string { return append(slices.Concat(stepLists, strategies), sequencer) }

// harmlessSteps are the commands of a list that run no program (git-rebase(1)).
var harmlessSteps = []string{
	"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f", "drop", "d", "break", "b", "label", "l",
	"reset", "t", "merge", "m", "update-ref", "u", "noop", "revert",
}

// ownStrategies are those that git has itself (git-merge(1)).
var ownStrategies = []string{"", "ort", "recursive", "resolve", "octopus", "ours", "subtree"}

// Runs tells whether what git goes on with makes it run a program. rel is one
// of [RunningPlaces] below a git folder.
func Runs(root *beneath.Folder, rel string) (bool, error) {
	what, err := root.Look(rel)
	if err != nil || what.Kind == beneath.Absent {
		return false, err
	}
	content, err := root.Read(rel, smallLimit)
	if err != nil {
		return true, nil //nolint:nilerr // git may be able to read it
	}
	_, clean := cleaned(rel, content)
	return !clean, nil
}

// cleaned gives a file of [RunningPlaces] without what runs programs, and
// whether it is as it was.
func cleaned(rel string, content []byte) (rest []byte, same bool) {
	switch path.Base(rel) {
	case "strategy":
		return nil, isOwnStrategy(string(content))
	case "opts":
		entries, err := gitconfig.Parse(content)
		bad := func(e gitconfig.Entry) bool { return e.Name == "strategy" && !isOwnStrategy(e.Value) }
		return nil, err == nil && !slices.ContainsFunc(entries, bad)
	}
	for line := range strings.Lines(string(content)) {
		if isHarmlessStep(line) {
			rest = append(rest, line...)
		}
	}
	return rest, len(rest) == len(content)
}

func isOwnStrategy(name string) bool { return slices.Contains(ownStrategies, strings.TrimSpace(name)) }

func isHarmlessStep(line string) bool {
	words := strings.Fields(line)
	return len(words) == 0 || words[0][0] == '#' || slices.Contains(harmlessSteps, words[0])
}

// Running takes out of a git folder what makes an interrupted rebase or
// cherry-pick run programs.
func (b *Bench) Running(rel string) error {
	for _, name := range RunningPlaces() {
		at := path.Join(rel, name)
		if b.known(at) {
			continue
		}
		runs, err := Runs(b.Root, at)
		if err != nil {
			return err
		}
		if !runs {
			continue
		}
		content, err := b.Root.Read(at, smallLimit)
		if err := b.aside(at, "what runs programs was taken out; as it was: %s"); err != nil {
			return err
		}
		if rest, _ := cleaned(at, content); err == nil && rest != nil {
			if err := b.allowed(path.Dir(at), func() error { return b.Root.Create(at, rest, 0o644) }); err != nil {
				return err
			}
		}
	}
	return nil
}
