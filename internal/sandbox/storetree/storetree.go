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

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/spawn"
)

// Name is what the stage is called by: the first of a program's words.
const Name = "claudebox-store"

// The folders lie on a tmpfs that is mounted over /sys, which every system
// has and bwrap has no use for.
const (
	top   = "/sys"
	Place = top + "/claudebox-store" // what bwrap binds
	build = top + "/claudebox-build"
)

// made is what fill says when the tree is in its place.
const made = "made"

// Mounts are what bwrap is started with: an empty folder to bind, shared. They
// need a mount and a pid namespace.
func Mounts() []spawn.Mount {
	return []spawn.Mount{
		{Target: "/", Flags: unix.MS_REC | unix.MS_PRIVATE},
		// bwrap looks processes up by numbers that the host's /proc does not have,
		// or has for others.
		{Source: "proc", Target: "/proc", Kind: "proc", Flags: safe | unix.MS_NOEXEC},
		{Source: "tmpfs", Target: top, Kind: "tmpfs", Flags: safe, Options: "mode=0755,size=64k"},
		{Source: "tmpfs", Target: build, Kind: "tmpfs", Flags: safe, Options: "mode=0755,size=64m", Make: true},
		{Source: "tmpfs", Target: Place, Kind: "tmpfs", Flags: safe | unix.MS_RDONLY, Options: "mode=0755,size=4k", Make: true},
		{Target: Place, Flags: unix.MS_SHARED},
	}
}

// safe are the flags of what is mounted here.
const safe = unix.MS_NOSUID | unix.MS_NODEV

// Stage is the program that fills the folder, started beside bwrap. list is the
// descriptor of the store paths, a line each; report that of the pipe that
// [Await] reads.
func Stage(list, report int) *spawn.Program {
	words := []string{Name, strconv.Itoa(list), strconv.Itoa(report)}
	return &spawn.Program{Path: "/proc/self/exe", Args: words, Files: []int{list, report}}
}

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

// Run is the stage, when the words of this program are its, and gives its exit
// status.
func Run(words []string) (status int, ran bool) {
	if len(words) != 3 || words[0] != Name {
		return 0, false
	}
	list, err1 := strconv.Atoi(words[1])
	report, err2 := strconv.Atoi(words[2])
	if err1 != nil || err2 != nil {
		return 125, true
	}
	said := made
	if err := fill(list); err != nil {
		status, said = 125, err.Error()
	}
	_, _ = unix.Write(report, []byte(said))
	return status, true
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

// fill makes the tree where nobody sees it, and moves it to its place.
func fill(list int) error {
	runtime.LockOSThread() // a mount namespace is a thread's own
	text, err := io.ReadAll(os.NewFile(uintptr(list), "list"))
	if err != nil {
		return err
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	return run(
		step{"make a mount namespace", func() error { return unix.Unshare(unix.CLONE_NEWNS) }},
		step{"mount", func() error { return bindAll(strings.Fields(string(text))) }},
		step{"make the mounts read-only (this needs Linux 5.12)", func() error { return unix.MountSetattr(-1, build, unix.AT_RECURSIVE, readOnly) }},
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
