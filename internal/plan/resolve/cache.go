package resolve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/cachefile"
	"claudebox/internal/nix/nixeval"
)

// cacheVersion changes when the meaning of an entry does.
const cacheVersion = "1"

// entry is one file of the cache: the answer to one question, found by a
// hash of everything that can change the answer. Entries are never changed
// in place, so any number of processes may read and write at once; one that
// does not read back whole is as good as none. The zero entry keeps nothing.
type entry struct{ file string }

// entry is the place for the answer to a query.
func (r *resolver) entry(q nixeval.Query) entry {
	return r.entryFor("packages", r.Evaluator.Identity(), q.Nixpkgs, q.System, q.Attrs)
}

// sourceEntry is the place for what a flake reference was fetched to.
func (r *resolver) sourceEntry(ref string) entry {
	return r.entryFor("nixpkgs", r.Evaluator.Identity(), ref)
}

// entryFor names the file after all parts of the question; as JSON, so that
// no two questions run into one.
func (r *resolver) entryFor(question ...any) entry {
	if r.Cache == "" {
		return entry{}
	}
	key, _ := json.Marshal(append([]any{cacheVersion}, question...)) // strings cannot fail
	sum := sha256.Sum256(key)
	return entry{filepath.Join(r.Cache, hex.EncodeToString(sum[:])+".json")}
}

// load gives the packages, when all of them are there and sound.
func (e entry) load(attrs []string) (map[string]ManifestPackage, bool) {
	var found map[string]ManifestPackage
	if !e.read(&found) {
		return nil, false
	}
	for _, attr := range attrs {
		if p, ok := found[attr]; !ok || p.check() != nil {
			return nil, false
		}
	}
	return found, true
}

func (e entry) save(found map[string]ManifestPackage) { e.write(found) }

func (e entry) loadSource() (Nixpkgs, bool) {
	var n Nixpkgs
	return n, e.read(&n) && n.Path != "" && n.check() == nil
}

func (e entry) saveSource(n Nixpkgs) { e.write(n) }

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

func (e entry) read(value any) bool {
	if e.file == "" {
		return false
	}
	return json.Unmarshal(cachefile.Read(e.file), value) == nil
}

// write puts the entry in place by one rename. Where it cannot be written the
// next launch evaluates again.
func (e entry) write(value any) {
	if e.file == "" {
		return
	}
	if text, err := json.Marshal(value); err == nil {
		cachefile.WriteBelow(e.file, text)
		prune(filepath.Dir(e.file))
	}
}

// most is how many files a cache may hold: every edit of a profile's packages
// makes one.
const most = 256

// prune takes the older half of a cache that has grown too large, and with it
// what writers that were killed have left.
func prune(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= most {
		return
	}
	age := func(entry os.DirEntry) time.Time {
		info, err := entry.Info()
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return age(a).Compare(age(b)) })
	for _, entry := range entries[:len(entries)-most/2] {
		os.Remove(filepath.Join(dir, entry.Name()))
	}
}
