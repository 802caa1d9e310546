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
)

// cacheVersion changes when the meaning of an entry does.
const cacheVersion = "1"

// entry is one file of the cache: the answer to one question, found by a
// hash of everything that can change the answer. Entries are never changed
// in place, so any number of processes may read and write at once; one that
// does not read back whole is as good as none. The zero entry keeps nothing.
type entry struct{ file string }

// entry names the file after all parts of the question; as JSON, so that no
// two questions run into one.
func (r *resolver) entry(question ...any) entry {
	if r.Cache == "" {
		return entry{}
	}
	key, _ := json.Marshal(append([]any{cacheVersion}, question...)) // strings cannot fail
	return entry{filepath.Join(r.Cache, fmt.Sprintf("%x.json", sha256.Sum256(key)))}
}

// packages gives those of an answer, when all of them are there and sound.
func (e entry) packages(attrs []string) (found map[string]ManifestPackage, ok bool) {
	return found, e.read(&found) && !slices.ContainsFunc(attrs, func(attr string) bool {
		p, known := found[attr]
		return !known || p.check() != nil
	})
}

// turn waits until no other process evaluates for this cache, and holds that
// until done is called: an evaluation takes a processor and much memory, and a
// hundred sessions that begin at once mostly ask the same. Where the turn
// cannot be had each caller evaluates alone.
func (e entry) turn(ctx context.Context) (done func()) {
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

// write puts the entry in place by one rename. Where it cannot be written the
// next launch evaluates again.
func (e entry) write(value any) {
	if e.file == "" {
		return
	}
	if text, err := json.Marshal(value); err == nil {
		cachefile.WriteBelow(e.file, text)
		const most = 256 // every edit of a profile's packages makes one
		cachefile.Prune(filepath.Dir(e.file), most)
	}
}
