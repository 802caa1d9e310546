package guard

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
)

// vcs knows which programs of the user's are at work, outside of all sandboxes, that may make what appears: those for
// version control, and those that copy whole folders.
type vcs struct {
	asked  time.Time
	list   []program
	others map[string]time.Time // processes that are none, by their numbers, and since when; zero: for good
	since  time.Time            // when others was begun
}

// program is one of them.
type program struct {
	pid, name string
	words     []string // what names its repository, and its command line
	at        string   // the folder that it is in
	old       bool     // it may wait for a person, as for a commit message
}

const (
	// answerAge is how long an answer counts from when it was asked for: a program is older than what it makes.
	answerAge = time.Millisecond
	// settled is after how long a process starts no other program any more: one that is to be git is a shell at first,
	// for long on a busy machine.
	settled = 500 * time.Millisecond
	// reused is after how long the kernel may have given a process's number to another one.
	reused = 10 * time.Second
	// oldAfter is the age of a program from which on it may wait for a person.
	oldAfter = 5 * time.Second
)

// bringsTo reports whether one may bring a file to a path in the project. An old one does not, but for those that copy,
// and for those that wait for another machine first, unless what they have started since waits for a person.
func (v *vcs) bringsTo(at, project string) bool {
	running := v.running()
	waits := slices.ContainsFunc(running, func(p program) bool { return p.old && p.has("merge", "rebase") })
	return slices.ContainsFunc(running, func(p program) bool {
		isBusy := !p.old || p.has("pull", "pr") && !waits
		return p.copiesTo(at) || !p.copies() && isBusy && makesAny(p.words) && p.comesTo(project)
	})
}

// makesAt reports whether one may make a repository at a path in the project.
func (v *vcs) makesAt(at, project string) bool {
	return slices.ContainsFunc(v.running(), func(p program) bool {
		return p.copiesTo(at) || !p.copies() && makesRepository(p.words) && p.comesTo(project)
	})
}

// makesIn reports whether one makes a repository in a folder by its command line. Without a name for that, git takes
// the last part of the address (builtin/clone.c), and `git init` the folder that it is in.
func (v *vcs) makesIn(folder string) bool {
	return slices.ContainsFunc(v.running(), func(p program) bool {
		names := func(word string) bool {
			called := strings.TrimSuffix(path.Base(strings.ReplaceAll(word, ":", "/")), ".git")
			return from(p.at, word) == folder || path.Join(p.at, called) == strings.TrimSuffix(folder, ".git")
		}
		return !p.copies() && (p.has("init") && p.at == folder ||
			p.has("init", "clone") && slices.ContainsFunc(p.words, names))
	})
}

// changes returns the number of a process that may change a repository in a folder; empty: there is none. What makes
// repositories, or brings whole folders, counts anywhere in the project. All else counts there alone: an agent can have
// the `git status` of an editor wait elsewhere, by a pipe in the place of a file that it reads.
func (v *vcs) changes(folder, project string) (pid string) {
	for _, p := range v.running() {
		if (p.copies() || makesRepository(p.words)) && p.comesTo(project) || mayWrite(p.words) && p.comesTo(folder) {
			return p.pid
		}
	}
	return ""
}

// has reports whether one of some words is in the command line.
func (p program) has(some ...string) bool {
	return slices.ContainsFunc(some, func(word string) bool { return slices.Contains(p.words, word) })
}

// copies reports whether it brings whole folders.
func (p program) copies() bool { return slices.Contains(copiers, p.name) }

// copiesTo reports whether it may bring a folder with what is at a path: the last word says where to, of an archive any
// word, or the folder that it is in.
func (p program) copiesTo(at string) bool {
	if (p.name == "cp" || p.name == "rsync") && !p.has("-t") {
		return pathname.Below(at, from(p.at, p.words[len(p.words)-1]))
	}
	to := func(word string) bool { return pathname.Below(at, from(p.at, word)) }
	return p.copies() && (to("") || slices.ContainsFunc(p.words, to))
}

// comesTo reports whether it is in a folder, or names a path there.
func (p program) comesTo(folder string) bool {
	there := func(word string) bool { return pathname.Below(from(p.at, word), folder) }
	return there("") || slices.ContainsFunc(p.words, func(word string) bool {
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

// running lists the programs that are at work.
func (v *vcs) running() []program {
	now := time.Now()
	if now.Sub(v.asked) <= answerAge {
		return v.list
	}
	if now.Sub(v.since) > reused {
		v.others, v.since = map[string]time.Time{}, now
	}
	v.list, v.asked = nil, now
	own, err := os.Readlink("/proc/self/ns/pid")
	all, fault := os.Open("/proc")
	if err != nil || fault != nil {
		return nil
	}
	defer all.Close()
	const most = 20_000
	names, _ := all.Readdirnames(most)
	for _, pid := range names {
		if pid[0] < '0' || pid[0] > '9' {
			continue
		}
		first, known := v.others[pid]
		if known && first.IsZero() {
			continue
		}
		const limit = 4096
		comm, err := smallfile.Read("/proc/"+pid+"/comm", limit)
		name := strings.TrimSuffix(string(comm), "\n")
		switch {
		case err != nil:
		case slices.Contains(programs, name) || slices.Contains(copiers, name):
			if words, at := commandOf("/proc/"+pid, own); len(words) > 0 {
				v.list = append(v.list, program{pid, name, words, at, isOld(pid)})
			}
		case !known:
			v.others[pid] = now
		case now.Sub(first) > settled:
			v.others[pid] = time.Time{}
		}
	}
	return v.list
}

// isOld reports whether a process is older than [oldAfter], by field 22 of its state (proc_pid_stat(5)).
func isOld(pid string) bool {
	const field, tick = 22, 10 * time.Millisecond
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")                                    // it may have ended
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // from the third on
	var now unix.Timespec
	if len(fields) <= field-3 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return false
	}
	began, err := strconv.ParseInt(fields[field-3], 10, 64)
	return err == nil && time.Duration(now.Nano())-time.Duration(began)*tick > oldAfter
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

// commandOf returns the command line of a process, after what names its repository, and the folder that it is in. One
// of another namespace of processes than this one has none. Neither has claudebox's git, by which commits cross: an
// agent chooses what it says of them.
func commandOf(process, own string) (words []string, at string) {
	line, err := os.ReadFile(process + "/cmdline")
	at, fault := os.Readlink(process + "/cwd")
	if ns, _ := os.Readlink(process + "/ns/pid"); err != nil || fault != nil || ns != own {
		return nil, ""
	}
	environment, _ := os.ReadFile(process + "/environ")
	for entry := range strings.SplitSeq(string(environment), "\x00") {
		switch name, value, _ := strings.Cut(entry, "="); {
		case name == "GIT_COMMITTER_EMAIL" && value == OwnEmail:
			return nil, ""
		case name == "GIT_DIR", name == "GIT_WORK_TREE":
			words = append(words, value)
		}
	}
	return append(words, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")...), at
}
