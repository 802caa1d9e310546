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

// The argv[0] of the two stages.
const (
	frame = "claudebox-store"      // makes the empty folder, and becomes bwrap
	fill  = "claudebox-store-fill" // makes the tree
)

// The folders lie on a tmpfs that is mounted over /sys: every system has /sys, and
// bwrap does not need it.
const (
	top   = "/sys"
	Place = top + "/claudebox-store" // the folder that bwrap binds
	build = top + "/claudebox-build" // where the tree is made before it is moved to Place

	layers = top + "/claudebox-layers" // see [Layer.Place]
)

// Layer is a folder that is seen below, and what is written to it above: in the folders upper and work of another. The
// first stage mounts it. No link may be on the way to either.
type Layer struct{ Lower, Above string }

// LayerPlace is the folder that bwrap binds for the layer with an index.
func LayerPlace(index int) string { return layers + "/" + strconv.Itoa(index) }

// NoLayer begins the error of a first stage that could not mount a layer.
const NoLayer = "see a folder below a layer: "

// NoProc begins the error of a first stage that could not mount /proc.
const NoProc = "mount " + proc + ": "

const proc = "/proc"

// made is what the second stage reports when the tree is at Place.
const made = "made"

// List returns the content of the list that the second stage reads: store, then the
// store paths. store is the folder of the sandbox's own store, with the overlay's upper
// and work folders and the folder points, which has a mount point for each path; it is
// empty if the sandbox has no store of its own. An empty file in place of a list means
// that there is no tree, and no second stage.
func List(store string, paths []string) []byte {
	return []byte(strings.Join(append([]string{store}, paths...), "\x00"))
}

// Around returns the program to start instead of p, which is bwrap: the first stage. It
// mounts /proc, makes an empty, shared folder for bwrap to bind, starts the second stage,
// which makes the tree, and becomes p. Before that it mounts the layers of above. list and report are descriptors of
// this process: a file with a [List], and the write end of the pipe that [Await] reads.
func Around(p spawn.Program, list, report int, above []Layer) spawn.Program {
	first := len(p.Files)
	p.Files = slices.Concat(p.Files, []int{list, report})
	args := []string{frame, strconv.Itoa(first), strconv.Itoa(len(above))}
	for _, l := range above {
		args = append(args, l.Lower, l.Above)
	}
	p.Args = slices.Concat(args, []string{p.Path}, p.Args)
	p.Path = "/proc/self/exe"
	p.PIDs, p.Mounts = true, true
	// DAC_OVERRIDE is for folders that overlayfs makes without permissions.
	p.Rights = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE}
	return p
}

// mount is a mount of the first stage. All need a mount namespace and a pid namespace.
type mount struct {
	source, target, kind string
	flags                uintptr
	options              string
	make                 bool // whether to create target first
}

// forBwrap are the mounts that bwrap needs in its namespaces.
var forBwrap = []mount{
	{target: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
	// bwrap looks processes up by their ids in the new pid namespace. In the host's /proc
	// these do not exist, or belong to other processes.
	{"proc", proc, "proc", safe | unix.MS_NOEXEC, "", false},
}

// forAll is the mount in which the others are made.
var forAll = []mount{{"tmpfs", top, "tmpfs", safe, "mode=0755,size=64k", false}}

// forTree are the mounts of the empty folder.
var forTree = []mount{
	{"tmpfs", build, "tmpfs", safe, "mode=0755,size=64m", true},
	{"tmpfs", Place, "tmpfs", safe | unix.MS_RDONLY, "mode=0755,size=4k", true},
	{target: Place, flags: unix.MS_SHARED},
}

// safe are the flags of all mounts that are made here.
const safe = unix.MS_NOSUID | unix.MS_NODEV

// ErrGone is returned if the second stage ended without a report, as it does if bwrap ends. Without a second stage it
// is returned when the first has become bwrap, or has ended.
var ErrGone = errors.New("what mounts it ended before its time")

// Await waits until the tree is mounted, and returns nil, or the reason why it could not
// be. It does not wait for the stage's end, when the kernel must still remove a
// namespace. This process must have closed the write end of report.
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

// Run runs a stage if words, the program's argv, are those of one, and returns its exit
// status. ran is false if they are not. The first stage does not return on success.
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

// becomeBwrap is the first stage. words are the number of layers and their paths, bwrap's path and its argv. It returns
// only on an error.
func becomeBwrap(words []string, list, report int) error {
	runtime.LockOSThread() // capabilities are per thread
	count, err := strconv.Atoi(words[0])
	if err != nil || len(words) < 3+2*count {
		return errors.New("there is no program to become")
	}
	above := words[1 : 1+2*count]
	words = words[1+2*count:]
	var content unix.Stat_t
	if err := unix.Fstat(list, &content); err != nil {
		return fmt.Errorf("look at the list: %w", err)
	}
	if err := mountAll(forBwrap); err != nil {
		return err
	}
	if content.Size > 0 || count > 0 {
		if err := mountAll(forAll); err != nil {
			return err
		}
	}
	for n := range count {
		if err := (Layer{above[2*n], above[2*n+1]}).mount(LayerPlace(n)); err != nil {
			return fmt.Errorf("%s%s: %w", NoLayer, above[2*n], err)
		}
	}
	if signal.Ignored(unix.SIGINT) {
		signal.Ignore(unix.SIGQUIT) // a shell ignores both, but Go's runtime catches SIGQUIT, see launch.Heeded
	}
	if content.Size > 0 {
		if err := startFill(list, report); err != nil {
			return err
		}
	}
	unix.CloseOnExec(list)
	unix.CloseOnExec(report)
	// bwrap is started without capabilities.
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

// mount mounts a layer. Its folders are opened in this mount namespace, and no link is followed: a session elsewhere
// may change what is on the way.
func (l Layer) mount(place string) error {
	if err := os.MkdirAll(place, 0o755); err != nil {
		return err
	}
	var options []string
	for _, of := range []struct{ name, path string }{
		{"lowerdir", l.Lower}, {"upperdir", l.Above + "/upper"}, {"workdir", l.Above + "/work"},
	} {
		fd, err := unix.Openat2(unix.AT_FDCWD, of.path, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
		})
		if err != nil {
			return fmt.Errorf("open %s: %w", of.path, err)
		}
		defer unix.Close(fd)
		options = append(options, fmt.Sprintf("%s=/proc/self/fd/%d", of.name, fd))
	}
	return unix.Mount("overlay", place, "overlay", safe, strings.Join(append(options, "userxattr"), ","))
}

func mountAll(list []mount) error {
	for _, m := range list {
		if m.make {
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

// startFill makes the empty folder, and starts the second stage. It is killed when bwrap, the first process of this pid
// namespace, ends. It gets the two descriptors under the same numbers.
func startFill(list, report int) error {
	if err := mountAll(forTree); err != nil {
		return err
	}
	files := slices.Repeat([]uintptr{^uintptr(0)}, report+1) // -1: closed in the child
	files[list], files[report] = uintptr(list), uintptr(report)
	_, err := syscall.ForkExec("/proc/self/exe", []string{fill, strconv.Itoa(list)}, &syscall.ProcAttr{Files: files})
	if err != nil {
		return fmt.Errorf("start what mounts the store: %w", err)
	}
	return nil
}

// fillFolder is the second stage: it makes the tree in a mount namespace of its own, and
// moves it to Place.
func fillFolder(list int) error {
	runtime.LockOSThread() // unshare(2) changes the mount namespace of one thread
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
			// A store of the sandbox's own has its mount points in the lower layer, in which
			// nothing may be mounted. The paths are relative to the store's folder, so that they
			// need no escaping in the mount options.
			if err := os.Chdir(store); err != nil {
				return err
			}
			const layers = "lowerdir=points,upperdir=upper,workdir=work,userxattr"
			return unix.Mount("overlay", build, "overlay", safe, layers)
		}},
		{"mount", func() error { return bindAll(paths) }},
		{"make the mounts read-only", func() error {
			return unix.MountSetattr(-1, build, unix.AT_RECURSIVE, readOnly)
		}},
		{"make the store writable", func() error {
			if store == "" {
				return nil
			}
			// Not recursively: what is mounted in it stays read-only.
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

// Points creates a mount point for each store path in folder: an empty folder or an
// empty file; for a symbolic link the same link.
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

// bindAll binds each store path on its mount point. Symbolic links need no mount.
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
