package launch

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/within"
	"claudebox/internal/plan"
)

// laid is a mount that claudebox makes itself, and the file on the host that it must cover.
type laid struct {
	Mount
	outside unix.Stat_t
}

// layList returns the mounts that bwrap does not make, see [Launch.lays], each with the file that its destination is
// now.
func (l Launch) layList() (list []laid, err error) {
	for _, m := range l.Mounts {
		if !l.lays(m) {
			continue
		}
		one := laid{Mount: m}
		fd, err := beneath.OpenPath(m.Destination)
		if err == nil {
			err = unix.Fstat(fd, &one.outside)
			unix.Close(fd)
		}
		if err != nil {
			return nil, &diag.Error{Op: "protect " + m.Destination, Err: moved(err), Remedy: openRemedy(err)}
		}
		list = append(list, one)
	}
	return list, nil
}

// prepare limits what a sandbox that waits at its gate can take of what is counted per user, makes mounts in it, and
// checks each.
func prepare(limits []within.Setting, list []laid, child *sandbox) error {
	covers, seen := make([]within.Cover, len(list)), make([]within.Seen, len(list))
	for i, m := range list {
		covers[i] = within.Cover{Path: m.Destination, ReadOnly: m.isReadOnly()}
		if m.Kind == plan.ROData {
			covers[i].With, covers[i].Content, covers[i].Mode = within.File, m.Data, 0o600
		}
	}
	init := proctree.Init(child.pid)
	if init == 0 {
		return within.ErrGone
	}
	if err := within.Prepare(init, limits, covers, seen); err != nil {
		return layFailed(err)
	}
	for i, m := range list {
		if err := m.judge(seen[i]); err != nil {
			return err
		}
	}
	return nil
}

// layFailed returns the error to show if mounts could not be made. [within.ErrGone] is returned unchanged.
func layFailed(err error) error {
	op := "protect the project"
	var e *within.Error
	switch {
	case errors.Is(err, within.ErrGone):
		return err
	case errors.As(err, &e) && strings.HasPrefix(e.Step, "limit "):
		return &diag.Error{Op: "limit what the sandbox takes of your user's", Err: err, Remedy: writableSettings}
	case errors.As(err, &e) && e.Path != "":
		op = "protect " + e.Path
	}
	return &diag.Error{
		Op: op, Err: moved(err),
		Remedy: "start again; if it stays so, report it with the output of `claudebox check`",
	}
}

// judge returns an error unless the mount covers the expected file, shows the expected
// one, and is read-only if it must be.
func (m laid) judge(seen within.Seen) error {
	want := m.outside
	if m.Kind == plan.ROData {
		want = seen.Made
	}
	if same(seen.Under, m.outside) && same(seen.Path, want) &&
		(!m.isReadOnly() || seen.System.Flags&unix.ST_RDONLY != 0) {
		return nil
	}
	exchanged := errors.New("it was exchanged while the sandbox was set up")
	return diag.Wrap("protect "+m.Destination, Again(exchanged),
		diag.StartAgain)
}

// same reports whether two statuses are of the same file.
func same(a, b unix.Stat_t) bool { return a.Dev == b.Dev && a.Ino == b.Ino }
