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
	words     []string // of its command line
	of        []string // what names its repository otherwise
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
// and for a pull, which waits for another machine first, unless what it has started since waits for a person.
func (v *vcs) bringsTo(at, project string) bool {
	running := v.running()
	waits := slices.ContainsFunc(running, func(p program) bool { return p.old && p.does("merge", "rebase") })
	return slices.ContainsFunc(running, func(p program) bool {
		isBusy := !p.old || p.does("pull") && !waits
		return p.copiesTo(at) || isBusy && (p.brings() || p.makes()) && p.comesTo(project)
	})
}

// makesAt reports whether one may make a repository at a path in the project: what names a folder makes it there, or
// below.
func (v *vcs) makesAt(at, project string) bool {
	return slices.ContainsFunc(v.running(), func(p program) bool {
		isThere := p.does("submodule", "submodule--helper") || p.names(func(folder string) bool {
			return pathname.Below(at, folder) && (folder != p.at || path.Dir(at) == folder)
		})
		return p.copiesTo(at) || p.makes() && p.comesTo(project) && isThere
	})
}

// makesIn reports whether one makes a repository in a folder by its command line.
func (v *vcs) makesIn(folder string) bool {
	return slices.ContainsFunc(v.running(), func(p program) bool {
		return p.does("clone", "init") && p.names(func(named string) bool { return named == folder })
	})
}

// changes returns the number of a process that may change a repository in a folder; empty: there is none. What makes
// repositories, or brings whole folders, counts anywhere in the project. All else counts there alone: an agent can have
// the `git status` of an editor wait elsewhere, by a pipe in the place of a file that it reads.
func (v *vcs) changes(folder, project string) (pid string) {
	for _, p := range v.running() {
		if (p.copies() || p.makes()) && p.comesTo(project) || p.mayWrite() && p.comesTo(folder) {
			return p.pid
		}
	}
	return ""
}

// valued are options of version control programs before the command, that have the next word for their value.
var valued = strings.Fields("-C -c -R --git-dir --work-tree --namespace --config-env --attr-source --repository " +
	"--cwd --config --at-op --at-operation")

// command returns what it is asked for, as clone, and the words after that.
func (p program) command() (command string, rest []string) {
	words := p.words[1+max(0, slices.IndexFunc(p.words, func(word string) bool { return path.Base(word) == p.name })):]
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case slices.Contains(valued, word):
			i++
		case strings.HasPrefix(word, "-"):
		case word == "git" && p.name == "jj": // jj git clone
		default:
			return word, words[i+1:]
		}
	}
	return "", nil
}

// does reports whether it is asked for one of some commands.
func (p program) does(some ...string) bool {
	command, _ := p.command()
	return !slices.Contains(copiers, p.name) && slices.Contains(some, command)
}

// makes reports whether it makes a repository.
func (p program) makes() bool {
	_, rest := p.command()
	i := slices.IndexFunc(rest, func(word string) bool { return !strings.HasPrefix(word, "-") })
	then := func(some ...string) bool { return i >= 0 && slices.Contains(some, rest[i]) }
	return p.does("clone", "init", "submodule--helper") || p.does("worktree") && then("add", "move", "repair") ||
		p.does("submodule") && then("add", "update", "init") || p.does("workspace") && then("add")
}

// names reports whether one of the folders that it may make a repository in is a certain one. Without a name for that,
// git takes the last part of an address (builtin/clone.c), and `git init` the folder that it is in.
func (p program) names(is func(folder string) bool) bool {
	_, rest := p.command()
	return p.does("init") && is(p.at) || slices.ContainsFunc(rest, func(word string) bool {
		called := path.Join(p.at, strings.TrimSuffix(path.Base(strings.ReplaceAll(word, ":", "/")), ".git"))
		return is(from(p.at, word)) || is(called) || is(called+".git")
	})
}

// brings reports whether it makes files.
func (p program) brings() bool {
	if _, rest := p.command(); p.does("stash") && len(rest) > 0 && (rest[0] == "list" || rest[0] == "show") {
		return false // a prompt asks that all the time
	}
	return p.does("checkout", "switch", "restore", "pull", "merge", "rebase", "reset", "stash", "cherry-pick", "revert",
		"am", "apply", "update", "up", "goto", "new", "edit", "read-tree", "checkout-index")
}

// mayWrite reports whether it may write in a repository: all but some commands do. Those may go on for long.
func (p program) mayWrite() bool {
	return !slices.Contains(copiers, p.name) && !p.does("log", "diff", "show", "blame", "grep", "cat-file",
		"fsmonitor--daemon", "credential-cache--daemon")
}

// copies reports whether it brings whole folders.
func (p program) copies() bool {
	first := ""
	if len(p.words) > 1 {
		first = p.words[1]
	}
	switch p.name {
	case "cp", "rsync":
		return true
	case "tar", "bsdtar":
		return slices.ContainsFunc(p.words, func(word string) bool {
			isLetters := strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--")
			return word == "--extract" || word == "--get" || isLetters && strings.Contains(word, "x")
		}) || !strings.HasPrefix(first, "-") && strings.Contains(first, "x")
	case "unzip":
		return !slices.ContainsFunc(p.words, func(word string) bool { return slices.Contains(lists, word) })
	case "7z":
		return strings.ContainsAny(first, "xe")
	}
	return false
}

// lists are the options by which unzip only reads.
var lists = strings.Fields("-l -t -v -Z -p -z")

// copiesTo reports whether it may bring a folder with what is at a path: the last word says where to, of an archive any
// word, or the folder that it is in.
func (p program) copiesTo(at string) bool {
	if (p.name == "cp" || p.name == "rsync") && !slices.Contains(p.words, "-t") {
		return pathname.Below(at, from(p.at, p.words[len(p.words)-1]))
	}
	to := func(word string) bool { return pathname.Below(at, from(p.at, word)) }
	return p.copies() && (to("") || slices.ContainsFunc(p.words, to))
}

// comesTo reports whether it is in a folder, or names a path there.
func (p program) comesTo(folder string) bool {
	there := func(word string) bool { return pathname.Below(from(p.at, word), folder) }
	return there("") || slices.ContainsFunc(slices.Concat(p.words, p.of), func(word string) bool {
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
	// programs are those for version control. What others make, as gh does, they have git make.
	programs = []string{"git", "jj", "hg", "sl", "bzr", "brz", "fossil", "pijul", "darcs"}
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
			if words, of, at := commandOf("/proc/"+pid, own); len(words) > 0 {
				v.list = append(v.list, program{pid, name, words, of, at, isOld(pid)})
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

// commandOf returns the command line of a process, what else names its repository, and the folder that it is in. One of
// another namespace of processes than this one has none. Neither has claudebox's git, by which commits cross: an agent
// chooses what it says of them.
func commandOf(process, own string) (words, of []string, at string) {
	line, err := os.ReadFile(process + "/cmdline")
	at, fault := os.Readlink(process + "/cwd")
	if ns, _ := os.Readlink(process + "/ns/pid"); err != nil || fault != nil || ns != own {
		return nil, nil, ""
	}
	environment, _ := os.ReadFile(process + "/environ")
	for entry := range strings.SplitSeq(string(environment), "\x00") {
		switch name, value, _ := strings.Cut(entry, "="); {
		case name == "GIT_COMMITTER_EMAIL" && value == OwnEmail:
			return nil, nil, ""
		case name == "GIT_DIR", name == "GIT_WORK_TREE":
			of = append(of, value)
		}
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"), of, at
}
