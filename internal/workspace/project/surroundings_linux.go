package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
)

// surroundings are what is on the disk around a folder that the agent is to get. [lookAround] returns them whole. What
// cannot be read is a fault in them; what it all means, [surroundings.locate] says.
type surroundings struct {
	Request             // Dir and Home are canonical
	path     string     // see [Project]
	link     string     // one in a repository that led here, out of that: an agent may have made it; empty: none did
	unseen   error      // why path cannot be looked at; beside the project, nobody asks
	isDir    bool       // path is a folder
	owner    int        // of path
	rules    []rule     // by which folders are judged, if any is
	worktree string     // the folder at or above path that holds .git, or is a git folder itself; empty: there is none
	bare     bool       // it is a git folder itself
	git      git.DotGit // of worktree
}

// lookAround reads what is on the disk around the folder that was asked for.
func lookAround(req Request) (s surroundings, err error) {
	asked := req.Dir
	if req.Dir, req.Home, err = canonical(asked, req.Home); err != nil {
		return s, err
	}
	s = surroundings{Request: req, path: req.Dir, link: linkTo(req.Dir, asked, req.Home)}
	s.worktree, s.bare = git.Discover(req.Dir, req.Home)
	switch {
	case !req.GitRoot:
	case s.worktree == "" && !req.Beside:
		s.path = otherRoot(req.Dir, req.Home)
	case s.worktree != "" && !s.bare && !pathname.Below(req.Dir, s.worktree+"/.git"):
		s.path = s.worktree
	}
	if req.Beside && s.worktree != s.path {
		s.worktree, s.bare = "", false // one above, of which that folder is a part
	}
	if s.worktree != "" {
		s.git = git.ReadDotGit(s.worktree, s.bare, s.outside)
	}
	if !req.Beside {
		var st unix.Stat_t
		s.unseen = unix.Lstat(s.path, &st)
		s.isDir, s.owner = st.Mode&unix.S_IFMT == unix.S_IFDIR, int(st.Uid)
	}
	if !req.Beside || s.git.Asked {
		s.rules = rulesOf(req)
	}
	return s, nil
}

// linkTo returns the first link by which a path leads out of a repository to a folder; empty: none does.
func linkTo(dir, asked, home string) string {
	if asked == dir {
		return ""
	}
	for i, c := range asked + "/" {
		if c != '/' || i == 0 {
			continue
		}
		var st unix.Stat_t
		link := asked[:i]
		in, err := beneath.Canonical(filepath.Dir(link))
		if err != nil || unix.Lstat(link, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
			continue
		}
		if top, _ := git.Discover(in, home); top != "" && !pathname.Below(dir, top) {
			return link
		}
	}
	return ""
}

// outside reports whether a canonical path lies outside of the project, so that the agent cannot write there.
func (s surroundings) outside(path string) bool { return !pathname.Below(path, s.path) }

// otherRoot returns the folder of a repository of another program than git that start lies in, or start. A home does
// not count.
func otherRoot(start, home string) string {
	for dir := start; dir != "/" && dir != home; dir = filepath.Dir(dir) {
		for _, name := range []string{"/.jj", "/.hg", "/.sl", "/.svn"} {
			if beneath.Exists(dir + name) {
				return dir
			}
		}
	}
	return start
}

// rulesOf returns the rules by which folders are judged: the fixed ones, those for claudebox's own places, and those
// for secret ones, with what the user's links lead to from there.
func rulesOf(req Request) (rules []rule) {
	for _, r := range fixedRules {
		r.place = req.expand(r.place)
		rules = append(rules, r)
	}
	for _, own := range req.Own {
		rules = append(rules, rule{place: beneath.LeadsOrClean(own), forbids: overlaps, why: "is claudebox's own"})
	}
	for _, never := range req.Never {
		if slices.ContainsFunc(fixedRules, func(r rule) bool { return r.place == never }) {
			continue // no sandbox sees /tmp, but a project may lie in it
		}
		secret := rule{place: req.expand(never), forbids: overlaps, why: "holds secrets (no sandbox may see it)"}
		pattern := strings.ContainsAny(never, "*?[")
		if pattern {
			secret.forbids = func(dir, _ string) bool { return overlapsPattern(dir, never, req.Home) }
		}
		rules = append(rules, secret)
		if pattern || !strings.HasPrefix(never, "~/") {
			continue // only root can make a link there
		}
		if _, err := os.Readlink(secret.place); err == nil {
			secret.link, secret.place = secret.place, beneath.LeadsOrClean(secret.place)
			rules = append(rules, secret)
		}
	}
	return rules
}
