package handover

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// swaps are the new indexes that [applyScript] has written beside those of some checkouts. They take their place
// without git's lock, at which the git of who works there would fail: two names are exchanged in one step, and then it
// is looked whether another one was about to write. If so, the hand-over is made again, not the other one's command.
type swaps struct {
	list   []swap
	answer chan string // for the script's git, which has prepared the references
	err    error
}

// swap is the index of one checkout.
type swap struct {
	change TreeChange
	folder *os.File    // its git folder
	was    unix.Stat_t // the index when the script began; zero: none
}

// freshIndex is what a new index is called beside the one whose place it takes.
const freshIndex = "index.claudebox"

// errReplaced is [errInUse] of an index that was replaced, or locked, while a script made the next one.
var errReplaced = fmt.Errorf("its index: %w", errInUse)

// swapsOf opens the git folders of what is to be changed. The caller closes them.
func (s side) swapsOf(trees []TreeChange) (*swaps, error) {
	all := &swaps{answer: make(chan string, 1)}
	root := s.place.Outer
	if s.boxed {
		root = s.place.Inner()
	}
	for _, t := range trees {
		if !t.moves() {
			continue
		}
		top, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return all, &os.PathError{Op: "open", Path: root, Err: err}
		}
		at, err := unix.Openat2(top, t.Rel, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
		})
		unix.Close(top)
		if err != nil {
			return all, &os.PathError{Op: "open", Path: path.Join(root, t.Rel), Err: err}
		}
		w := swap{change: t, folder: os.NewFile(uintptr(at), t.Rel)}
		w.was = w.look("index")
		all.list = append(all.list, w)
	}
	return all, nil
}

func (s *swaps) close() {
	for _, w := range s.list {
		w.folder.Close()
	}
}

// Write takes what a script prints, see ReadFrom.
func (s *swaps) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

// ReadFrom reads what a script prints until it ends. When its git has prepared the references, the indexes are
// exchanged, and the answer is whether the references are to follow.
func (s *swaps) ReadFrom(script io.Reader) (int64, error) {
	text := bufio.NewReader(io.LimitReader(script, mostAnswer))
	for _, w := range s.list {
		head, _ := until(text, separator)
		index, err := until(text, separator)
		if err == nil && s.err == nil && !w.change.fits(head, Index(index)) {
			s.err = errInUse
		}
	}
	for asked := false; ; {
		line, err := text.ReadString('\n')
		if err != nil {
			if !asked {
				close(s.answer)
			}
			return 0, nil
		}
		if line == "prepare: ok\n" && !asked {
			asked = true
			s.answer <- s.exchange()
			close(s.answer)
		}
	}
}

// until reads up to a separator, and returns what stands before it.
func until(text *bufio.Reader, end string) (string, error) {
	var all strings.Builder
	for {
		part, err := text.ReadString(end[len(end)-1])
		all.WriteString(part)
		if before, is := strings.CutSuffix(all.String(), end); is || err != nil {
			return before, err
		}
	}
}

// exchange exchanges the indexes, and returns what the script's git is to do.
func (s *swaps) exchange() string {
	for _, w := range s.list {
		if s.err == nil {
			s.err = w.exchange()
		}
	}
	if s.err != nil {
		return "no\x00" // at which git ends, and gives its locks back
	}
	return "commit\x00"
}

// fits reports whether HEAD, and what an index has at the paths that change, are as they were read. Whatever else the
// other one has staged meanwhile stays in the new index.
func (c TreeChange) fits(head string, index Index) bool {
	now, was, fits := index.at(c.Stage), c.Expect.Index.at(c.Stage), true
	for _, e := range c.Stage {
		fits = fits && now[e.Path] == was[e.Path]
	}
	return fits && strings.TrimSuffix(head, "\n") == strings.TrimPrefix(c.Expect.Head, "ref: ")
}

// Read returns the answer, once there is one.
func (s *swaps) Read(p []byte) (int, error) {
	text, is := <-s.answer
	if !is {
		return 0, io.EOF
	}
	return copy(p, text), nil
}

// exchange puts the new index, if there is one, in the place of the one that the script has read. It returns
// [errReplaced] where that has been replaced, or another one may have read it and be about to replace the new one: who
// writes an index has locked it before it reads. What they then make of it, the next hand-over reads.
func (w swap) exchange() error {
	if w.was.Ino != 0 {
		// By this time git knows which files may have changed in the tick in which they were staged
		// (Documentation/technical/racy-git.txt). If it fails the next step does, too.
		times := []unix.Timespec{w.was.Mtim, w.was.Mtim}
		_ = unix.UtimesNanoAt(int(w.folder.Fd()), freshIndex, times, unix.AT_SYMLINK_NOFOLLOW)
	}
	fresh := w.look(freshIndex)
	if w.isLocked() || !same(w.look("index"), w.was) {
		return errReplaced
	}
	if fresh.Ino == 0 {
		return nil
	}
	how := uint(unix.RENAME_EXCHANGE)
	if w.was.Ino == 0 {
		how = unix.RENAME_NOREPLACE
	}
	switch err := w.rename(how); {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EEXIST):
		return errReplaced
	case err != nil: // as the file system cannot
		return w.replace()
	}
	if !same(w.look(freshIndex), w.was) { // replaced the very moment before
		_ = w.rename(unix.RENAME_EXCHANGE)
		return errReplaced
	}
	if w.isLocked() || !same(w.look("index"), fresh) {
		return errReplaced
	}
	return nil
}

// replace is exchange where the file system has none: under git's lock, for some microseconds.
func (w swap) replace() error {
	at := int(w.folder.Fd())
	lock, err := unix.Openat(at, "index.lock", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EEXIST) {
		return errReplaced
	}
	if err != nil {
		return os.NewSyscallError("lock the index", err)
	}
	defer unix.Unlinkat(at, "index.lock", 0)
	unix.Close(lock)
	if !same(w.look("index"), w.was) {
		return errReplaced
	}
	return os.NewSyscallError("rename the index", w.rename(0))
}

func (w swap) rename(how uint) error {
	at := int(w.folder.Fd())
	return unix.Renameat2(at, freshIndex, at, "index", how)
}

// look returns the status of a file of the folder; zero: there is none.
func (w swap) look(name string) (st unix.Stat_t) {
	if unix.Fstatat(int(w.folder.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return unix.Stat_t{}
	}
	return st
}

func (w swap) isLocked() bool { return w.look("index.lock").Ino != 0 }

// same reports whether two statuses are of one file with one content: who changes an index writes a new file.
func same(a, b unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Mtim == b.Mtim
}
