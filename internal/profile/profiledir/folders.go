// Package profiledir knows where profiles and their plans lie on this host.
package profiledir

import (
	"path/filepath"

	"claudebox/internal/host"
)

// Folders are where claudebox keeps and looks for things on this host.
type Folders struct {
	Home   string // CLAUDEBOX_HOME: instances, profiles, plans
	Config string // XDG_CONFIG_HOME/claudebox
	Cache  string // XDG_CACHE_HOME/claudebox
	Beside string // where the manifest is: what this claudebox was built with; empty: nothing
}

// SystemFolder is where a NixOS module puts profiles and plans.
const SystemFolder = "/etc/claudebox"

// FoldersOf follows CLAUDEBOX_HOME and the XDG base directory specification.
// Manifest is claudebox's own file, or empty.
func FoldersOf(f host.Facts, manifest string) Folders {
	within := func(variable, fallback, name string) string {
		base := f.Env.Value(variable, "")
		if !filepath.IsAbs(base) { // the XDG specification: a relative path is ignored
			base = filepath.Join(f.Home, fallback)
		}
		return filepath.Join(base, name)
	}
	beside := ""
	if manifest != "" {
		beside = filepath.Dir(manifest)
	}
	return Folders{
		Beside: beside,
		Home:   within("CLAUDEBOX_HOME", ".claudebox", ""),
		Config: within("XDG_CONFIG_HOME", ".config", "claudebox"),
		Cache:  within("XDG_CACHE_HOME", ".cache", "claudebox"),
	}
}

// Own are the folders that no project may lie in or hold.
func (f Folders) Own() []string { return []string{f.Home, f.Config, f.Cache} }

// Search are the places of profiles and plans, first match first.
func (f Folders) Search() []string {
	places := []string{f.Home, f.Config, SystemFolder}
	if f.Beside != "" {
		places = append(places, f.Beside)
	}
	return places
}
