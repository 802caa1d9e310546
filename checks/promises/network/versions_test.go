//go:build lab

package network_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/promises/network/world"
)

// combination is a claudebox with one version of bwrap.
type combination struct{ name, program string }

// user is somebody who has it.
func (c combination) user(t *testing.T, w *world.World) *user {
	t.Helper()
	u := newUser(t, w)
	u.binary = c.program
	return u
}

// combinations of the versions of bwrap: the lab's own (trixie's), that of
// Debian 12, and the newest.
func combinations(t *testing.T, tier string) []combination {
	t.Helper()
	var list []combination
	for name, bwrap := range versions("bwrap") {
		program := install(t, os.Getenv("CLAUDEBOX_BIN"), tools{"bwrap": bwrap})
		list = append(list, combination{name: tier + ", bwrap of " + name, program: program})
	}
	return list
}

// usual is the lab's own claudebox.
func usual(tier string) []combination {
	return []combination{{name: tier, program: os.Getenv("CLAUDEBOX_BIN")}}
}

// own is where the manifest's tools come from.
const own = "trixie"

// versions of a tool: release → program, empty for the manifest's own. A release
// that could not be fetched is not there; checks/suite says so.
func versions(tool string) map[string]string {
	found := map[string]string{own: ""}
	for _, release := range releases {
		if folder, err := filepath.EvalSymlinks(filepath.Join(top(), release)); err == nil {
			found[release] = filepath.Join(folder, tool)
		}
	}
	return found
}

// releases are those of checks/lab/releases.sh.
var releases = []string{"bookworm", "sid"}

// storeReleases puts their tools into the store, as a manifest names tools in
// it alone, and leaves links to them.
func storeReleases(top string) error {
	for _, release := range releases {
		folder := filepath.Join(os.Getenv("CLAUDEBOX_LAB_RELEASES"), release, "moved")
		if _, err := os.Stat(folder); err != nil {
			continue
		}
		path, err := exec.Command("nix-store", "--add", folder).Output()
		if err == nil {
			err = os.Symlink(strings.TrimSpace(string(path)), filepath.Join(top, release))
		}
		if err != nil {
			return fmt.Errorf("put %s into the store: %w", folder, err)
		}
	}
	return nil
}
