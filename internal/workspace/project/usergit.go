package project

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/placeholder"
)

// UserGit is a file of the user's own git configuration.
type UserGit struct {
	Dir     string // the folder that it lies in
	Entries []gitconfig.Entry
}

// userNamed takes down what the user's own git configuration makes git read or
// run in the project.
func (o *opener) userNamed() {
	for _, file := range o.UserGit {
		for _, e := range file.Entries {
			switch {
			case isHooksPath(e):
				o.userHooks(e.Value)
			case gitconfig.IsInclude(e):
				o.userIncludes(o.named(file.Dir, e.Value))
			case isCommand(e):
				o.namedWords(o.worktree(), e.Value)
			}
		}
	}
}

// relativeNames are the paths in the user's own git configuration that are
// relative to whatever repository git is in.
func relativeNames(files []UserGit) (names []string) {
	for _, file := range files {
		for _, e := range file.Entries {
			words := []string{e.Value}
			switch {
			case isHooksPath(e):
			case isCommand(e):
				words = strings.FieldsFunc(e.Value, endsWord)
			default:
				continue
			}
			for _, word := range words {
				word = path.Clean(word)
				local := filepath.IsLocal(word) && word != "."
				if local && word[0] != '~' && (isHooksPath(e) || strings.Contains(word, "/")) &&
					!slices.Contains(names, word) {
					names = append(names, word)
				}
			}
		}
	}
	return names
}

func isHooksPath(e gitconfig.Entry) bool { return e.Section == "core" && e.Name == "hookspath" }

// userHooks keeps a folder of hooks. A relative one is that of any repository,
// of those that an agent makes, too.
func (o *opener) userHooks(name string) {
	o.kept(o.named(o.worktree(), name), true, whyHooks)
	if !filepath.IsAbs(name) && name != "" && name[0] != '~' {
		o.note(true, "your git runs hooks from "+name+
			" of any repository (core.hooksPath): look into one that was made inside before you use git there")
	}
}

func (o *opener) userIncludes(rel string) {
	if rel == "" {
		return
	}
	o.configuration, o.included = append(o.configuration, rel), append(o.included, rel)
	o.kept(rel, false, whyConfig)
}

// userNested does the same for hooks in nested repositories.
func (o *opener) userNested() error {
	for _, file := range o.UserGit {
		for _, e := range file.Entries {
			if !isHooksPath(e) || filepath.IsAbs(e.Value) {
				continue
			}
			for _, git := range o.Seen.Git {
				if git != ".git" {
					o.kept(o.named(o.tree.Join(path.Dir(git)), e.Value), true, whyHooks)
				}
			}
		}
	}
	return nil
}

// unmade takes down what git's configurations name and nobody has made yet, but
// for what a placeholder keeps from being made.
func (o *opener) unmade() error {
	for _, rel := range slices.Concat(o.alsoExecuted, o.configuration) {
		what, err := o.tree.Look(rel)
		held := slices.ContainsFunc(o.placeholders,
			func(p placeholder.Placeholder) bool { return p.Root == o.Path && p.Rel == rel && !p.Keep })
		if err == nil && what.Kind == beneath.Absent && !held {
			o.Scope.Unmade = append(o.Scope.Unmade, rel)
		}
	}
	slices.Sort(o.Scope.Unmade)
	o.Scope.Unmade = slices.Compact(o.Scope.Unmade)
	return nil
}

// worktree is where git starts programs from.
func (o *opener) worktree() string {
	if o.Repo.Worktree != "" {
		return o.Repo.Worktree
	}
	return o.Path
}
