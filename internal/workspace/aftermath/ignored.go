package aftermath

import (
	"errors"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
)

// ignoring is what a .gitignore said before a session.
type ignoring struct {
	Rel    string
	Rules  []string
	Secret string // a file that it may ignore: it was hidden, and is not tracked
}

// untracked returns what was hidden and no index had.
func (was record) untracked() []string {
	return slices.DeleteFunc(slices.Clone(was.Hidden), func(rel string) bool {
		return slices.Contains(was.Tracked, rel)
	})
}

// ignoringAbove reads the .gitignore of each folder that a secret lies in, whether there is one or not. In a git folder
// git does not look for files to add.
func ignoringAbove(tree *beneath.Folder, secrets []string) (list []ignoring) {
	read := map[string]bool{}
	for _, rel := range secrets {
		if slices.Contains(strings.Split(rel, "/"), ".git") {
			continue
		}
		for dir := path.Dir(rel); !read[dir]; dir = path.Dir(dir) {
			read[dir] = true
			at := path.Join(dir, ".gitignore")
			list = append(list, ignoring{at, ignoredBy(tree, at), rel})
		}
	}
	return list
}

// ignoredBy returns the rules in a .gitignore; none if git would not read it either: a link, a folder, a closed file.
// Of a file that is too large it returns the rule that ignores nothing.
func ignoredBy(tree *beneath.Folder, rel string) []string {
	const limit = 1 << 20
	content, err := tree.Read(rel, limit)
	if errors.Is(err, beneath.ErrTooLarge) {
		return []string{"!*"}
	}
	return git.Ignoring(content)
}

// unignored returns the files that may ignore less than before the session, so that the user's `git add .` takes along
// what was hidden.
func (was record) unignored(tree *beneath.Folder) (changes []Change) {
	for _, i := range was.Ignoring {
		if git.Unignores(i.Rules, ignoredBy(tree, i.Rel)) {
			means := git.Unignored + "; " + diag.Name(i.Secret) + " was hidden inside"
			changes = append(changes, Change{Path: i.Rel, Change: Changed, Means: means})
		}
	}
	return changes
}
