package launch

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// opened are descriptors of this process, in the order in which bwrap gets
// them. Each is close-on-exec here; ForkExec lifts that for the child.
type opened []int

func (o opened) close() {
	for _, fd := range o {
		unix.Close(fd)
	}
}

// open opens every descriptor of a launch. On an error nothing stays open.
func open(list []Descriptor) (opened, error) {
	var fds opened
	for _, d := range list {
		fd, err := openOne(d)
		if err != nil {
			fds.close()
			return nil, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

func openOne(d Descriptor) (int, error) {
	fd, err := openSource(d)
	if err != nil {
		return -1, err
	}
	if err := checkAbove(fd, d.Above); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func openSource(d Descriptor) (int, error) {
	switch {
	case d.Follows != "":
		return copyFile(d)
	case d.Path == "":
		return memfd(d.Name, d.Data)
	}
	fd, err := openPath(d.Path)
	if err != nil {
		return -1, &diag.Error{Op: "open " + d.Path, Err: noLinks(err), Remedy: openRemedy(err)}
	}
	return fd, nil
}

// openPath opens a path that was made canonical before. A symbolic link on
// the way was therefore put there since, and is refused (openat2(2)).
func openPath(path string) (int, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	return unix.Openat2(unix.AT_FDCWD, path, &how)
}

// checkAbove makes sure that bwrap finds a mount point where it will look for
// one: below a folder that an agent can write it must not create any, as a
// planted link would lead it outside (CVE-2026-87766).
func checkAbove(source int, above Place) error {
	if above.Root == "" {
		return nil
	}
	fd, err := openBeneath(above)
	if err != nil {
		return &diag.Error{
			Op: "check mount point " + above.Root + "/" + above.Path, Err: noLinks(err),
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

func openBeneath(place Place) (int, error) {
	root, err := openPath(place.Root)
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

func noLinks(err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV) {
		return errors.New("a symbolic link is on the way, put there since the path was resolved")
	}
	return err
}

func openRemedy(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "make it, or mark the mount `optional: true`"
	}
	return ""
}

// memfd holds data in memory, sealed, so that nothing is left on a disk and
// nobody changes it afterwards (memfd_create(2)).
func memfd(name string, data []byte) (int, error) {
	fd, err := newMemory()
	if err == nil {
		if err = seal(fd, data); err == nil {
			return fd, nil
		}
		unix.Close(fd)
	}
	return -1, &diag.Error{Op: "make " + name, Err: err}
}

// newMemory is an empty file in memory.
func newMemory() (int, error) {
	return unix.MemfdCreate("claudebox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
}

// seal writes data at the beginning of a file in memory, which then stays as it
// is.
func seal(fd int, data []byte) error {
	if err := fill(fd, data, 0); err != nil {
		return err
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	return err
}

// fill writes data at an offset, leaving the file's position where it is.
func fill(fd int, data []byte, offset int64) error {
	for len(data) > 0 {
		n, err := unix.Pwrite(fd, data, offset)
		if err != nil {
			return err
		}
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}
