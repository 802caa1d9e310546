package guard

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/workspace/git"
)

// isUsers reports whether something that appeared is the user's, and not the agent's: the kernel does not tell who made
// it. A repository that was the user's stays so.
func (g *Guard) isUsers(rel string) bool {
	what, err := g.root.Look(rel)
	of, was := g.users[what.Stamp.Ino]
	return err == nil && what.Kind != beneath.Link && !of.refused && (was || g.isTheirs(rel) || g.vcs.works(g.Path))
}

// isTheirs reports whether a repository lies in a folder that a program of the user's may have made.
func (g *Guard) isTheirs(rel string) bool {
	isRepository := isDotGit(path.Base(rel)) || g.isBare(rel)
	return isRepository && (g.theirs[rel] || g.theirs[path.Dir(rel)])
}

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
	if !was && !g.isHarmless(rel, what.Kind) && !(what.Kind == beneath.Dir && g.mayRenew(rel, what.Stamp.Ino)) {
		unix.Close(fd)
		return !g.leadsToOther(rel) && g.doubt(rel, what.Stamp.Ino)
	}
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
		return git.IsPlain(g.root, rel, g.sees)
	}
	return g.leadsOut(g.root, rel, g.root.Join(rel))
}

// leadsToOther reports whether a .git file leads to what is no part that git may be making for it.
func (g *Guard) leadsToOther(rel string) bool {
	to := leadsTo(g.root, rel, g.root.Join(rel))
	isPart := strings.Contains(to, "/modules/") || strings.Contains(to, "/worktrees/")
	return to != "" && !(isPart && !g.sees(to) && git.LedBy(to) == "")
}

// mayRenew reports whether a repository in which git would run something is left until it gets new files: one that a
// program of the user's makes just now by its command line, and one that is there when no such program is at work any
// more. That may have brought hooks of the user's own template.
func (g *Guard) mayRenew(rel string, ino uint64) bool {
	at := g.root.Join(rel)
	if isDotGit(path.Base(rel)) {
		at = path.Dir(at)
	}
	const seldom = 10 // it looks at all processes
	return g.renewal != nil && g.unready == nil &&
		(g.doubts[ino]%seldom == 0 && g.vcs.clones(at) || g.doubts[ino] >= mostDoubts && !g.vcs.works(g.Path))
}

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
	doubtAfter = 20 * time.Millisecond
)

// doubt has a repository that is covered, and in which git may run something, looked at again, a few times: one that is
// being made has other names in it for a moment (setup.c of git, create_default_files: it tries whether links work).
func (g *Guard) doubt(rel string, ino uint64) bool {
	if g.doubts[ino]++; g.doubts[ino] > mostDoubts {
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

func isDotGit(name string) bool { return strings.EqualFold(name, ".git") }

// vcs asks whether a version control program of the user's is at work, that may make what appears.
type vcs struct {
	asked  time.Time
	answer bool
	others map[string]time.Time // processes that are none, by their numbers, and since when; zero: for good
	since  time.Time            // when others was begun
}

const (
	// answerAge is how long an answer counts: a program is older than what it makes.
	answerAge = time.Millisecond
	// settled is after how long a process starts no other program any more: one that is to be git is a shell at first.
	settled = 50 * time.Millisecond
	// reused is after how long the kernel may have given a process's number to another one.
	reused = 10 * time.Second
)

// works reports whether one is at work in a folder, or names a path there.
func (v *vcs) works(folder string) bool {
	if now := time.Now(); now.Sub(v.asked) > answerAge {
		v.answer = v.any(now, func(program string, words []string, at string) bool {
			return (slices.Contains(copiers, program) || makesAny(words)) && comesTo(folder, words, at)
		}) != ""
		v.asked = time.Now()
	}
	return v.answer
}

// clones reports whether one makes a repository in a folder by its command line: without a name for that, git takes
// the last part of the address (builtin/clone.c).
func (v *vcs) clones(folder string) bool {
	return v.any(time.Now(), func(program string, words []string, at string) bool {
		names := func(word string) bool {
			called := strings.TrimSuffix(path.Base(strings.ReplaceAll(word, ":", "/")), ".git")
			return from(at, word) == folder || path.Join(at, called) == folder
		}
		isClone := !slices.Contains(copiers, program) && slices.Contains(words, "clone")
		return isClone && slices.ContainsFunc(words, names)
	}) != ""
}

// changes returns the number of a process that may change a repository in a folder; empty: there is none. What makes
// repositories, or brings whole folders, counts anywhere in the project. All else counts there alone: an agent can have
// the `git status` of an editor wait elsewhere, by a pipe in the place of a file that it reads.
func (v *vcs) changes(folder, project string) (pid string) {
	return v.any(time.Now(), func(program string, words []string, at string) bool {
		if slices.Contains(copiers, program) || makesRepository(words) {
			return comesTo(project, words, at)
		}
		return mayWrite(words) && comesTo(folder, words, at)
	})
}

// comesTo reports whether a process is in a folder, or names a path there.
func comesTo(folder string, words []string, at string) bool {
	there := func(word string) bool { return pathname.Below(from(at, word), folder) }
	return there("") || slices.ContainsFunc(words, func(word string) bool {
		_, value, _ := strings.Cut(word, "=")
		return there(word) || there(value)
	})
}

// from is a path that a process in a folder names by a word.
func from(folder, word string) string {
	if path.IsAbs(word) {
		return path.Clean(word)
	}
	return path.Join(folder, word)
}

var (
	programs = []string{"git", "jj", "hg", "sl", "bzr", "brz", "fossil", "pijul", "darcs", "gh", "glab"}
	// makes are the words in a command line by which such a program makes a repository; after some another one decides.
	makes = map[string][]string{
		"clone": nil, "init": nil, "worktree": {"add", "move", "repair"}, "submodule": {"add", "update", "init"},
		"workspace": nil, "repo": nil, "create": nil, "fork": nil,
	}
	// brings are those by which it makes files.
	brings = []string{
		"checkout", "switch", "restore", "pull", "merge", "rebase", "reset", "stash", "cherry-pick", "revert",
		"am", "apply", "update", "up", "goto", "new", "edit", "read-tree", "checkout-index", "pr",
	}
	// copiers are programs that bring whole folders.
	copiers = []string{"cp", "tar", "bsdtar", "rsync", "unzip", "7z"}
)

// any returns the number of a process outside of all sandboxes that counts, by its name, its command line, and where it
// is; empty: there is none.
func (v *vcs) any(now time.Time, counts func(program string, words []string, at string) bool) (pid string) {
	if now.Sub(v.since) > reused {
		v.others, v.since = map[string]time.Time{}, now
	}
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	all, err := os.Open("/proc")
	if err != nil {
		return ""
	}
	defer all.Close()
	const most = 20_000
	names, _ := all.Readdirnames(most)
	found := slices.IndexFunc(names, func(pid string) bool {
		if pid[0] < '0' || pid[0] > '9' {
			return false
		}
		first, known := v.others[pid]
		if known && first.IsZero() {
			return false
		}
		const limit = 4096
		comm, err := smallfile.Read("/proc/"+pid+"/comm", limit)
		program := strings.TrimSuffix(string(comm), "\n")
		switch {
		case err != nil:
		case slices.Contains(programs, program) || slices.Contains(copiers, program):
			words, at := commandOf("/proc/"+pid, own)
			return len(words) > 0 && counts(program, words, at)
		case !known:
			v.others[pid] = now
		case now.Sub(first) > settled:
			v.others[pid] = time.Time{}
		}
		return false
	})
	if found < 0 {
		return ""
	}
	return names[found]
}

// OwnEmail is the address of whom claudebox's git commits for.
const OwnEmail = "claudebox@localhost"

// makesAny reports whether a command line of a version control program makes repositories or files.
func makesAny(words []string) bool {
	if i := slices.Index(words, "stash"); i >= 0 && i+1 < len(words) && (words[i+1] == "list" || words[i+1] == "show") {
		return false // a prompt asks that all the time
	}
	return makesRepository(words) ||
		slices.ContainsFunc(words, func(word string) bool { return slices.Contains(brings, word) })
}

// makesRepository reports whether it makes repositories.
func makesRepository(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		then, makes := makes[word]
		return makes && (then == nil ||
			slices.ContainsFunc(words, func(next string) bool { return slices.Contains(then, next) }))
	})
}

// reads are the words of command lines by which git writes nothing, and that may go on for long.
var reads = []string{"log", "diff", "show", "blame", "cat-file", "fsmonitor--daemon", "credential-cache--daemon"}

// mayWrite reports whether a command line of a version control program may write in a repository: all but some do.
func mayWrite(words []string) bool {
	isRead := func(word string) bool { return slices.Contains(reads, word) }
	return makesAny(words) || !slices.ContainsFunc(words, isRead)
}

// commandOf returns the command line of a process, with what names its repository, and the folder that it is in. One of
// another namespace of processes than this one has none. Neither has claudebox's git, by which commits cross: an agent
// chooses what it says of them.
func commandOf(process, own string) (words []string, at string) {
	line, err := os.ReadFile(process + "/cmdline")
	at, fault := os.Readlink(process + "/cwd")
	if ns, _ := os.Readlink(process + "/ns/pid"); err != nil || fault != nil || ns != own {
		return nil, ""
	}
	words = strings.Split(string(line), "\x00")
	environment, _ := os.ReadFile(process + "/environ")
	for entry := range strings.SplitSeq(string(environment), "\x00") {
		switch name, value, _ := strings.Cut(entry, "="); {
		case name == "GIT_COMMITTER_EMAIL" && value == OwnEmail:
			return nil, ""
		case name == "GIT_DIR", name == "GIT_WORK_TREE":
			words = append(words, value)
		}
	}
	return words, at
}
