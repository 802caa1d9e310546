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

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// KnownEntries are the entries that indexes held before a session: a hash of each, with the size, times and so on that
// git keeps of the file there. The hashes are sorted. The zero value knows no entry.
type KnownEntries []uint64

// entrySeed is random, so that an agent cannot choose two entries with the same hash.
var entrySeed = maphash.MakeSeed()

// entryLimit is at how many known entries no further index is read.
const entryLimit = 2_000_000

// ReadIndexes reads the indexes that [Gather] saw before the session. It is called when the session already runs, so an
// index counts only if it is still the same file. It stops when ended is done.
func (s Snapshot) ReadIndexes(ended context.Context) KnownEntries {
	var known KnownEntries
	for _, f := range s.Folders {
		if e := f.Entry("index"); e != nil && ended.Err() == nil && len(known) < entryLimit {
			known = append(known, entriesOf(f.Path, *e)...)
		}
	}
	slices.Sort(known)
	return known
}

// entriesOf returns what one index held. An entry whose file was written in the second in which the index was, or
// later, does not count: git itself compares such a file by its content (racy-git in git's documentation).
func entriesOf(folder string, before Entry) (known KnownEntries) {
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
				known = append(known, sc.hash(folder))
			}
		}
		break
	}
	return known
}

// hash returns the hash of an entry of the index in a git folder.
func (s *scanner) hash(folder string) uint64 {
	var h maphash.Hash
	h.SetSeed(entrySeed)
	for _, part := range [][]byte{[]byte(folder), s.Name, s.head} {
		h.Write(part)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// renew returns the index without anything that git would believe without looking itself. The index must have passed
// [CheckIndex]. The caches of trees, of untracked files and of a file monitor go. Of each entry that is not known, all
// that says when and how the file was written is cleared, so that git reads the file.
func (s KnownEntries) renew(folder string, index []byte, hashSize int) []byte {
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
		case "link", "sdir", "REUC": // of a split index, a sparse one, and of resolved conflicts
			kept = append(kept, rest[:size]...) // in place: kept never gets longer than what was read already
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

// Renew writes each legal index anew that was changed since the session began. Git takes what an index says of its
// files and trees for its own work: `git status` would not show a file that an agent changed, and `git commit` would
// take a tree along that nobody sees. It is called after the repairs, which remove locks. An index that is still locked
// is an error, unless left says that another session may hold the lock: then it stays as it is.
func (m *Mender) Renew(after Snapshot, known KnownEntries, left func(at string) bool) error {
	var faults []error
	for _, f := range after.Folders {
		e, at := f.Entry("index"), path.Join(f.Rel, "index")
		if e == nil || !e.read || e.hashSize == 0 {
			continue
		}
		err := m.renew(f, at, e.hashSize, known)
		if err != nil && !(errors.Is(err, fs.ErrExist) && left(m.Root.Join(at))) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// renew does this for one index, as git does: who has created index.lock is the only one to write.
func (m *Mender) renew(f Folder, at string, hashSize int, known KnownEntries) (err error) {
	what, err := m.Root.Look(at)
	if err != nil || what.Kind != beneath.Regular { // it is gone: a repair moved its folder away
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
		return fmt.Errorf("%s was changed meanwhile", diag.Name(m.Root.Join(at)))
	}
	if err := m.Root.Rewrite(lock, known.renew(f.Path, index, hashSize), 0o600); err != nil {
		return err
	}
	if err := m.Root.Chmod(lock, what.Perm&0o666|0o600); err != nil {
		return err
	}
	return m.Root.Rename(lock, at)
}
