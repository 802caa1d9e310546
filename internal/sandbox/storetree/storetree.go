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

// List is what the stage reads: the store paths and, where the sandbox has a store
// of its own, the folder of that: its layer (upper), the kernel's beside it
// (work), and a mount point for each path (points). Empty: there is none.
func List(store string, paths []string) []byte {
	return []byte(strings.Join(append([]string{store}, paths...), "\x00"))
}

// Around gives the program that makes an empty folder to bind, shared, starts the
// making of the tree beside it, and becomes the program p, which is bwrap. list
// and report are descriptors of this process: a file with a [List], and the pipe
// that [Await] reads.
func Around(p spawn.Program, list, report int) spawn.Program {
	first := len(p.Files)
	p.Files = slices.Concat(p.Files, []int{list, report})
	p.Args = slices.Concat([]string{frame, strconv.Itoa(first), p.Path}, p.Args)
	p.Path = "/proc/self/exe"
	p.PIDs, p.Mounts = true, true
	p.Rights = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE} // the second is for what overlays leave closed
	return p
}

// mounts are the empty folder, and what bwrap needs besides. They need a mount
// and a pid namespace.
var mounts = []struct {
	source, target, kind string
	flags                uintptr
	options              string
	make                 bool // the folder that it is mounted on
}{
	{target: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
	// bwrap looks processes up by numbers that the host's /proc does not have,
	// or has for others.
	{"proc", "/proc", "proc", safe | unix.MS_NOEXEC, "", false},
	{"tmpfs", top, "tmpfs", safe, "mode=0755,size=64k", false},
	{"tmpfs", build, "tmpfs", safe, "mode=0755,size=64m", true},
	{"tmpfs", Place, "tmpfs", safe | unix.MS_RDONLY, "mode=0755,size=4k", true},
	{target: Place, flags: unix.MS_SHARED},
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
	for _, m := range mounts {
		if m.make {
			if err := unix.Mkdir(m.target, 0o755); err != nil {
				return fmt.Errorf("make %s: %w", m.target, err)
			}
		}
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if signal.Ignored(unix.SIGINT) {
		signal.Ignore(unix.SIGQUIT) // a shell ignores both, and Go takes the second over
	}
	// The second stage ends with bwrap, the first process here. It has the
	// descriptors under the same numbers.
	files := slices.Repeat([]uintptr{^uintptr(0)}, report+1) // closed
	files[list], files[report] = uintptr(list), uintptr(report)
	_, err := syscall.ForkExec("/proc/self/exe", []string{fill, strconv.Itoa(list)}, &syscall.ProcAttr{Files: files})
	if err != nil {
		return fmt.Errorf("start what mounts the store: %w", err)
	}
	unix.CloseOnExec(list)
	unix.CloseOnExec(report)
	// bwrap starts without the right to mount.
	err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err == nil {
		none := [2]unix.CapUserData{}
		err = unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
	}
	if err != nil {
		return fmt.Errorf("drop the right to mount: %w", err)
	}
	return fmt.Errorf("start %s: %w", words[0], unix.Exec(words[0], words[1:], nil))
}

// fillFolder makes the tree where nobody sees it, and moves it to its place.
func fillFolder(list int) error {
	runtime.LockOSThread() // a mount namespace is a thread's own
	text, err := io.ReadAll(os.NewFile(uintptr(list), "list"))
	if err != nil {
		return err
	}
	store, rest, _ := strings.Cut(string(text), "\x00")
	paths := strings.Split(rest, "\x00")
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"make a mount namespace", func() error { return unix.Unshare(unix.CLONE_NEWNS) }},
		{"make the mount points", func() error {
			if store == "" {
				return Points(build, paths)
			}
			// Those of a store of the sandbox's own are its lower layer, which nothing may
			// be mounted in. In that folder no name has to be written as the kernel reads them.
			if err := os.Chdir(store); err != nil {
				return err
			}
			const layers = "lowerdir=points,upperdir=upper,workdir=work,userxattr"
			return unix.Mount("overlay", build, "overlay", safe, layers)
		}},
		{"mount", func() error { return bindAll(paths) }},
		{"make the mounts read-only (this needs Linux 5.12)", func() error {
			return unix.MountSetattr(-1, build, unix.AT_RECURSIVE, readOnly)
		}},
		{"make the store writable", func() error {
			if store == "" {
				return nil
			}
			// None of what is mounted in it is.
			return unix.MountSetattr(-1, build, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}},
		{"move the mounts to their place", func() error { return unix.Mount(build, Place, "", unix.MS_MOVE, "") }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// Points makes a place for each store path in a folder: an empty folder, an empty
// file, or the same link.
func Points(folder string, paths []string) error {
	for _, path := range paths {
		if err := point(path, filepath.Join(folder, filepath.Base(path))); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func point(path, place string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return unix.Mkdir(place, 0o755)
	case info.Mode()&os.ModeSymlink == 0:
		return os.WriteFile(place, nil, 0o644)
	}
	to, err := os.Readlink(path)
	if err != nil {
		return err
	}
	return unix.Symlink(to, place)
}

// bindAll shows store paths at their places. Links are there already.
func bindAll(paths []string) error {
	for _, path := range paths {
		place := filepath.Join(build, filepath.Base(path))
		info, err := os.Lstat(place)
		if err == nil && info.Mode()&os.ModeSymlink == 0 {
			err = unix.Mount(path, place, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
