package cli

import (
	"path/filepath"

	"claudebox/internal/host"
	"claudebox/internal/profile"
)

// folders are where claudebox keeps and looks for things on this host.
type folders struct {
	home   string // CLAUDEBOX_HOME: instances, profiles, plans
	config string // XDG_CONFIG_HOME/claudebox
	cache  string // XDG_CACHE_HOME/claudebox
}

// systemFolder is where a NixOS module puts profiles and plans.
const systemFolder = "/etc/claudebox"

func foldersOf(f host.Facts) folders {
	within := func(variable, fallback, name string) string {
		base := f.Env.Value(variable, "")
		if !filepath.IsAbs(base) { // the XDG specification: a relative path is ignored
			base = filepath.Join(f.Home, fallback)
		}
		return filepath.Join(base, name)
	}
	return folders{
		home:   within("CLAUDEBOX_HOME", ".claudebox", ""),
		config: within("XDG_CONFIG_HOME", ".config", "claudebox"),
		cache:  within("XDG_CACHE_HOME", ".cache", "claudebox"),
	}
}

// own are the folders that no project may lie in or hold.
func (f folders) own() []string { return []string{f.home, f.config, f.cache} }

// search are the places of profiles and plans, first match first.
func (f folders) search() []string { return []string{f.home, f.config, systemFolder} }

// secretPaths are the paths of the host that no sandbox may see (SAND-09).
func secretPaths() []string {
	list := make([]string, len(profile.SecretPaths))
	for i, s := range profile.SecretPaths {
		list[i] = s.Path
	}
	return list
}
