package inside

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/flock"
	"claudebox/internal/nix/storepath"
)

// The contents of an inner store's folder. The agent can reach none of it, except var and
// what a session writes into upper through the overlay.
const (
	upperName = "upper" // the overlay's upper layer, over the host's store
	workName  = "work"  // the overlay's work folder, used by the kernel
	varName   = "var"   // the database of the Nix inside
	knownName = "known" // the list of the host's paths that the database relies on
	// pointsName holds empty files and folders that closures are mounted on.
	pointsName = "points"
)

// Names of inner stores' folders.
const (
	mainName    = "main"    // kept between sessions
	extraPrefix = "extra-"  // of a session that runs beside another one
	gonePrefix  = "remove-" // to be removed
)

// Slot is the folder of an inner store, held by one session. Two overlays must not share
// an upper layer: the kernel does not define what happens then.
type Slot struct {
	Dir   string
	Known *os.File // open for appending
	// Notes are messages for the user.
	Notes []string

	extra bool
	lock  *os.File
}

// Choose returns the folder that a session beginning now would use, below parent, which
// need not exist. It is extra if another session holds the main one. Choose changes nothing.
func Choose(parent string) (dir string, extra bool) {
	dir = filepath.Join(parent, mainName)
	lock, err := hold(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		closeFile(lock)
		return dir, false
	}
	return filepath.Join(parent, extraPrefix+strings.ToLower(rand.Text()[:8])), true
}

// Upper is the folder of the paths that a sandbox adds to the store.
func Upper(dir string) string { return filepath.Join(dir, upperName) }

// Var is the folder that a sandbox sees as /nix/var.
func Var(dir string) string { return filepath.Join(dir, varName) }

// SocketPath is the socket on which the filter of the store listens.
func SocketPath(dir string) string { return filepath.Join(dir, Socket) }

// ErrBusy means that another session holds a folder.
var ErrBusy = errors.New("another session uses it")

// hold opens a folder and locks it for this process. The error is [ErrBusy] if another session holds it.
func hold(dir string) (*os.File, error) { return flock.Folder(dir, ErrBusy) }

// makeAndHold creates a folder if need be, and locks it. Before the lock is taken, another
// session may mistake the new folder for one that a killed session left, and move it aside:
// then it is created again.
func makeAndHold(dir string) (*os.File, error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		f, err := hold(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		held, err := f.Stat()
		there, fault := os.Lstat(dir)
		if err == nil && fault == nil && os.SameFile(held, there) {
			return f, nil
		}
		f.Close()
	}
}

func closeFile(f *os.File) {
	if f != nil {
		f.Close()
	}
}

// Open prepares the folder that [Choose] returned for a session, and holds it.
// The error is [ErrBusy] when another session was faster.
func Open(dir string) (*Slot, error) {
	s := &Slot{Dir: dir, extra: strings.HasPrefix(filepath.Base(dir), extraPrefix)}
	err := s.open()
	if err != nil {
		s.Close()
		if errors.Is(err, ErrBusy) {
			return nil, err
		}
		return nil, &diag.Error{
			Op: "prepare the Nix store inside", Err: err,
			Remedy: "look at " + dir + ", or remove it",
		}
	}
	return s, nil
}

func (s *Slot) open() (err error) {
	parent := filepath.Dir(s.Dir)
	if s.lock, err = makeAndHold(s.Dir); err != nil {
		return err
	}
	left := leftovers(parent)
	go removeAll(left)
	if err := s.fill(); err != nil {
		return err
	}
	why, err := s.lost()
	if err != nil {
		return err
	}
	if why != "" {
		s.Notes = append(s.Notes, "Nix inside begins anew: "+why)
		if err := s.empty(); err != nil {
			return err
		}
	}
	return s.lay()
}

// fill creates the folders that are missing, and opens the list of known paths.
func (s *Slot) fill() (err error) {
	for _, name := range []string{upperName, workName, varName, pointsName} {
		path := filepath.Join(s.Dir, name)
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := os.Chmod(path, 0o755); err != nil { // whatever the caller's umask, and whatever the agent changed
			return err
		}
	}
	closeFile(s.Known)
	s.Known, err = os.OpenFile(filepath.Join(s.Dir, knownName), os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW,
		0o600)
	return err
}

// lost returns why the inner store cannot be used any longer; empty if it can be. The reasons:
// a path of the host that its database may know no longer exists, or it knows more of them
// than a session may hold, or the agent put something else in the database's place. lost also cuts an unfinished last
// line off the list.
func (s *Slot) lost() (why string, err error) {
	count, size := 0, int64(0)
	for path, err := range Known(s.Known) {
		if err != nil {
			return "what it relied on was collected on the host, or the list of that is damaged", nil
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path + " was collected on the host, and what was built inside may rely on it", nil
		} else if err != nil {
			return "", err
		}
		count, size = count+1, size+int64(len(path))+1
	}
	if count > maxKnown-atOnce {
		return fmt.Sprintf("it relied on %d store paths of the host, as many as a session may ask for", count), nil
	}
	if !s.isWhole() {
		return "what lies in the place of its database is none", nil
	}
	return "", s.Known.Truncate(size)
}

// isWhole reports whether the database is of plain files, if there is one. Nix would wait for the other end of a pipe
// for ever, and read a device without end.
func (s *Slot) isWhole() bool {
	const database, most = "nix/db", 100
	state, err := beneath.Open(Var(s.Dir))
	if err != nil {
		return false
	}
	defer state.Close()
	names, err := state.Names(database, most)
	for _, name := range names {
		if what, err := state.Look(database + "/" + name); err != nil || what.Kind != beneath.Regular {
			return false
		}
	}
	if slices.Contains(names, "schema") { // a number, which is read whole
		_, err = state.Read(database+"/schema", most)
	}
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// empty moves everything the inner store contains aside, to be removed, and starts with new folders.
func (s *Slot) empty() error {
	aside := filepath.Join(filepath.Dir(s.Dir), gonePrefix+rand.Text())
	if err := os.Mkdir(aside, 0o700); err != nil {
		return err
	}
	for _, name := range []string{upperName, workName, varName, knownName} {
		if err := os.Rename(filepath.Join(s.Dir, name), filepath.Join(aside, name)); err != nil {
			return err
		}
	}
	if err := s.fill(); err != nil {
		return err
	}
	go beneath.RemoveAll(aside)
	return nil
}

// lay makes sure that the upper layer only adds to the host's store and changes
// nothing of it. The agent may have made folders and whiteouts there under names
// that the host's store has: a folder is merged with that of the same name, and a whiteout
// hides it. A path that the host has by now as well is moved out, too.
func (s *Slot) lay() error {
	upper := filepath.Join(s.Dir, upperName)
	if _, err := unix.Lgetxattr(upper, "user.overlay.opaque", nil); err == nil { // it hides all that is below
		return s.empty()
	}
	names, err := readNames(upper)
	if err != nil {
		return err
	}
	aside := ""
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(storepath.Dir, name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if aside == "" {
			aside = filepath.Join(filepath.Dir(s.Dir), gonePrefix+rand.Text())
			if err := os.Mkdir(aside, 0o700); err != nil {
				return err
			}
		}
		if err := moveAway(upper, name, aside); err != nil {
			return err
		}
	}
	if aside != "" {
		go beneath.RemoveAll(aside)
	}
	return nil
}

// moveAway moves an entry of the folder from to the folder to. Moving a folder changes its "..", so
// a read-only one is made writable first.
func moveAway(from, name, to string) error {
	path := filepath.Join(from, name)
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if err := os.Chmod(path, 0o700); err != nil {
			return err
		}
	}
	return os.Rename(path, filepath.Join(to, name))
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// Lay calls make to create mount points in the lower layer for those of the closure's paths that
// have none, and removes the others. The closure is sorted, and is all that the sandbox sees
// of the host's store.
func (s *Slot) Lay(closure []string, make func(folder string, paths []string) error) error {
	points := filepath.Join(s.Dir, pointsName)
	have, err := readNames(points)
	if err != nil {
		return err
	}
	slices.Sort(have)
	var missing []string
	for _, path := range closure {
		if _, made := slices.BinarySearch(have, filepath.Base(path)); !made {
			missing = append(missing, path)
		}
	}
	for _, name := range have {
		if _, wanted := slices.BinarySearch(closure, filepath.Join(storepath.Dir, name)); !wanted {
			if err := os.Remove(filepath.Join(points, name)); err != nil {
				return err
			}
		}
	}
	return make(points, missing)
}

// Close releases the folder. A folder of a session that ran beside another one is removed.
func (s *Slot) Close() {
	closeFile(s.Known)
	if s.lock != nil && s.extra {
		_ = beneath.RemoveAll(s.Dir)
	}
	closeFile(s.lock)
	s.lock, s.Known = nil, nil
}

// leftovers returns the folders to remove: those of sessions that were killed, and those put aside.
// A folder that could be mistaken for a running session's is put aside first.
func leftovers(parent string) (paths []string) {
	names, err := readNames(parent)
	if err != nil {
		return nil
	}
	for _, name := range names {
		path := filepath.Join(parent, name)
		if strings.HasPrefix(name, extraPrefix) {
			lock, err := hold(path)
			if err != nil {
				continue
			}
			aside := filepath.Join(parent, gonePrefix+rand.Text())
			err = os.Rename(path, aside)
			lock.Close()
			if err != nil {
				continue
			}
			path = aside
		} else if !strings.HasPrefix(name, gonePrefix) {
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

func removeAll(paths []string) {
	for _, path := range paths {
		_ = beneath.RemoveAll(path) // a later session tries again to remove the rest
	}
}
