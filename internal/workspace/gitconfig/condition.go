package gitconfig

import (
	"path"
	"slices"
	"strings"
)

// holds judges the condition of an includeIf that stands in file. A condition
// git does not know is false, as in git.
func (r *reader) holds(condition, file string) bool {
	switch keyword, pattern, _ := strings.Cut(condition, ":"); keyword {
	case "gitdir", "gitdir/i":
		return r.inGitDir(pattern, file, keyword == "gitdir/i")
	case "onbranch":
		return r.Repo.Branch != "" && Wildmatch(wholeFolder(pattern), r.Repo.Branch, false)
	}
	pattern, is := strings.CutPrefix(condition, "hasconfig:remote.*.url:")
	return is && r.hasRemote(pattern)
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

// hasRemote needs every remote of every source; until they are known the
// condition is false and the reader is told to come again.
func (r *reader) hasRemote(pattern string) bool {
	r.asksRemotes = !r.remotesKnown
	return r.remotesKnown && slices.ContainsFunc(r.Repo.Remotes, func(url string) bool {
		return Wildmatch(pattern, url, false)
	})
}
