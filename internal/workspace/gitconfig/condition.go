package gitconfig

import (
	"path"
	"strings"
)

// holds judges the condition of an includeIf that stands in file. A condition
// git does not know is false, as in git.
func (r *reader) holds(condition, file string) bool {
	for _, c := range conditions {
		if pattern, ok := strings.CutPrefix(condition, c.keyword); ok {
			return c.holds(r, pattern, file)
		}
	}
	return false
}

// conditions are git's, by keyword with the colon.
var conditions = []struct {
	keyword string
	holds   func(r *reader, pattern, file string) bool
}{
	{"gitdir:", func(r *reader, pattern, file string) bool {
		return r.inGitDir(pattern, file, false)
	}},
	{"gitdir/i:", func(r *reader, pattern, file string) bool {
		return r.inGitDir(pattern, file, true)
	}},
	{"onbranch:", func(r *reader, pattern, _ string) bool {
		return r.Repo.Branch != "" && Wildmatch(wholeFolder(pattern), r.Repo.Branch, false)
	}},
	{"hasconfig:remote.*.url:", (*reader).hasRemote},
}

// inGitDir matches the git folder, first by its canonical path, then by the
// one the caller came by.
func (r *reader) inGitDir(pattern, file string, fold bool) bool {
	literal, pattern, ok := r.anchor(pattern, file)
	if !ok {
		return false
	}
	for _, dir := range r.Repo.Dirs {
		rest, ok := cutPrefixFold(dir, literal, fold)
		if ok && Wildmatch(wholeFolder(pattern), rest, fold) {
			return true
		}
	}
	return false
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

func cutPrefixFold(s, prefix string, fold bool) (string, bool) {
	if len(s) < len(prefix) {
		return "", false
	}
	head := s[:len(prefix)]
	return s[len(prefix):], head == prefix || fold && strings.EqualFold(head, prefix)
}

// hasRemote needs every remote of every source; until they are known the
// condition is false and the reader is told to come again.
func (r *reader) hasRemote(pattern, _ string) bool {
	if !r.remotesKnown {
		r.asksRemotes = true
		return false
	}
	for _, url := range r.Repo.Remotes {
		if Wildmatch(pattern, url, false) {
			return true
		}
	}
	return false
}
