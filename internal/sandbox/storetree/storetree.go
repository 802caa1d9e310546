package storetree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/spawn"
)

// The stages by what they are called: the first of a program's words.
const (
	frame = "claudebox-store"      // makes the empty folder, and becomes bwrap
	fill  = "claudebox-store-fill" // makes the tree
)

// The folders lie on a tmpfs that is mounted over /sys, which every system
// has and bwrap has no use for.
const (
	top   = "/sys"
	Place = top + "/claudebox-store" // what bwrap binds
	build = top + "/claudebox-build"
)

// made is what the second stage says when the tree is in its place.
const made = "made"

// Around gives the program that makes an empty folder to bind, shared, starts the
// making of the tree beside it, and becomes the program p, which is bwrap. list
// and report are descriptors of this process: a file with the store paths, a line
// each, and the pipe that [Await] reads.
func Around(p spawn.Program, list, report int) spawn.Program {
	first := len(p.Files)
	p.Files = slices.Concat(p.Files, []int{list, report})
	p.Args = slices.Concat([]string{frame, strconv.Itoa(first), p.Path}, p.Args)
	p.Path = "/proc/self/exe"
	p.PIDs, p.Mounts, p.Rights = true, true, []uintptr{unix.CAP_SYS_ADMIN}
	return p
}

// mounts are the empty folder, and what bwrap needs besides. They need a mount
// and a pid namespace.
var mounts = []struct {
	source, target, kind string
	flags                uintptr
	options              string
}{
	{target: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
	// bwrap looks processes up by numbers that the host's /proc does not have,
	// or has for others.
	{"proc", "/proc", "proc", safe | unix.MS_NOEXEC, ""},
	{"tmpfs", top, "tmpfs", safe, "mode=0755,size=64k"},
	{"tmpfs", build, "tmpfs", safe, "mode=0755,size=64m"},
	{"tmpfs", Place, "tmpfs", safe | unix.MS_RDONLY, "mode=0755,size=4k"},
	{target: Place, flags: unix.MS_SHARED},
}

func makeMounts() error {
	for _, m := range mounts {
		if m.target == build || m.target == Place && m.kind != "" {
			if err := unix.Mkdir(m.target, 0o755); err != nil {
				return fmt.Errorf("make %s: %w", m.target, err)
			}
		}
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

// safe are the flags of what is mounted here.
const safe = unix.MS_NOSUID | unix.MS_NODEV

// ErrGone means that the stage ended without a word, as it does with bwrap.
var ErrGone = errors.New("what mounts it ended before its time")

// Await returns when the tree is in its place, or with what kept it from
// coming there. It does not wait for the stage's end, in which the kernel takes
// another namespace apart. Nobody in this process may hold the other end of
// report.
func Await(report io.Reader) error {
	var text []byte
	for piece := make([]byte, 512); string(text) != made; {
		n, err := report.Read(piece)
		text = append(text, piece[:n]...)
		switch {
		case err == nil:
		case err != io.EOF:
			return err
		case len(text) == 0:
			return ErrGone
		default:
			return errors.New(string(text))
		}
	}
	return nil
}

// Run is the stage whose words these are, and gives its exit status; the first
// one does not return when all is well.
func Run(words []string) (status int, ran bool) {
	if len(words) < 2 || words[0] != frame && words[0] != fill {
		return 0, false
	}
	list, err := strconv.Atoi(words[1])
	if err != nil {
		return failed, true
	}
	report := list + 1
	if words[0] == fill {
		err = fillFolder(list)
	} else {
		err = becomeBwrap(words[2:], list, report)
	}
	said := made
	if err != nil {
		status, said = failed, err.Error()
	}
	_, _ = unix.Write(report, []byte(said))
	return status, true
}

const failed = 125

// becomeBwrap is the first stage. words are bwrap's path and its own words. Its
// error is why it did not become bwrap.
func becomeBwrap(words []string, list, report int) error {
	runtime.LockOSThread() // rights are a thread's own
	if len(words) < 2 {
		return errors.New("there is no program to become")
	}
	if err := makeMounts(); err != nil {
		return err
	}
	if signal.Ignored(unix.SIGINT) {
		signal.Ignore(unix.SIGQUIT) // a shell ignores both, and Go takes the second over
	}
	if err := startFilling(list, report); err != nil {
		return fmt.Errorf("start what mounts the store: %w", err)
	}
	unix.CloseOnExec(list)
	unix.CloseOnExec(report)
	if err := dropRights(); err != nil {
		return fmt.Errorf("drop the right to mount: %w", err)
	}
	return fmt.Errorf("start %s: %w", words[0], unix.Exec(words[0], words[1:], nil))
}

// startFilling starts the second stage. It ends with bwrap, the first process
// here.
func startFilling(list, report int) error {
	// The descriptors get the same numbers.
	files := make([]uintptr, report+1)
	for fd := range files {
		files[fd] = ^uintptr(0) // closed
	}
	files[list], files[report] = uintptr(list), uintptr(report)
	_, err := syscall.ForkExec("/proc/self/exe", []string{fill, strconv.Itoa(list)}, &syscall.ProcAttr{Files: files})
	return err
}

// dropRights takes the right to mount from what this thread executes: bwrap
// starts with none.
func dropRights() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	none := [2]unix.CapUserData{}
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// step is one thing to do, named for the error.
type step struct {
	name string
	do   func() error
}

func run(steps ...step) error {
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// fillFolder makes the tree where nobody sees it, and moves it to its place.
func fillFolder(list int) error {
	runtime.LockOSThread() // a mount namespace is a thread's own
	text, err := io.ReadAll(os.NewFile(uintptr(list), "list"))
	if err != nil {
		return err
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	return run(
		step{"make a mount namespace", func() error { return unix.Unshare(unix.CLONE_NEWNS) }},
		step{"mount", func() error { return bindAll(strings.Fields(string(text))) }},
		step{
			"make the mounts read-only (this needs Linux 5.12)",
			func() error { return unix.MountSetattr(-1, build, unix.AT_RECURSIVE, readOnly) },
		},
		step{"move the mounts to their place", func() error { return unix.Mount(build, Place, "", unix.MS_MOVE, "") }},
	)
}

func bindAll(paths []string) error {
	for _, path := range paths {
		if err := bind(path, filepath.Join(build, filepath.Base(path))); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// bind shows a store path: a folder, a file, or a link, which is made anew.
func bind(path, place string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return unix.Symlink(to, place)
	case unix.S_IFDIR:
		if err := unix.Mkdir(place, 0o755); err != nil {
			return err
		}
	default:
		fd, err := unix.Open(place, unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		unix.Close(fd)
	}
	return unix.Mount(path, place, "", unix.MS_BIND, "")
}
