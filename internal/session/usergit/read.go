// Package usergit reads the user's own git configuration the way git does, for
// one folder, and makes the sandbox's ~/.gitconfig of it: who commits, what git
// may trust, and where it may log in.
//
// It runs no git and does no I/O: files are read through a function that the
// caller gives. A differential test compares it with the real program.
package usergit

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/workspace/gitconfig"
)

// Sources says where git looks for the user's own configuration, and on what
// folder conditional includes depend. The project's own configuration is not
// read here: inside, git reads that itself.
type Sources struct {
	Files []string // in git's order: system, XDG, ~/.gitconfig; see [Files]
	Home  string   // what "~/" in an include stands for
	Repo  Repo

	// ReadFile returns a file's bytes; an error that is [fs.ErrNotExist] stands
	// for a file that git would pass over.
	ReadFile func(name string) ([]byte, error)
	// Canonical resolves links in a path, as realpath does. It is asked only
	// for conditions on the git folder.
	Canonical func(name string) (string, error)
}

// Repo is what conditional includes may depend on in the project. It comes from
// files that an attacker may have written.
type Repo struct {
	Dirs    []string // the git folder: canonical, then as the caller came to it; empty: no repository
	Branch  string   // the short name that HEAD points at; empty: detached
	Remotes []string // URLs of the project's remotes
}

// Files lists git's configuration files for a user, by the variables git
// obeys: GIT_CONFIG_NOSYSTEM, GIT_CONFIG_SYSTEM, GIT_CONFIG_GLOBAL,
// XDG_CONFIG_HOME. Later files win.
func Files(home string, env func(string) (string, bool)) []string {
	var files []string
	if off, _ := env("GIT_CONFIG_NOSYSTEM"); !gitconfig.IsTrue(off) {
		system, set := env("GIT_CONFIG_SYSTEM")
		if !set {
			system = "/etc/gitconfig"
		}
		files = append(files, system)
	}
	if global, set := env("GIT_CONFIG_GLOBAL"); set {
		return append(files, global)
	}
	xdg, _ := env("XDG_CONFIG_HOME")
	if xdg == "" {
		xdg = path.Join(home, ".config")
	}
	return append(files, path.Join(xdg, "git/config"), path.Join(home, ".gitconfig"))
}

// read returns the entries of all sources in git's order, includes in their
// place. It fails where git would: a bad line, an unreadable file, a circle
// of includes.
func read(src Sources) ([]gitconfig.Entry, error) {
	// A condition on remotes may be met by a remote that the user's own files
	// define further down. So everything is read twice, as by git, and the first
	// time no remote is known.
	remotes := slices.Clone(src.Repo.Remotes)
	src.Repo.Remotes = nil
	entries, err := readAll(src)
	for _, e := range entries {
		if e.Section == "remote" && e.Sub && e.Name == "url" {
			remotes = append(remotes, e.Value)
		}
	}
	if err != nil {
		return nil, err
	}
	src.Repo.Remotes = remotes
	return readAll(src)
}

func readAll(src Sources) ([]gitconfig.Entry, error) {
	r := reader{Sources: src}
	for _, file := range r.Files {
		if err := r.file(file, 0); err != nil {
			return nil, err
		}
	}
	return r.entries, nil
}

type reader struct {
	Sources
	entries []gitconfig.Entry
}

// file reads one file and, in place, what it includes.
func (r *reader) file(name string, depth int) error {
	const deepest = 10 // as git has it
	op := "read git's configuration " + name
	src, err := r.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &diag.Error{Op: op, Err: err, Remedy: "make it readable, or remove it"}
	}
	entries, err := gitconfig.Parse(src)
	if err != nil {
		return &diag.Error{Op: op, Err: err, Remedy: "correct the line; git refuses it too"}
	}
	for _, e := range entries {
		r.entries = append(r.entries, e)
		if !r.includes(e, name) {
			continue
		}
		target, ok := expand(e.Value, r.Home)
		switch {
		case depth == deepest:
			return diag.Errorf(op, "remove the circle of includes", "more than %d includes deep", deepest)
		case !ok:
			return diag.Errorf(fmt.Sprintf("%s:%d", op, e.Line),
				"write the path out in full", "include of %q: only ~/ is understood", e.Value)
		case !path.IsAbs(target):
			target = path.Dir(name) + "/" + target // not cleaned: ".." goes through links
		}
		if err := r.file(target, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// includes reports whether e pulls in another file here and now.
func (r *reader) includes(e gitconfig.Entry, file string) bool {
	return gitconfig.IsInclude(e) && !e.Bare && e.Sub == (e.Section == "includeif") &&
		(!e.Sub || r.holds(e.Subsection, file))
}

// expand resolves a leading "~/". Other users' homes and git's own prefix are
// not known here.
func expand(name, home string) (string, bool) {
	if rest, found := strings.CutPrefix(name, "~/"); found {
		return home + "/" + rest, true
	}
	if name == "~" {
		return home, true
	}
	return name, !strings.HasPrefix(name, "~") && !strings.HasPrefix(name, "%(prefix)/")
}

// holds reports whether the condition of an includeIf in file is met. One that git
// does not know is not, as in git.
func (r *reader) holds(condition, file string) bool {
	switch keyword, pattern, _ := strings.Cut(condition, ":"); keyword {
	case "gitdir", "gitdir/i":
		return r.inGitDir(pattern, file, keyword == "gitdir/i")
	case "onbranch":
		return r.Repo.Branch != "" && Wildmatch(wholeFolder(pattern), r.Repo.Branch, false)
	}
	pattern, ok := strings.CutPrefix(condition, "hasconfig:remote.*.url:")
	return ok && slices.ContainsFunc(r.Repo.Remotes, func(url string) bool { return Wildmatch(pattern, url, false) })
}

// inGitDir matches the git folder, first by its canonical path, then by the
// one the caller came by.
func (r *reader) inGitDir(pattern, file string, fold bool) bool {
	literal, pattern, ok := r.anchor(pattern, file)
	if !ok {
		return false
	}
	return slices.ContainsFunc(r.Repo.Dirs, func(dir string) bool {
		if len(dir) < len(literal) {
			return false
		}
		head, rest := dir[:len(literal)], dir[len(literal):]
		return (head == literal || fold && strings.EqualFold(head, literal)) &&
			Wildmatch(wholeFolder(pattern), rest, fold)
	})
}

// anchor makes a pattern absolute: "~/" is the canonical home, "./" the folder
// of the file itself, taken literally; any other may match at any depth.
func (r *reader) anchor(pattern, file string) (literal, rest string, ok bool) {
	if rest, found := strings.CutPrefix(pattern, "./"); found {
		real, err := r.Canonical(file)
		return path.Dir(real) + "/", rest, err == nil
	}
	if strings.HasPrefix(pattern, "~") {
		home, err := r.Canonical(r.Home)
		if err != nil {
			return "", "", false
		}
		pattern, ok = expand(pattern, home)
		return "", pattern, ok
	}
	if !path.IsAbs(pattern) {
		pattern = "**/" + pattern
	}
	return "", pattern, true
}

// wholeFolder lets a pattern that ends in a slash match all below it.
func wholeFolder(pattern string) string {
	if strings.HasSuffix(pattern, "/") {
		return pattern + "**"
	}
	return pattern
}
