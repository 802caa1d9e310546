package launch

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/spawn"
)

// opened are open descriptors of this process, in the order in which bwrap gets them.
// Each is close-on-exec here; ForkExec clears that for the child.
type opened []int

func (o opened) close() {
	for _, fd := range o {
		unix.Close(fd)
	}
}

// open opens every descriptor of a launch. On an error nothing stays open.
func (r Runner) open(list []Descriptor) (opened, error) {
	var fds opened
	way := r.Open
	if way == nil {
		way = beneath.OpenPath
	}
	for _, d := range list {
		fd, err := openOne(d, way)
		if err != nil {
			fds.close()
			return nil, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// openOne opens a descriptor of a launch, and checks its mount point.
func openOne(d Descriptor, way func(path string) (int, error)) (fd int, err error) {
	switch {
	case d.Follows != "":
		fd, err = copyFile(d)
	case d.Path == "":
		fd, err = memfd(d.Name, d.Data)
	default:
		if fd, err = way(d.Path); err != nil {
			err = &diag.Error{Op: "open " + d.Path, Err: moved(err), Remedy: openRemedy(err)}
		}
	}
	if err != nil {
		return -1, err
	}
	if err := checkPoint(fd, d.Point, way); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// checkPoint returns an error unless the mount point above exists, as a folder if source
// is one; a zero Place is fine. bwrap would create a missing mount point, but in a folder
// that an agent can write a planted link could lead it outside (CVE-2026-87766).
func checkPoint(source int, above Place, way func(path string) (int, error)) error {
	if above.Root == "" {
		return nil
	}
	fd, err := openBeneath(above, way)
	if err != nil {
		return &diag.Error{
			Op: "check mount point " + above.Root + "/" + above.Path, Err: moved(err),
			Remedy: "make it, as the same kind of file as what is mounted there, or mount elsewhere",
		}
	}
	defer unix.Close(fd)
	var want, have unix.Stat_t
	if err := errors.Join(unix.Fstat(source, &want), unix.Fstat(fd, &have)); err != nil {
		return &diag.Error{Op: "check mount point " + above.Path, Err: err}
	}
	if isDir(want) != isDir(have) {
		return diag.Errorf("check mount point "+above.Root+"/"+above.Path, "mount elsewhere",
			"a file and a folder cannot be mounted over each other")
	}
	return nil
}

func isDir(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

func openBeneath(place Place, way func(path string) (int, error)) (int, error) {
	root, err := way(place.Root)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	return unix.Openat2(root, place.Path, &how)
}

// ErrAgain is matched by the error of a launch of which nothing has run, and that the next try may not meet: another
// session, or its agent, has just changed something.
var ErrAgain = errors.New("something changed meanwhile")

// Again marks an error so that [ErrAgain] matches it.
func Again(err error) error { return again{err} }

type again struct{ error }

func (a again) Unwrap() error { return a.error }

func (again) Is(target error) bool { return target == ErrAgain }

// moved returns the error of a path that was there a moment ago.
func moved(err error) error {
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return Again(errors.New("a symbolic link is on the way, put there since the path was resolved"))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return Again(err)
	}
	return err
}

func openRemedy(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "make it, or mark the mount `optional: true`"
	}
	return ""
}

// memfd is [spawn.InMemory]; its error says what could not be made.
func memfd(name string, data []byte) (int, error) {
	fd, err := spawn.InMemory(data)
	if err != nil {
		return -1, &diag.Error{Op: "make " + name, Err: err}
	}
	return fd, nil
}

// isReplaced reports whether a path that was opened before a sandbox began is not there any more, or was made anew:
// bwrap mounts it by its name, and refuses another file of that name.
func isReplaced(path string, began time.Time) bool {
	const before = time.Second // it was opened earlier, and the times of files may lag behind the clock
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	if err != nil {
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
	}
	return st.Mask&unix.STATX_BTIME != 0 && time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).After(began.Add(-before))
}
