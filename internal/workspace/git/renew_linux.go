package git

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
)

// Staged is what indexes held before a session: a hash of each entry, with what git noted there of the file. Of the
// zero value nothing is known. It is sorted.
type Staged []uint64

// stagedSeed makes that nobody can tell two entries with the same hash.
var stagedSeed = maphash.MakeSeed()

// stagedLimit is how many entries are known. Those of further indexes are not.
const stagedLimit = 2_000_000

// Staged reads the indexes that a look before the session saw, while it runs already: one counts only if it is still
// the same file. It stops when ended is done.
func (s Snapshot) Staged(ended context.Context) Staged {
	var staged Staged
	for _, f := range s.Folders {
		if e := f.Entry("index"); e != nil && ended.Err() == nil && len(staged) < stagedLimit {
			staged = append(staged, stagedIn(f.Path, *e)...)
		}
	}
	slices.Sort(staged)
	return staged
}

// stagedIn returns what one index held. An entry whose file was written in the second in which the index was, or later,
// does not count: git itself compares such a file by its content (racy-git in git's documentation).
func stagedIn(folder string, before Entry) (staged Staged) {
	at, err := beneath.Open(folder)
	if err != nil {
		return nil
	}
	defer at.Close()
	index, err := at.Read(before.Name, indexLimit)
	var st unix.Stat_t
	if err != nil || unix.Fstatat(at.FD(), before.Name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil ||
		at.StampOf(before.Name, &st) != before.Stamp { // after the reading: what changed meanwhile shows
		return nil
	}
	for _, size := range []int{sha1.Size, sha256.Size} {
		if _, ok := CheckIndex(index, size); !ok {
			continue
		}
		for sc, count := scan(index, size); count > 0 && sc.next(); count-- {
			if int64(binary.BigEndian.Uint32(sc.head[mtimeAt:])) < st.Mtim.Sec {
				staged = append(staged, sc.hash(folder))
			}
		}
		break
	}
	return staged
}

// hash returns the hash of an entry of the index in a git folder.
func (s *scanner) hash(folder string) uint64 {
	var h maphash.Hash
	h.SetSeed(stagedSeed)
	for _, part := range [][]byte{[]byte(folder), s.Name, s.head} {
		h.Write(part)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// renew makes of an index, which has to be legal, one that says nothing by itself that git would not look up: it has no
// caches of trees, of untracked files or of a monitor, and of each file that was not staged like that before the
// session it does not say when that was written, so that git reads the file.
func (s Staged) renew(folder string, index []byte, hashSize int) []byte {
	sc, count := scan(index, hashSize)
	for ; count > 0 && sc.next(); count-- {
		if _, known := slices.BinarySearch(s, sc.hash(folder)); !known {
			clear(sc.head[:modeAt])
			clear(sc.head[modeAt+4 : statSize])
		}
	}
	kept := index[:len(index)-len(sc.rest)]
	for rest := sc.rest; len(rest) > hashSize; {
		size := 8 + binary.BigEndian.Uint32(rest[4:])
		switch string(rest[:4]) {
		case "link", "sdir", "REUC": // what is left to other files; how conflicts were before they were resolved
			kept = append(kept, rest[:size]...) // never beyond what is read
		}
		rest = rest[size:]
	}
	if hashSize == sha1.Size {
		sum := sha1.Sum(kept) //nolint:gosec // git's
		return append(kept, sum[:]...)
	}
	sum := sha256.Sum256(kept)
	return append(kept, sum[:]...)
}

// Renew writes all indexes anew that were changed since the look before. Git takes what an index says of its files and
// trees for its own work: `git status` would not show a file that an agent changed, and `git commit` would take a tree
// along that nobody sees. It comes after the repairs, which take away locks. Of an index that is locked, and that may
// be left to another session, it leaves everything.
func (m *Mender) Renew(after Snapshot, staged Staged, left func(at string) bool) error {
	var faults []error
	for _, f := range after.Folders {
		e, at := f.Entry("index"), path.Join(f.Rel, "index")
		if e == nil || !e.read || e.hashSize == 0 {
			continue
		}
		err := m.renew(f, at, e.hashSize, staged)
		if err != nil && !(errors.Is(err, fs.ErrExist) && left(m.Root.Join(at))) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// renew does so with one index, as git does: what writes to index.lock is alone.
func (m *Mender) renew(f Folder, at string, hashSize int, staged Staged) (err error) {
	what, err := m.Root.Look(at)
	if err != nil || what.Kind != beneath.Regular { // it went with the folder that it was in
		return err
	}
	lock := at + ".lock"
	if err := m.allowed(f.Rel, func() error { return m.Root.Create(lock, nil, 0o600) }); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = m.Root.Remove(lock) // there is an error already
		}
	}()
	var index []byte
	read := func() (err error) { index, err = m.Root.Read(at, indexLimit); return err }
	if err := (reader{m.Root, true}).try(at, 0o644, read); err != nil {
		return err
	}
	if _, ok := CheckIndex(index, hashSize); !ok {
		return fmt.Errorf("%s was changed meanwhile", m.Root.Join(at))
	}
	if err := m.Root.Rewrite(lock, staged.renew(f.Path, index, hashSize), 0o600); err != nil {
		return err
	}
	if err := m.Root.Chmod(lock, what.Perm&0o666|0o600); err != nil {
		return err
	}
	return m.Root.Rename(lock, at)
}
