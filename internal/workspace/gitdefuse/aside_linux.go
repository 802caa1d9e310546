package gitdefuse

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"claudebox/internal/linux/beneath"
)

// Aside is what the folders in a git folder are called, with a number where
// there are several, in which lies what was taken out of it.
const Aside = "claudebox-aside"

// aside moves something of a git folder into a new folder beside it. text says
// so, with %s for the place.
func (b *Bench) aside(rel, text string) error {
	git := b.gitFolder(rel)
	kept, err := b.keep(git)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(rel, git+"/"), "/", "-")
	to := path.Join(kept, name)
	for n := 1; ; n++ {
		what, err := b.Root.Look(to)
		if err != nil {
			return err
		}
		if what.Kind == beneath.Absent {
			break
		}
		to = fmt.Sprintf("%s.%d", path.Join(kept, name), n)
	}
	if err := b.rename(rel, to); err != nil {
		return err
	}
	b.Changes = append(b.Changes, Change{Rel: rel, Text: fmt.Sprintf(text, to)})
	return nil
}

// Link takes a link or a pipe out of a git folder. A HEAD that is a link to a
// branch, as git once made it, stays.
func (b *Bench) Link(rel string) error {
	text, err := b.Root.Readlink(rel)
	if err == nil && path.Base(rel) == "HEAD" && strings.HasPrefix(text, "refs/") && path.Clean(text) == text {
		return nil
	}
	return b.aside(rel, "moved to %s: git would write through it")
}

// rename also takes things out of a folder that the agent has made read-only.
func (b *Bench) rename(from, to string) error {
	do := func() error { return b.Root.Rename(from, to) }
	err := b.allowed(path.Dir(from), do)
	if errors.Is(err, fs.ErrPermission) { // a folder that moves is written to, too
		err = b.allowed(from, do)
	}
	return err
}

// allowed does something in a folder that the agent may have made read-only.
func (b *Bench) allowed(dir string, do func() error) error {
	err := do()
	if errors.Is(err, fs.ErrPermission) && b.Root.Chmod(dir, 0o755) == nil {
		err = do()
	}
	return err
}

// gitFolder is the git folder that holds rel: the one that is being worked on.
func (b *Bench) gitFolder(rel string) string {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if b.seen[dir] {
			return dir
		}
	}
	if b.seen["."] {
		return "."
	}
	return path.Dir(rel)
}

// IsAside tells whether a path lies in a folder of what was taken out. Below
// logs and refs it may be the name of a branch.
func IsAside(rel string) bool {
	for name := range strings.SplitSeq(rel, "/") {
		if name == "logs" || name == "refs" {
			return false
		}
		if strings.HasPrefix(name, Aside) {
			return true
		}
	}
	return false
}

// keep makes a folder for what is taken out of a git folder.
func (b *Bench) keep(git string) (string, error) {
	if at := b.kept[git]; at != "" {
		return at, nil
	}
	for n := 0; ; n++ {
		at := path.Join(git, Aside)
		if n > 0 {
			at = fmt.Sprintf("%s-%d", at, n)
		}
		err := b.allowed(git, func() error { return b.Root.Mkdir(at, 0o700) })
		if err == nil {
			if b.kept == nil {
				b.kept = map[string]string{}
			}
			b.kept[git] = at
			return at, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
}

// Unmade takes away what was not there, and git would obey now that it is.
func (b *Bench) Unmade(rel string) error {
	what, err := b.Root.Look(rel)
	if err != nil || what.Kind == beneath.Absent {
		return err
	}
	return b.renamed(rel, "your git's configuration names it, and git would run or obey it")
}

// renamed takes a .git away by giving it another name, beside the old one.
func (b *Bench) renamed(rel, why string) error {
	for n := 0; ; n++ {
		to := rel + ".claudebox-aside"
		if n > 0 {
			to = fmt.Sprintf("%s-%d", to, n)
		}
		what, err := b.Root.Look(to)
		if err != nil {
			return err
		}
		if what.Kind != beneath.Absent {
			continue
		}
		if err := b.rename(rel, to); err != nil {
			return err
		}
		b.Changes = append(b.Changes, Change{Rel: rel, Text: "renamed to " + path.Base(to) + ": " + why})
		return nil
	}
}
