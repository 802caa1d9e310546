// Package plancache keeps plans that were made from profiles, so that a warm
// start reads one small file instead of the profile, what it extends and the
// manifest. A kept plan counts only while everything it was made of is as it
// was; anything odd about it makes it as good as absent.
//
// It lies in claudebox's own folder, which no sandbox can be given.
package plancache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/cachefile"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/profile/profiledir"
)

// Cache is the place of one plan. The zero Cache keeps nothing.
type Cache struct {
	file  string
	uid   int
	store string // where the plan's store paths lie
	now   func() time.Time
}

// Kept is a plan that was kept.
type Kept struct {
	Plan  plan.Plan
	Roots []string  // the store paths that have to be kept from the garbage collector for it
	Made  Witnesses // the files it was made of, and those that were looked for in vain
	Store string    // the state of the store's folder when all of the plan's paths were there; empty: not known
}

// Witness is a file as it was when a plan was made.
type Witness struct{ Path, State string }

// Witnesses notes the state of files before they are read.
type Witnesses []Witness

// Note notes a file. Where its whole folder is absent, that says as much of all
// that is looked for in it.
func (w *Witnesses) Note(file string) {
	is := Witness{Path: file, State: cachefile.State(file)}
	if folder := filepath.Dir(file); is.State == cachefile.Absent && cachefile.State(folder) == cachefile.Absent {
		is.Path = folder
	}
	if !slices.Contains(*w, is) {
		*w = append(*w, is)
	}
}

// For is the cache of the plan that the answers to a question lead to: all
// that it depends on besides the witnesses. folder is where plans are kept,
// and belongs to the user uid. build is the claudebox that makes plans and reads
// them; where that is not known, nothing is kept.
func For(folder string, uid int, build string, question ...string) Cache {
	if build == "" {
		return Cache{}
	}
	sum := sha256.Sum256([]byte(build + "\x00" + strings.Join(question, "\x00")))
	return Cache{
		file: filepath.Join(folder, hex.EncodeToString(sum[:16])), uid: uid, store: storepath.Dir,
		now: time.Now,
	}
}

// File is where the plan is kept; empty for the zero Cache.
func (c Cache) File() string { return c.file }

// Find gives the kept plan if its file is whole and the plan still holds.
func (c Cache) Find() (k Kept, found bool) {
	if c.file == "" {
		return Kept{}, false
	}
	content, err := profiledir.Read(c.file, c.uid)
	if err != nil || len(content) < sha256.Size {
		return Kept{}, false
	}
	payload := content[sha256.Size:]
	sum := sha256.Sum256(payload)
	found = bytes.Equal(sum[:], content[:sha256.Size]) && cachefile.Decode(payload, &k) && c.holds(k)
	return k, found
}

// holds compares every witness. Nothing in the store is ever changed, and what
// goes changes the store's folder: only if something came or went since, every
// store path is looked for.
func (c Cache) holds(k Kept) bool {
	for _, w := range k.Made {
		if cachefile.State(w.Path) != w.State {
			return false
		}
	}
	return len(k.Made) > 0 && (k.Store != "" && k.Store == cachefile.State(c.store) || areThere(k.Plan.StorePaths()))
}

func areThere(paths []string) bool {
	var st unix.Stat_t
	return !slices.ContainsFunc(paths, func(path string) bool { return unix.Lstat(path, &st) != nil })
}

// Renew keeps a plan again that was found, if the store has changed since: the
// next time it need not be looked through.
func (c Cache) Renew(k Kept) {
	if k.Store != cachefile.State(c.store) {
		c.Keep(k.Plan, k.Roots, k.Made)
	}
}

// Keep writes a plan down for the next time. Files that were written a
// moment ago may be written again without a change of their time stamps, so
// nothing is kept of them. Where claudebox's own folder is not there yet, this
// is no reason to make it.
func (c Cache) Keep(p plan.Plan, roots []string, made Witnesses) {
	if c.file == "" || !c.settled(made) {
		return
	}
	if err := os.Mkdir(filepath.Dir(c.file), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return
	}
	const most = 200 // one for each folder that claudebox is called in; it goes with the next build
	cachefile.Prune(filepath.Dir(c.file), most)
	k := Kept{Plan: p, Roots: roots, Made: made}
	store := Witnesses{{Path: c.store, State: cachefile.State(c.store)}} // before the paths are looked for
	if cachefile.Known(store[0].State) && c.settled(store) && areThere(p.StorePaths()) {
		k.Store = store[0].State
	}
	payload := cachefile.Encode(k)
	sum := sha256.Sum256(payload)
	cachefile.Write(c.file, append(sum[:], payload...))
}

func (c Cache) settled(made Witnesses) bool {
	for _, w := range made {
		var st unix.Stat_t
		if w.State != cachefile.Absent &&
			(unix.Stat(w.Path, &st) != nil || c.now().Sub(time.Unix(st.Ctim.Unix())) < time.Second) {
			return false
		}
	}
	return true
}
