// Package atwork knows which programs of the user's are at work outside of all sandboxes, and what they may make: those
// for version control, and those that copy whole folders. The kernel does not tell who made a file, so this is how
// claudebox tells the user's from the agent's.
package atwork

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/smallfile"
)

// Programs are those that are at work. The zero value is ready. It is not safe for concurrent use.
type Programs struct {
	asked  time.Time
	list   []program
	others map[int]time.Time // processes that are none, by their numbers, and since when; zero: for good
	newest int               // the newest process, when it was asked
	since  time.Time         // when others was begun
}

const (
	// answerAge is how long an answer counts from when it was asked for: a program is older than what it makes.
	answerAge = time.Millisecond
	// settled is after how long a process starts no other program any more: one that is to be git is a shell at first,
	// for long on a busy machine.
	settled = 500 * time.Millisecond
	// mostNew is how many new processes are looked at by their numbers: if there are more, all are listed.
	mostNew = 64
	// reused is after how long the kernel may have given a process's number to another one.
	reused = 10 * time.Second
	// oldAfter is the age of a program from which on it may wait for a person.
	oldAfter = 5 * time.Second
)

var (
	// programs are those for version control. What others make, as gh does, they have git make.
	programs = []string{"git", "jj", "hg", "sl", "bzr", "brz", "fossil", "pijul", "darcs"}
	// copiers are programs that bring whole folders.
	copiers = []string{"cp", "tar", "bsdtar", "rsync", "unzip", "7z"}
)

// running lists the programs that are at work.
func (all *Programs) running() []program {
	now := time.Now()
	if now.Sub(all.asked) <= answerAge {
		return all.list
	}
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nil
	}
	before, seen := all.list, map[int]bool{}
	all.list, all.asked = nil, now
	all.candidates(before, now, func(pid int) {
		if !seen[pid] {
			seen[pid] = true
			all.look(pid, own, now)
		}
	})
	return all.list
}

// candidates calls look with the processes that may be programs, some of them twice: those that are new, the newest
// first (proc_loadavg(5) has its number), as a `git init` ends two milliseconds after it has made its folder; those that
// were programs, or may have become some; and from time to time all others.
func (all *Programs) candidates(before []program, now time.Time, look func(pid int)) {
	load, _ := smallfile.Read("/proc/loadavg", 100)
	newest, _ := strconv.Atoi(string(bytes.TrimSpace(load[bytes.LastIndexByte(load, ' ')+1:])))
	isStale := newest < all.newest || now.Sub(all.since) > reused
	if isStale {
		all.others, all.since = map[int]time.Time{}, now
	}
	isRest := isStale || newest > all.newest+mostNew
	for pid := newest; pid > max(all.newest, newest-mostNew); pid-- {
		look(pid)
	}
	all.newest = newest
	for _, p := range before {
		look(p.pid)
	}
	for pid, first := range all.others {
		if !first.IsZero() {
			look(pid)
		}
	}
	if isRest {
		for _, pid := range processes() {
			look(pid)
		}
	}
}

// processes lists the numbers of all processes.
func processes() (list []int) {
	all, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer all.Close()
	const most = 20_000
	names, _ := all.Readdirnames(most)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// look adds a process to the list, if it is one of the programs.
func (all *Programs) look(pid int, own string, now time.Time) {
	first, known := all.others[pid]
	if known && first.IsZero() {
		return
	}
	const limit = 4096
	process := "/proc/" + strconv.Itoa(pid)
	comm, err := smallfile.Read(process+"/comm", limit)
	name := strings.TrimSuffix(string(comm), "\n")
	switch {
	case err != nil:
		delete(all.others, pid)
	case slices.Contains(programs, name) || slices.Contains(copiers, name):
		if words, of, at := commandOf(process, own); len(words) > 0 {
			p := program{pid: pid, name: name, words: words, of: of, at: at, old: isOld(process)}
			all.list = append(all.list, p.asked())
		}
	case !known:
		all.others[pid] = now
	case now.Sub(first) > settled:
		all.others[pid] = time.Time{}
	}
}

// isOld reports whether a process is older than [oldAfter], by field 22 of its state (proc_pid_stat(5)).
func isOld(process string) bool {
	const field, tick = 22, 10 * time.Millisecond
	stat, _ := os.ReadFile(process + "/stat")                                           // it may have ended
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
	if ns, _ := os.Readlink(process + "/ns/pid"); err != nil || fault != nil || ns != own || len(line) == 0 { // it ends
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
