package handover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"claudebox/internal/agent/state"
)

// memory is what is durable of a place: what both sides had in common last. It is written to a file and renamed: a line
// of JSON, and after it the indexes as they are. These are most of it, and each launch reads them.
type memory struct {
	Version  int
	Sizes    map[string]int    // of the indexes of Common.Trees, in bytes; they follow in the order of their names
	Identity string            // of the outer folder
	Common   Side              // both had this
	Named    map[string]string // branch → the agent's commit that has a name of its own outside
	Settings map[string][]string
	Modules  map[string]carried `json:",omitempty"` // by [Module.Git]
	Lost     bool               // the inner folder has lost what was in it
	Passed   []string           `json:",omitempty"` // [Place.Passed] when they were written inside
	Waiting  bool               // something did not cross
	Told     []string           // what was said of settings of the agent's that do not cross
	Ended    string             // Inner, when a session had ended with it, and all was adopted
	Inner    string             // [Place.stamps] of the inner folder after the last hand-over
	Outer    string             // likewise
	// From is where the inner folder was while the repository became the user's: it may still have to be moved.
	From string `json:",omitempty"`
	// Thing is what the repository was called while it was held back, see [guard.Thing], and Path where it is.
	Thing, Path string `json:",omitempty"`
}

// memoryVersion is the form of [memory]. The one before had the indexes in the JSON, as base64.
const memoryVersion, versionBefore = 2, 1

// errForm is returned for a file that this claudebox cannot read.
var errForm = errors.New("it was written by another claudebox, or is damaged")

func (p Place) memoryFile() string { return p.Folder + "/common.json" }

// recall reads the memory of a place; fs.ErrNotExist: there is none. A file that cannot be read is an error, and stays.
func (p Place) recall() (m memory, err error) {
	content, err := os.ReadFile(p.memoryFile())
	if err != nil {
		return m, err
	}
	head, indexes, _ := strings.Cut(string(content), "\n")
	err = json.Unmarshal([]byte(head), &m)
	if err != nil || m.Version != versionBefore && (m.Version != memoryVersion || !m.take(indexes)) {
		return m, fmt.Errorf("%s: %w", p.memoryFile(), errForm)
	}
	if m.Named == nil {
		m.Named = map[string]string{}
	}
	return m, nil
}

// take gives the checkouts their indexes, and reports whether there are just as many bytes as there should be.
func (m *memory) take(indexes string) bool {
	for _, rel := range slices.Sorted(maps.Keys(m.Common.Trees)) {
		size, state := m.Sizes[rel], m.Common.Trees[rel]
		if size < 0 || size > len(indexes) {
			return false
		}
		state.Index, indexes = Index(indexes[:size]), indexes[size:]
		m.Common.Trees[rel] = state
	}
	return indexes == ""
}

// remember writes the memory of a place.
func (p Place) remember(m memory) error {
	var indexes bytes.Buffer
	m.Version, m.Sizes, m.Common.Trees = memoryVersion, map[string]int{}, maps.Clone(m.Common.Trees)
	for _, rel := range slices.Sorted(maps.Keys(m.Common.Trees)) {
		state := m.Common.Trees[rel]
		m.Sizes[rel], _ = indexes.WriteString(string(state.Index))
		state.Index = ""
		m.Common.Trees[rel] = state
	}
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	fresh := p.memoryFile() + ".new"
	if err := os.WriteFile(fresh, slices.Concat(content, []byte("\n"), indexes.Bytes()), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, p.memoryFile())
}

// Known are the git folders of the user's of which agents have had their own.
type Known struct {
	ids    map[[2]string]bool // [Name] and identity
	Things map[string]string  // by [guard.Thing], the paths of those that were held back
}

// Recall returns all that instances know, by claudebox's own folder. What it cannot read it leaves out.
func Recall(home string) Known {
	k := Known{map[[2]string]bool{}, map[string]string{}}
	for _, folder := range state.Folders(home) {
		files, _ := filepath.Glob(quoteGlob(folder) + "/*/" + Folder + "/*/common.json")
		for _, file := range files {
			m, err := Place{Folder: path.Dir(file)}.recall()
			if err != nil {
				continue
			}
			k.ids[[2]string{path.Base(path.Dir(file)), m.Identity}] = true
			if m.Thing != "" && (Place{Outer: m.Path}).identity() == m.Identity {
				k.Things[m.Thing] = m.Path
			}
		}
	}
	return k
}

// Has reports whether a git folder that was not there has become the user's: a session's end has made it, and may have
// been cut short then; or the user has moved it there from one of some places, which no agent could write to meanwhile.
func (k Known) Has(outer string, places ...string) bool {
	id := Place{Outer: outer}.identity()
	return id != "" && slices.ContainsFunc(append(places, outer), func(at string) bool {
		return k.ids[[2]string{Name(at), id}]
	})
}

// forget sets the inner folder of a repository aside that is not there any more: another one is at its path.
func (p Place) forget() error {
	for n := 1; ; n++ {
		old := fmt.Sprintf("%s/before-%d", p.Folder, n)
		if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
			if err := os.Mkdir(old, 0o700); err != nil {
				return err
			}
			for _, name := range []string{p.Inner(), p.memoryFile()} {
				err := os.Rename(name, old+"/"+path.Base(name))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		}
	}
}

// Before is the commit of the place's branch that both sides had last, with an inner folder that was set aside; empty:
// it is not known.
func (p Place) Before() (commit string) {
	for n := 1; ; n++ {
		m, err := Place{Folder: fmt.Sprintf("%s/before-%d", p.Folder, n)}.recall()
		if errors.Is(err, fs.ErrNotExist) {
			return commit
		}
		if err == nil {
			commit = m.Common.Refs["refs/heads/"+p.Branch]
		}
	}
}

// UnmarshalJSON reads an index of the form before.
func (i *Index) UnmarshalJSON(text []byte) error {
	var content []byte
	err := json.Unmarshal(text, &content)
	*i = Index(content)
	return err
}

func inode(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	}
	return ""
}
