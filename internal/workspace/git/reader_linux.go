package git

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
)

// reader looks at what lies below a root.
type reader struct {
	root *beneath.Folder
	open bool // what is closed is the agent's doing, and is opened
}

// abs is the absolute path of what lies at rel; "." is the root.
func (r reader) abs(rel string) string { return path.Join(r.root.Path(), rel) }

// try calls do, which uses a path. If that is closed, it opens the folders on the way and calls do again, and then does
// so with what lies at the path itself. perm is what that gets; 0: it is not opened.
func (r reader) try(at string, perm uint32, do func() error) error {
	err := do()
	if errors.Is(err, fs.ErrPermission) && r.open {
		r.openTo(at)
		err = do()
	}
	if errors.Is(err, fs.ErrPermission) && r.open && perm != 0 && r.root.Chmod(at, perm) == nil {
		err = do()
	}
	return err
}

// openTo opens a folder, and those on the way to it that are closed.
func (r reader) openTo(rel string) {
	for i := range len(rel) + 1 {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		if _, err := r.root.Look(path.Join(rel[:i], "HEAD")); errors.Is(err, fs.ErrPermission) {
			_ = r.root.Chmod(rel[:i], 0o755)
		}
	}
}

// look is [beneath.Folder.Look] that opens what the agent has closed.
func (r reader) look(rel string) (what beneath.Entry, err error) {
	err = r.try(path.Dir(rel), 0, func() error { what, err = r.root.Look(rel); return err })
	return what, err
}

// read returns what a file holds, or the text of a link.
func (r reader) read(rel string, kind beneath.Kind) (text string, ok bool) {
	if kind == beneath.Link {
		text, err := r.root.Readlink(rel)
		return text, err == nil
	}
	var content []byte
	err := r.try(rel, 0o644, func() (err error) { content, err = r.root.Read(rel, textLimit); return err })
	return string(content), err == nil
}

// named is a name in a folder, and what it is.
type named struct {
	name string
	what beneath.Entry
}

// list lists a folder in order.
func (r reader) list(rel string) (list []named, err error) {
	err = r.try(rel, 0o755, func() error { list, err = r.names(rel); return err })
	return list, err
}

func (r reader) names(rel string) ([]named, error) {
	in, err := r.root.Sub(rel)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	names, err := in.Names(".", nameLimit)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	list := make([]named, 0, len(names))
	for _, name := range names {
		what, err := in.Look(name)
		if err != nil {
			return nil, err
		}
		if what.Kind != beneath.Absent {
			list = append(list, named{name, what})
		}
	}
	return list, nil
}

// isBare reports whether git would accept the content of HEAD (setup.c, validate_headref). One that cannot be read
// counts as accepted.
func (r reader) isBare(rel string) bool {
	at := path.Join(rel, "HEAD")
	what, err := r.look(at)
	if err != nil || what.Kind != beneath.Regular {
		return err != nil || what.Kind == beneath.Link || what.Kind == beneath.Special
	}
	content, err := r.root.Read(at, textLimit)
	head := strings.TrimRight(string(content), " \t\r\n")
	return err != nil || strings.HasPrefix(head, "ref:") ||
		len(head) >= 40 && strings.Trim(head[:40], "0123456789abcdefABCDEF") == ""
}

// isGitFolder reports whether a folder below modules/ is a git folder, not just a part of a submodule's name. One sign
// is enough: the agent may put the others back in a later session.
func (r reader) isGitFolder(rel string) bool {
	signs := []string{"HEAD", "config", "hooks", "commondir", "objects", "refs"}
	return slices.ContainsFunc(signs, func(sign string) bool {
		what, err := r.look(path.Join(rel, sign))
		return err != nil || what.Kind != beneath.Absent
	})
}
