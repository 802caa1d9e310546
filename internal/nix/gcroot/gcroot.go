package gcroot

import (
	"context"
	"crypto/sha1" // the daemon's own choice; it protects nothing here
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nix-community/go-nix/pkg/nixbase32"
	"golang.org/x/sys/unix"
)

// AutoDir is where the daemon keeps a link to each registered indirect root,
// named by a hash of the root's path (addIndirectRoot in Nix's
// local-store.cc, the same since 1.0).
const AutoDir = "/nix/var/nix/gcroots/auto"

// unused is how long a set may go without a launch before it is removed; the next
// garbage collection then takes its paths. A plan that still needs them
// fetches or builds them again.
const unused = 60 * 24 * time.Hour

// Folder is where one user's sets of links are kept.
type Folder struct {
	Dir  string // absolute; its parent exists
	Auto string // where the daemon links to its roots: [AutoDir]
}

// Registrar registers links with the daemon as indirect roots;
// [claudebox/internal/nix/nixdaemon.Client] is one.
type Registrar interface {
	AddIndirectRoots(ctx context.Context, links []string) error
}

// Set is the folder of a plan's links. While a process has it open, no other removes it.
type Set struct {
	dir    string
	folder *os.File // the shared lock on it is what holds the set
}

// Close releases the set's lock. The links stay.
func (s *Set) Close() error { return s.folder.Close() }

// owner is the name of the link in a set that points to the plan file the set belongs to.
const owner = "plan"

// setName is different for each plan file and list of paths: a set that a session holds is never changed.
func setName(of string, paths []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%q", of, paths))
	return hex.EncodeToString(sum[:16])
}

// Hold opens and locks the set of the plan file of, if it certainly roots all of the
// paths: each path has its link in the set, and the daemon has that link in its list.
// It returns nil, false otherwise, also if any of this cannot be read.
func (f Folder) Hold(of string, paths []string) (*Set, bool) {
	s, err := f.open(setName(of, paths), unix.LOCK_SH)
	if err != nil {
		return nil, false
	}
	for _, path := range paths {
		link := s.link(path)
		to, _ := os.Readlink(link)
		known, _ := os.Readlink(filepath.Join(f.Auto, autoName(link))) // the daemon's own link to our link
		if to != path || known != link {
			s.Close()
			return nil, false
		}
	}
	s.touch()
	return s, true
}

// Make makes a set that roots the paths, and holds it. The paths must be valid,
// and something else must keep them until Make returns. The set belongs to the
// plan file of and replaces any earlier set of that file. Make also sweeps sets
// that are no longer needed.
func (f Folder) Make(ctx context.Context, daemon Registrar, of string, paths []string) (*Set, error) {
	name := setName(of, paths)
	for _, dir := range []string{f.Dir, filepath.Join(f.Dir, name)} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	s, err := f.open(name, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	// Links are made before they are registered: the collector drops a registered
	// root whose link does not exist.
	err = relink(of, filepath.Join(s.dir, owner))
	var links []string
	for i := 0; i < len(paths) && err == nil; i++ {
		links = append(links, s.link(paths[i]))
		err = relink(paths[i], links[i])
	}
	if err == nil {
		err = daemon.AddIndirectRoots(ctx, links)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.touch()
	f.sweep(time.Now(), of) // it skips this set, which is locked
	return s, nil
}

// open locks a set without waiting: it fails while another process removes unused sets. With LOCK_EX it fails while a
// session holds the set, too.
func (f Folder) open(name string, how int) (*Set, error) {
	dir := filepath.Join(f.Dir, name)
	folder, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(folder.Fd()), how|unix.LOCK_NB); err != nil {
		folder.Close()
		return nil, err
	}
	// Between open and flock another process may have swept this folder, and made a new one of its name.
	var st unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &st); err != nil || st.Nlink == 0 {
		folder.Close()
		return nil, fmt.Errorf("open %s: %w", dir, fs.ErrNotExist)
	}
	return &Set{dir: dir, folder: folder}, nil
}

// link is where the set keeps the link to a store path.
func (s *Set) link(path string) string { return filepath.Join(s.dir, filepath.Base(path)) }

func autoName(link string) string {
	sum := sha1.Sum([]byte(link))
	return nixbase32.EncodeToString(sum[:])
}

// touch marks the set as used now, at most once a day.
func (s *Set) touch() {
	var st unix.Stat_t
	if unix.Fstat(int(s.folder.Fd()), &st) == nil && time.Since(time.Unix(st.Mtim.Unix())) > 24*time.Hour {
		now := time.Now()
		_ = os.Chtimes(s.dir, now, now) // at worst it is swept early
	}
}

// relink makes link a symlink to to, and replaces one that points elsewhere.
func relink(to, link string) error {
	old, err := os.Readlink(link)
	if err == nil && old == to {
		return nil
	}
	// A link that did not exist is not removed: another process may have made it
	// by now, and hold the set.
	if !errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Symlink(to, link); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// sweep removes each set that no session holds and that belongs to the file named of, or whose file is gone, or that is
// unused for 60 days. What cannot be removed now is left for the next time.
func (f Folder) sweep(now time.Time, of string) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		s, err := f.open(entry.Name(), unix.LOCK_EX)
		if err != nil {
			continue
		}
		if s.stale(now, of) {
			os.RemoveAll(s.dir)
		}
		s.Close()
	}
}

func (s *Set) stale(now time.Time, of string) bool {
	link := filepath.Join(s.dir, owner)
	if to, err := os.Readlink(link); err == nil && to == of {
		return true
	}
	info, err := s.folder.Stat()
	if err != nil || now.Sub(info.ModTime()) > unused {
		return err == nil
	}
	_, err = os.Stat(link)
	return errors.Is(err, fs.ErrNotExist)
}
