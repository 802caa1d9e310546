package branch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"claudebox/internal/linux/flock"
)

// record is what is durable of a branch's checkout.
type record struct {
	Version int
	Name    string
	Project string            // the user's checkout in which it was made
	Outer   string            // the repository
	Filled  bool              // the checkout is there
	Open    bool              // a session works on it, or was killed
	Tip     string            // of the branch at the end of the last session
	Copied  []string          // ignored things that were copied once
	Modules []Module          // submodules from which commits cross
	Tips    map[string]string // of the branch in them, as Tip; by their git folders
	Layers  map[string]string // of ignored folders: the state of the user's when the layer was made
}

// withModules adds submodules that are not among those of earlier sessions.
func (r *record) withModules(list []Module) []Module {
	for _, m := range list {
		if !slices.ContainsFunc(r.Modules, func(known Module) bool { return known.Git == m.Git }) {
			r.Modules = append(r.Modules, m)
		}
	}
	return r.Modules
}

const recordVersion = 1

const recordName = "/record.json"

// recall reads the record in a folder; the zero record if there is none. One that cannot be read is an error.
func recall(dir string) (r record, err error) {
	content, err := os.ReadFile(dir + recordName)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err == nil && r.Version != recordVersion {
		err = errors.New("it was written by another claudebox")
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", dir+recordName, err)
	}
	return r, nil
}

// remember writes the record into a folder.
func (r record) remember(dir string) error {
	r.Version = recordVersion
	content, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(dir+recordName+".new", append(content, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(dir+recordName+".new", dir+recordName)
	}
	return err
}

// errHeld is returned for a branch on which a session works.
var errHeld = errors.New("a session works on it")

// hold locks a folder for this process.
func hold(dir string) (*os.File, error) { return flock.Folder(dir, errHeld) }

// isHeld reports whether a session works on a branch.
func isHeld(dir string) bool {
	lock, err := hold(dir)
	if err == nil {
		lock.Close()
	}
	return errors.Is(err, errHeld)
}
