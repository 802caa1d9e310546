package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/linux/within"
)

// mostProcesses is how many processes and threads a sandbox may have by default:
// several times what a large build or a browser needs, and a fraction of what brings
// a machine down.
const mostProcesses = 16384

// processLimit returns the limit on processes inside. The kernel counts those of each user namespace apart.
func (l Launch) processLimit() uint64 {
	limit := uint64(mostProcesses)
	if tasks := l.Plan.Limits.Tasks; tasks > 0 {
		limit = uint64(tasks)
	}
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) == nil {
		const share = 2 // claudebox and what else the user runs start processes, too
		limit = min(limit, own.Cur/share)
	}
	return limit
}

// signalLimit returns up to how many signals may wait for the user's processes while one of the sandbox's adds another
// (timers count as well); 0: there is no limit. Where the user has none left, a Go program cannot put all of its
// threads under a protection, and waits for good: claudebox's helpers, of other sessions, too.
func signalLimit() uint64 {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_SIGPENDING, &own) != nil || own.Cur == unix.RLIM_INFINITY {
		return 0
	}
	const share = 2
	return max(1, own.Cur/share)
}

// shares are the limits on what the kernel counts per user and all of the user's programs share, with the part of each
// that one sandbox may take; part 0: a number that is enough for any program. One that takes all would keep other
// programs of the user, and other sessions, from watching files. Of what else is counted so, [signalLimit] is a limit;
// the rest needs none: no namespace can be made inside, and nothing that protects needs it once the agent runs.
var shares = []struct {
	name, file string // in /proc/sys/user, and the machine's own in /proc/sys/fs
	part, most int
}{
	{name: "max_inotify_instances", file: "inotify/max_user_instances", part: 4},
	{name: "max_inotify_watches", file: "inotify/max_user_watches", part: 2},
	{name: "max_fanotify_groups", most: 16},
	{name: "max_fanotify_marks", most: 16384},
}

// writableSettings is the remedy where /proc/sys cannot be written.
const writableSettings = "in a container, mount /proc/sys writable; if it stays so, report it with the output of " +
	"`claudebox check`"

// userLimits returns the limits on a sandbox for what is counted per user.
func userLimits() (list []within.Setting, err error) {
	for _, share := range shares {
		if unix.Access("/proc/sys/user/"+share.name, unix.F_OK) != nil {
			continue // this kernel does not have what it limits
		}
		most := share.most
		if share.part > 0 {
			if most, err = readNumber("/proc/sys/fs/" + share.file); err != nil {
				return nil, &diag.Error{Op: "read a limit of your user's", Err: err, Remedy: "mount /proc whole"}
			}
			most = max(1, most/share.part)
		}
		list = append(list, within.Setting{Name: share.name, Value: strconv.Itoa(most)})
	}
	return list, nil
}

// readNumber reads a file of the kernel's that holds one number.
func readNumber(file string) (int, error) {
	const longest = 64
	text, err := smallfile.Read(file, longest)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// victim is how readily the kernel ends the sandbox's processes when memory is short (proc_pid_oom_score_adj(5)):
// before claudebox, which judges what they leave, and before what else the user runs. Inside it cannot be lowered, as
// /proc is read-only there.
const victim = 300

// offer has the kernel end a process, and what it starts, before others. A value that is higher already stays.
func offer(pid int) error {
	file := fmt.Sprintf("/proc/%d/oom_score_adj", pid)
	now, err := readNumber(file)
	if err == nil && now < victim {
		err = os.WriteFile(file, []byte(strconv.Itoa(victim)), 0)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil // it has ended
	}
	return err
}

// limit puts all processes of a sandbox, bwrap first, under its limits. It is called while bwrap waits at the gate, so
// what they start later inherits them.
func (r Runner) limit(pids []int) error {
	for _, limit := range []struct {
		what     string
		resource int
		most     uint64
	}{{"processes", unix.RLIMIT_NPROC, r.processLimit()}, {"pending signals", unix.RLIMIT_SIGPENDING, signalLimit()}} {
		if err := setLimit(pids, limit.resource, limit.most); err != nil {
			return &diag.Error{Op: "limit the " + limit.what + " of the sandbox", Err: err}
		}
	}
	bwrap := pids[0]
	// What made the sandbox's store is no part of it, and ends.
	for _, pid := range append(proctree.All(proctree.Init(bwrap)), bwrap) {
		if err := offer(pid); err != nil {
			return &diag.Error{
				Op: "have the sandbox ended before claudebox when memory is short", Err: err,
				Remedy: "run `claudebox check`; /proc must be writable for you",
			}
		}
	}
	if r.Limited {
		return r.Limit(pids)
	}
	return nil
}

// setLimit limits each process that has not ended; 0: not at all.
func setLimit(pids []int, resource int, most uint64) error {
	if most == 0 {
		return nil
	}
	limit := unix.Rlimit{Cur: most, Max: most}
	for _, pid := range pids {
		if err := unix.Prlimit(pid, resource, &limit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
