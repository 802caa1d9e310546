package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/resolve"
)

// planCache keeps plans that were made from profiles, so that a warm start
// reads one small file instead of the profile, what it extends and the
// manifest. A kept plan counts only while everything it was made of is as it
// was; anything odd about it makes it as good as absent.
//
// It lies in claudebox's own folder, which no sandbox can be given.
type planCache struct {
	file string // of this very question; empty: there is no cache
	uid  int
	now  func() time.Time
}

// keptPlan is what a file of the cache holds.
type keptPlan struct {
	Made []witness // the files it was made of, and those that were looked for in vain
	Plan plan.Plan
}

// witness is a file as it was when a plan was made.
type witness struct{ Path, State string }

const absent = "absent"

// planCache names all that a plan depends on besides the witnesses. Without
// the program's own state there is no cache: another build may plan
// otherwise.
func (s *session) planCache(sys System, ref string) planCache {
	program, err := fileState("/proc/self/exe")
	if err != nil {
		return planCache{}
	}
	files := newProfileFiles(s.facts)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%q",
		version, program, sys.Manifest, ref, files.cwd, files.home, files.folders))
	return planCache{
		file: filepath.Join(s.folders.home, "plan-cache", hex.EncodeToString(sum[:16])), uid: s.facts.UID, now: time.Now,
	}
}

// find gives the kept plan if it still holds.
func (c planCache) find() (plan.Plan, bool) {
	if c.file == "" {
		return plan.Plan{}, false
	}
	content, err := readProfileFile(c.file, c.uid)
	if err != nil || len(content) < sha256.Size {
		return plan.Plan{}, false
	}
	sum := sha256.Sum256(content[sha256.Size:])
	var kept keptPlan
	if !bytes.Equal(sum[:], content[:sha256.Size]) || !unpack(content[sha256.Size:], &kept) {
		return plan.Plan{}, false
	}
	return kept.Plan, kept.holds()
}

// holds compares every witness, and looks for every store path.
func (k keptPlan) holds() bool {
	for _, w := range k.Made {
		if stateNow(w.Path) != w.State {
			return false
		}
	}
	for _, path := range k.Plan.StorePaths() {
		if _, err := os.Lstat(path); err != nil {
			return false
		}
	}
	return len(k.Made) > 0
}

// stateNow changes whenever a file is written, replaced, made or removed.
func stateNow(path string) string {
	state, err := fileState(path)
	switch {
	case err == nil:
		return state
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return absent
	}
	return "unknown: " + err.Error()
}

// keepFor writes a plan down for the next time. Files that were written a
// moment ago may be written again without a change of their time stamps, so
// nothing is kept of them. Where claudebox's own folder is not there yet, this
// is no reason to make it.
func (c planCache) keepFor(p plan.Plan, made []witness) {
	if c.file == "" || !c.settled(made) {
		return
	}
	if err := os.Mkdir(filepath.Dir(c.file), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return
	}
	payload := pack(keptPlan{Made: made, Plan: p})
	sum := sha256.Sum256(payload)
	c.makeRoom()
	// One name for all who write this: whatever they leave when they are
	// killed is written over, and the sum tells of a mixture.
	unfinished := c.file + ".new"
	if os.WriteFile(unfinished, append(sum[:], payload...), 0o600) == nil {
		os.Rename(unfinished, c.file)
	}
}

func (c planCache) settled(made []witness) bool {
	for _, w := range made {
		var st unix.Stat_t
		if w.State != absent && (unix.Stat(w.Path, &st) != nil || c.now().Sub(time.Unix(st.Ctim.Unix())) < time.Second) {
			return false
		}
	}
	return true
}

// makeRoom empties a cache that has grown: a file comes for each folder that
// claudebox is called in, and goes with the next build.
func (c planCache) makeRoom() {
	const most = 200
	entries, err := os.ReadDir(filepath.Dir(c.file))
	if err != nil || len(entries) < most {
		return
	}
	for _, entry := range entries {
		os.Remove(filepath.Join(filepath.Dir(c.file), entry.Name()))
	}
}

// cacheable tells whether a resolution depends on nothing but the manifest.
func cacheable(prof profile.Profile, m *resolve.Manifest, res resolve.Resolution) bool {
	if prof.Nix.Store == profile.StoreClosure || len(res.Packages) == 0 {
		return false
	}
	for _, pkg := range res.Packages {
		known, ok := m.Packages[pkg.Attr]
		if !ok || pkg.Missing {
			return false
		}
		for _, output := range pkg.Outputs {
			if known.Outputs[output.Name] != output.Path {
				return false
			}
		}
	}
	return true
}

// witnesses notes the state of files before they are read.
type witnesses struct{ list []witness }

func (w *witnesses) note(file string) {
	if w != nil {
		w.list = append(w.list, witness{Path: file, State: stateNow(file)})
	}
}
