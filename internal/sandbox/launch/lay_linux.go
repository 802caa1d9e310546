package launch

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/within"
	"claudebox/internal/plan"
)

// CanLay reports whether this kernel has all the calls that laying mounts needs:
// the youngest is mount_setattr(2), of Linux 5.12. Here it may only refuse.
func CanLay() bool {
	return !errors.Is(unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}), unix.ENOSYS)
}

// laid is a mount that is laid, and what is seen at its place.
type laid struct {
	Mount
	outside, before, after unix.Stat_t
	made                   unix.Stat_t // what covers the file, where it does not do so itself
	system                 unix.Statfs_t
	cover                  within.File
}

// laidMounts are those of a launch.
type laidMounts []*laid

// layMounts makes the mounts over what is there in a sandbox that waits.
func (l Launch) layMounts(child *sandbox) error {
	list, err := l.layList()
	if err == nil {
		err = list.lay(child)
	}
	return err
}

// layList notes what is to lie under each mount.
func (l Launch) layList() (laidMounts, error) {
	var list laidMounts
	for _, m := range l.Mounts {
		if !l.lays(m) {
			continue
		}
		one := &laid{Mount: m}
		if err := one.lookOutside(); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// lay makes the mounts, and looks at each of them.
func (list laidMounts) lay(child *sandbox) error {
	script := list.script()
	if err := child.gate.reached(); err != nil {
		return &diag.Error{Op: "wait for bwrap", Err: err}
	}
	init := proctree.Init(child.pid)
	if init == 0 {
		return within.ErrGone
	}
	if err := within.Run(init, script); err != nil {
		return layFailed(err)
	}
	for _, m := range list {
		if err := m.judge(); err != nil {
			return err
		}
	}
	return nil
}

// layFailed says what could not be protected.
func layFailed(err error) error {
	op := "protect the project"
	var e *within.Error
	switch {
	case errors.Is(err, within.ErrGone):
		return err
	case errors.As(err, &e) && e.About != "":
		op, err = "protect "+e.About, &within.Error{Step: e.Step, Err: e.Err}
	}
	return &diag.Error{
		Op: op, Err: err,
		Remedy: "start again; if it stays so, report it with the output of `claudebox check`",
	}
}

// lookOutside notes what is to lie under the mount.
func (m *laid) lookOutside() error {
	fd, err := openPath(m.Destination)
	if err == nil {
		err = unix.Fstat(fd, &m.outside)
		unix.Close(fd)
	}
	if err != nil {
		return &diag.Error{Op: "protect " + m.Destination, Err: noLinks(err), Remedy: openRemedy(err)}
	}
	return nil
}

// script makes what covers files, lays all mounts, and then looks at each
// place by its path once more: another session may exchange a folder until it is
// pinned.
func (list laidMounts) script() *within.Script {
	var s within.Script
	s.Furnish()
	for i, m := range list {
		if m.overItself() {
			continue
		}
		s.About(m.Destination)
		m.cover = s.Made("bindfile"+strconv.Itoa(i), m.Data, 0o600, &m.made)
	}
	s.Clear()
	for _, m := range list {
		m.lay(&s)
	}
	for _, m := range list {
		s.About(m.Destination)
		f := s.Open(m.Destination)
		s.Stat(f, &m.after)
		s.StatFS(f, &m.system)
		s.Close(f)
	}
	return &s
}

// overItself reports whether the file itself is what is seen.
func (m *laid) overItself() bool { return m.Kind != plan.ROData }

func (m *laid) lay(s *within.Script) {
	s.About(m.Destination)
	at := s.Open(m.Destination)
	s.Stat(at, &m.before)
	mount := m.cover
	if m.overItself() {
		mount = s.Bind(at)
	}
	if m.isReadOnly() {
		s.ReadOnly(mount)
	}
	s.Lay(mount, at)
	s.Close(at, mount)
}

// judge reports whether the mount lies where it should, and is what it should be.
func (m *laid) judge() error {
	want := m.outside
	if !m.overItself() {
		want = m.made
	}
	if same(m.before, m.outside) && same(m.after, want) && (!m.isReadOnly() || m.system.Flags&unix.ST_RDONLY != 0) {
		return nil
	}
	return diag.Errorf("protect "+m.Destination, "start again",
		"it was exchanged while the sandbox was set up: another session, or a program of yours, works there")
}

func same(a, b unix.Stat_t) bool { return a.Dev == b.Dev && a.Ino == b.Ino }
