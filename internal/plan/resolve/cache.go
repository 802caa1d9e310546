package resolve

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/cachefile"
	"claudebox/internal/nix/nixeval"
)

// cacheVersion changes when the meaning of an entry does.
const cacheVersion = "1"

// entry is one file of the cache: the result of one evaluation or fetch. Its name is
// a hash of all inputs that can change the result. Entries are never changed in
// place, so any number of processes may read and write at once. An entry that is
// incomplete or damaged counts as absent. The zero entry stores nothing.
type entry struct{ file string }

// entry returns the cache entry for a result with these inputs. They are hashed as
// JSON, so that different inputs never give the same text.
func (r *resolver) entry(inputs ...any) entry {
	if r.Cache == "" {
		return entry{}
	}
	key, _ := json.Marshal(append([]any{cacheVersion}, inputs...)) // strings cannot fail
	return entry{filepath.Join(r.Cache, fmt.Sprintf("%x.json", sha256.Sum256(key)))}
}

// packages reads the packages of an entry. ok is false unless all attrs are in it and valid.
func (e entry) packages(attrs []string) (found map[string]nixeval.Package, ok bool) {
	return found, e.read(&found) && !slices.ContainsFunc(attrs, func(attr string) bool {
		p, known := found[attr]
		return !known || checkPackage(p) != nil
	})
}

// lock waits for the lock on the cache folder and holds it until done is called, so
// that one process at a time evaluates for this cache: an evaluation takes a
// processor and much memory, and a hundred sessions that start at once mostly need
// the same one. If the lock cannot be had, done does nothing, and the caller
// evaluates without it.
func (e entry) lock(ctx context.Context) (done func()) {
	nothing := func() {}
	if e.file == "" || os.MkdirAll(filepath.Dir(e.file), 0o700) != nil {
		return nothing
	}
	dir, err := os.Open(filepath.Dir(e.file))
	if err != nil {
		return nothing
	}
	locked := make(chan error, 1)
	go func() { locked <- unix.Flock(int(dir.Fd()), unix.LOCK_EX) }()
	select {
	case <-locked:
		return func() { dir.Close() }
	case <-ctx.Done(): // the process is about to end, and the lock with it
		return nothing
	}
}

func (e entry) read(value any) bool { return json.Unmarshal(cachefile.Read(e.file), value) == nil }

// write stores the entry by one rename. If that fails, the next launch evaluates again.
func (e entry) write(value any) {
	if e.file == "" {
		return
	}
	if text, err := json.Marshal(value); err == nil {
		cachefile.Write(e.file, text)
		const most = 256 // every edit of a profile's packages makes a new entry
		cachefile.Prune(filepath.Dir(e.file), most)
	}
}
