package storetree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Name is what the stages are called by: the first of a program's words.
const Name = "claudebox-store"

// The folders lie on a tmpfs that prepare mounts over /sys, which every system
// has and bwrap has no use for.
const (
	top   = "/sys"
	Place = top + "/claudebox-store" // what bwrap binds
	build = top + "/claudebox-build"
)

// made is what fill says when the tree is in its place.
const made = "made"

// Attributes has a child become a stage: the first process of a pid namespace,
// in a user namespace where this user is who he is outside, with the right to
// mount there. It dies with the thread that starts it.
func Attributes(network bool) *syscall.SysProcAttr {
	one := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	attr := &syscall.SysProcAttr{
		Pdeathsig:   syscall.SIGKILL,
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
		UidMappings: one(os.Getuid()), GidMappings: one(os.Getgid()),
	}
	if network {
		attr.Cloneflags |= syscall.CLONE_NEWNET
	}
	return attr
}

// Words are those of the stage that becomes bwrap. list is its descriptor of
// the store paths, a line each; report that of the pipe that [Await] reads.
func Words(list, report int, bwrap string, words []string) []string {
	return append([]string{Name, strconv.Itoa(list), strconv.Itoa(report), bwrap}, words...)
}

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
			return errors.New("it ended before the mounts were made")
		default:
			return errors.New(string(text))
		}
	}
	return nil
}

// Stage runs a stage when the words of this program are those of one, and
// gives its exit status.
func Stage(words []string) (status int, ran bool) {
	if len(words) < 3 || words[0] != Name {
		return 0, false
	}
	runtime.LockOSThread() // namespaces and rights are a thread's own
	list, err1 := strconv.Atoi(words[1])
	report, err2 := strconv.Atoi(words[2])
	err := errors.Join(err1, err2)
	switch {
	case err != nil:
		return 125, true
	case len(words) == 3:
		err = fill(list)
	default:
		err = prepare(list, report, words[3], words[4:])
	}
	said := made
	if err != nil {
		status, said = 125, err.Error()
	}
	_, _ = unix.Write(report, []byte(said))
	return status, true
}

// prepare returns only when it fails.
func prepare(list, report int, bwrap string, words []string) error {
	if err := run(
		step{"make the mounts private", mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")},
		// bwrap looks processes up by numbers that the host's /proc does not have,
		// or has for others.
		step{"mount /proc", mount("proc", "/proc", "proc", safe|unix.MS_NOEXEC, "")},
		step{"mount " + top, mount("tmpfs", top, "tmpfs", safe, "mode=0755,size=64k")},
		step{"make " + Place, func() error { return unix.Mkdir(Place, 0o755) }},
		step{"make " + build, func() error { return unix.Mkdir(build, 0o755) }},
		step{"mount " + Place, mount("tmpfs", Place, "tmpfs", safe|unix.MS_RDONLY, "mode=0755,size=4k")},
		step{"share " + Place, mount("", Place, "", unix.MS_SHARED, "")},
		step{"start the stage that fills it", func() error { return startFill(list, report) }},
		step{"give up rights", dropRights},
	); err != nil {
		return err
	}
	unix.CloseOnExec(list)
	unix.CloseOnExec(report)
	return fmt.Errorf("execute %s: %w", bwrap, syscall.Exec(bwrap, append([]string{"bwrap"}, words...), []string{}))
}

// safe are the flags of what is mounted here.
const safe = unix.MS_NOSUID | unix.MS_NODEV

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

func mount(source, target, kind string, flags uintptr, options string) func() error {
	return func() error { return unix.Mount(source, target, kind, flags, options) }
}

// startFill starts the other stage beside this one: bwrap, whose child it will
// be, takes no notice of children that it did not start.
func startFill(list, report int) error {
	const first = 3
	_, err := syscall.ForkExec("/proc/self/exe", []string{Name, strconv.Itoa(first), strconv.Itoa(first + 1)}, &syscall.ProcAttr{
		Env: []string{}, Files: []uintptr{0, 1, 2, uintptr(list), uintptr(report)},
		Sys: &syscall.SysProcAttr{AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}},
	})
	return err
}

// dropRights: bwrap refuses to run with rights that it did not expect.
func dropRights() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// fill makes the tree where nobody sees it, and moves it to its place.
func fill(list int) error {
	text, err := io.ReadAll(os.NewFile(uintptr(list), "list"))
	if err != nil {
		return err
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	return run(
		step{"make a mount namespace", func() error { return unix.Unshare(unix.CLONE_NEWNS) }},
		step{"mount " + build, mount("tmpfs", build, "tmpfs", safe, "mode=0755,size=64m")},
		step{"mount", func() error { return bindAll(strings.Fields(string(text))) }},
		step{"make the mounts read-only (this needs Linux 5.12)", func() error { return unix.MountSetattr(-1, build, unix.AT_RECURSIVE, readOnly) }},
		step{"move the mounts to their place", mount(build, Place, "", unix.MS_MOVE, "")},
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
