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
	_, was := g.users[what.Stamp.Ino]
	return err == nil && what.Kind != beneath.Link && (was || g.isTheirs(rel) || g.vcs.works(g.Path))
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
// git would run something already: an agent may have put it there while a program of the user's was at work. What comes
// later is the user's, as no agent can write there.
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
	if err := g.Cover(rel); err != nil {
		unix.Close(fd)
		g.Lost(fmt.Errorf("%s, which you have made: %w", rel, err))
		return true
	}
	if what.Kind == beneath.Dir && !was && !git.IsPlain(g.root, rel, g.sees) {
		unix.Close(fd)
		return g.doubt(rel, what.Stamp.Ino)
	}
	g.forgetUsers(what.Stamp.Ino)
	g.users[what.Stamp.Ino] = users{rel: rel, fd: fd, renewed: old.renewed}
	switch {
	case g.unready != nil:
		g.Unrenewed(rel, g.unready)
	case g.renewal != nil && !old.renewed:
		g.copies.Go(func() { g.renewal.renew(rel, what.Stamp.Ino) })
	}
	return true
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
		isThere := err == nil && what.Stamp.Ino == ino && !of.before
		if isThere && (of.renewed || what.Kind != beneath.Dir || git.IsPlain(g.root, of.rel, g.sees)) {
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
	does   func(words []string) bool // whether its command line counts
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

func (v *vcs) works(folder string) bool {
	now := time.Now()
	if now.Sub(v.since) > reused {
		v.others, v.since = map[string]time.Time{}, now
	}
	if now.Sub(v.asked) > answerAge {
		v.answer = v.look(folder, now)
		v.asked = time.Now()
	}
	return v.answer
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

// look looks at the processes outside of all sandboxes. One counts that is in the folder, or names a path there.
func (v *vcs) look(folder string, now time.Time) bool {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return false
	}
	all, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer all.Close()
	const most = 20_000
	names, _ := all.Readdirnames(most)
	return slices.ContainsFunc(names, func(pid string) bool {
		if pid[0] < '0' || pid[0] > '9' {
			return false
		}
		first, known := v.others[pid]
		if known && first.IsZero() {
			return false
		}
		const limit = 4096
		comm, err := smallfile.Read("/proc/"+pid+"/comm", limit)
		switch {
		case err != nil:
		case slices.Contains(programs, strings.TrimSuffix(string(comm), "\n")):
			return worksIn("/proc/"+pid, folder, own, v.does) && !isOwn("/proc/"+pid)
		case slices.Contains(copiers, strings.TrimSuffix(string(comm), "\n")):
			return worksIn("/proc/"+pid, folder, own, func([]string) bool { return true })
		case !known:
			v.others[pid] = now
		case now.Sub(first) > settled:
			v.others[pid] = time.Time{}
		}
		return false
	})
}

// isOwn reports whether a process is claudebox's git, by which commits cross: an agent chooses what it says of them.
func isOwn(process string) bool {
	environment, err := os.ReadFile(process + "/environ")
	return err == nil && slices.Contains(strings.Split(string(environment), "\x00"), "GIT_COMMITTER_EMAIL="+OwnEmail)
}

// OwnEmail is the address of whom claudebox's git commits for.
const OwnEmail = "claudebox@localhost"

// makesAny reports whether a command line of a version control program makes repositories or files.
func makesAny(words []string) bool {
	if i := slices.Index(words, "stash"); i >= 0 && i+1 < len(words) && (words[i+1] == "list" || words[i+1] == "show") {
		return false // a prompt asks that all the time
	}
	return slices.ContainsFunc(words, func(word string) bool {
		then, makes := makes[word]
		return slices.Contains(brings, word) || makes && (then == nil ||
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

// worksIn reports whether a program whose words does accepts is at work in a folder, and in the same namespace of
// processes as this one.
func worksIn(process, folder, own string, does func(words []string) bool) bool {
	line, err := os.ReadFile(process + "/cmdline")
	words := strings.Split(string(line), "\x00")
	if err != nil || !does(words) {
		return false
	}
	at, err := os.Readlink(process + "/cwd")
	there := func(word string) bool {
		if !path.IsAbs(word) {
			word = path.Join(at, word)
		}
		return pathname.Below(path.Clean(word), folder)
	}
	if err != nil || !there("") && !slices.ContainsFunc(words, there) {
		return false
	}
	ns, err := os.Readlink(process + "/ns/pid")
	return err == nil && ns == own
}
