package guard

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
)

// isUsers reports whether something that appeared is the user's, and not the agent's: the kernel does not tell who made
// it. A repository that was the user's stays so.
func (g *Guard) isUsers(rel string) bool {
	what, err := g.root.Look(rel)
	of, was := g.users[what.Stamp.Ino]
	if err != nil || what.Kind == beneath.Link || of.refused {
		return false
	}
	if was || g.isTheirs(rel) {
		return true
	}
	at := g.root.Join(rel)
	if g.isRepository(rel) { // no commit brings one
		return g.programs.MakeAt(at)
	}
	return g.programs.BringTo(at, g.Path)
}

// isTheirs reports whether a repository lies in a folder that a program of the user's may have made.
func (g *Guard) isTheirs(rel string) bool {
	return g.isRepository(rel) && (g.theirs[rel] || g.theirs[path.Dir(rel)])
}

func (g *Guard) isRepository(rel string) bool { return git.IsDotGit(path.Base(rel)) || g.isBare(rel) }

// users is a repository that the user has made.
type users struct {
	rel     string
	fd      int  // keeps its inode from becoming another one's
	before  bool // before the session, which has one of its own in its place
	renewed bool // no agent has it open
	refused bool // it is held back wherever it is
}

// noteUsers notes the repositories of [Request.Users].
func (g *Guard) noteUsers() {
	for _, rel := range g.Users {
		what, err := g.root.Look(rel)
		if fd, fault := g.root.OpenFD(rel, unix.O_PATH|unix.O_NOFOLLOW); err == nil && fault == nil {
			g.users[what.Stamp.Ino] = users{rel: rel, fd: fd, before: true}
		}
	}
}

// leave leaves a repository of the user's where it is, and hides it from the sandbox. It reports false for one in which
// git would run something already, and that may not stay until that is put aside: an agent may have put it there while
// a program of the user's was at work. What comes later is the user's, as no agent can write there.
func (g *Guard) leave(rel string) bool {
	fd, err := g.root.OpenFD(rel, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return true // it went
	}
	what, err := g.root.Look(rel)
	old, was := g.users[what.Stamp.Ino]
	if err != nil || was && (old.rel == rel || old.before) {
		unix.Close(fd)
		return true
	}
	if g.doubts[what.Stamp.Ino] == 0 && !g.cover(rel, what.Stamp.Ino) {
		unix.Close(fd)
		return true
	}
	if !was && !g.isHarmless(rel, what.Kind) {
		isMade := what.Kind == beneath.Regular && !g.leadsToOther(rel) || what.Kind == beneath.Dir && g.isMade(rel)
		if !isMade || what.Kind != beneath.Dir || g.renewal == nil || g.unready != nil {
			unix.Close(fd)
			return isMade && g.doubt(rel, what)
		}
	} // else it is left until it gets new files
	g.forgetUsers(what.Stamp.Ino)
	g.users[what.Stamp.Ino] = users{rel: rel, fd: fd, renewed: old.renewed}
	switch {
	case g.unready != nil:
		g.Unrenewed(rel, g.unready)
	case g.renewal != nil && !was:
		g.copies.Go(func() { g.renewal.renew(what.Stamp.Ino) })
	}
	return true
}

// cover hides a repository of the user's from the sandbox. It reports false for one that it cannot hide, or that went.
func (g *Guard) cover(rel string, ino uint64) bool {
	err := g.Cover(rel)
	if err == nil {
		return true
	}
	if now, fault := g.root.Look(rel); fault == nil && now.Stamp.Ino == ino {
		g.Lost(fmt.Errorf("%s, which you have made: %w", rel, err))
	}
	return false
}

// isHarmless reports whether git would run nothing in a repository, and a file leads it where no agent writes.
func (g *Guard) isHarmless(rel string, kind beneath.Kind) bool {
	if kind == beneath.Dir {
		return git.IsPlain(g.root, rel, g.asUsers())
	}
	return g.leadsOut(g.root, rel, g.root.Join(rel))
}

// leadsToOther reports whether a .git file leads to what is no part that git may be making for it.
func (g *Guard) leadsToOther(rel string) bool {
	to := leadsTo(g.root, rel, g.root.Join(rel))
	isPart := strings.Contains(to, "/modules/") || strings.Contains(to, "/worktrees/")
	return to != "" && !(isPart && !g.sees(to) && git.LedBy(to) == "")
}

// isMade reports whether a program of the user's makes a repository just now, by its command line.
func (g *Guard) isMade(rel string) bool { return g.programs.OrderAt(g.root.Join(rel)) }

// sees is [Request.Sees], if there is one.
func (g *Guard) sees(at string) bool { return g.Sees != nil && g.Sees(at) }

// forgetUsers forgets a repository that the user has made.
func (g *Guard) forgetUsers(ino uint64) {
	if of, was := g.users[ino]; was {
		unix.Close(of.fd)
		delete(g.users, ino)
	}
}

const (
	mostDoubts = 50
	// mostOfFiles is that for a .git file, which git writes at once: an agent could change it between two looks.
	mostOfFiles = 3
	doubtAfter  = 20 * time.Millisecond
)

// doubt has a repository that is covered, and in which git may run something, looked at again, a few times: one that is
// being made has other names in it for a moment (setup.c of git, create_default_files: it tries whether links work).
func (g *Guard) doubt(rel string, what beneath.Entry) bool {
	most := mostDoubts
	if what.Kind == beneath.Regular {
		most = mostOfFiles
	}
	if g.doubts[what.Stamp.Ino]++; g.doubts[what.Stamp.Ino] > most {
		return false
	}
	g.theirs[rel] = true // also if the program has ended by then
	time.AfterFunc(doubtAfter, func() { g.see(path.Dir(rel), path.Base(rel)) })
	return true
}

// listUsers lists the repositories that the user has made and that are there. One in which git would run something by
// now is not the user's: who had its folder open before it was covered could write there.
func (g *Guard) listUsers() (list []string) {
	for ino, of := range g.users {
		what, err := g.root.Look(of.rel)
		isThere := err == nil && what.Stamp.Ino == ino && !of.before && !of.refused
		if isThere && (of.renewed || g.isHarmless(of.rel, what.Kind)) {
			list = append(list, of.rel)
		}
		unix.Close(of.fd)
	}
	slices.Sort(list)
	return list
}
