// Package plancache caches plans: those made from profiles, and those decoded from plan files. So a warm start reads
// one small file in place of the profile, what it extends and the manifest, or of the plan file. A cached plan is used
// only while all files that it was made from are unchanged. A cache file that is damaged or not trustworthy is ignored.
//
// The cache lies in claudebox's own folder, which cannot be mounted in a sandbox.
package plancache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/cachefile"
	"claudebox/internal/plan"
)

// Cache is the cache of one plan. The zero Cache stores and finds nothing.
type Cache struct{ file string }

// Kept is a cached plan.
type Kept struct {
	Plan   plan.Plan
	Roots  []string   // store paths that must be protected from the garbage collector for it
	Inputs FileStates // the files that it was made from, and those that were looked for but did not exist
}

// FileState is the path of a file and its state, by [cachefile.SettledState], when a plan was made.
type FileState struct{ Path, State string }

// FileStates collects the states of files, each before the file is read.
type FileStates []FileState

// Add adds the current state of a file. If the file's folder does not exist, it
// adds the folder instead, once for all files that are looked for in it.
func (s *FileStates) Add(file string) {
	now := FileState{Path: file, State: cachefile.SettledState(file)}
	if folder := filepath.Dir(file); now.State == cachefile.Absent && cachefile.State(folder) == cachefile.Absent {
		now.Path = folder
	}
	if !slices.Contains(*s, now) {
		*s = append(*s, now)
	}
}

// For returns the cache of one plan. others are all that the plan depends on
// besides the files in [Kept.Inputs]. folder is where cached plans are stored.
// build identifies this build of claudebox; if it is empty, nothing is cached.
func For(folder, build string, others ...string) Cache {
	if build == "" {
		return Cache{}
	}
	sum := sha256.Sum256([]byte(build + "\x00" + strings.Join(others, "\x00")))
	return Cache{filepath.Join(folder, hex.EncodeToString(sum[:16]))}
}

// File returns the path of the plan's file, or "" for the zero Cache.
func (c Cache) File() string { return c.file }

// Find returns the cached plan if its file is undamaged and the plan is still valid: every file that it was made from
// has the noted state, and every store path exists. Store paths never change, so that is enough for them. If not, found
// is false and k must not be used.
func (c Cache) Find() (k Kept, found bool) {
	var st unix.Stat_t
	gone := func(path string) bool { return unix.Lstat(path, &st) != nil }
	changed := func(f FileState) bool { return cachefile.State(f.Path) != f.State }
	found = c.file != "" && cachefile.Find(c.file, &k) &&
		len(k.Inputs) > 0 && // every plan depends on some file, be it one that is not there
		!slices.ContainsFunc(k.Inputs, changed) && !slices.ContainsFunc(k.Plan.StorePaths(), gone)
	return k, found
}

// Keep writes a plan to its cache file; failures are ignored. It does not make claudebox's own folder.
func (c Cache) Keep(p plan.Plan, roots []string, inputs FileStates) {
	if c.file == "" {
		return
	}
	if err := os.Mkdir(filepath.Dir(c.file), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return
	}
	const most = 200 // files: one for each folder that claudebox is called in, and all anew for each build of it
	cachefile.Prune(filepath.Dir(c.file), most)
	cachefile.Keep(c.file, Kept{Plan: p, Roots: roots, Inputs: inputs})
}
