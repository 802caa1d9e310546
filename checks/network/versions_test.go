//go:build lab

package network_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/network/world"
)

// combination is a claudebox with one version of each tool.
type combination struct {
	name, program, pasta string
}

// skipOldPasta is for what the pasta of 2023 cannot do, whoever starts it.
func (c combination) skipOldPasta(t *testing.T, fault string) {
	t.Helper()
	if c.pasta == "bookworm" {
		t.Skip("pasta of 2023 " + fault)
	}
}

// stalls is how often it may be tried.
func (c combination) stalls() int {
	if c.pasta == "bookworm" {
		return 3
	}
	return 1
}

// user is somebody who has it.
func (c combination) user(t *testing.T, w *world.World) *user {
	t.Helper()
	u := newUser(t, w)
	u.binary = c.program
	return u
}

// combinations of the versions of bwrap and, where a tier has use for it, of
// pasta: the lab's own (trixie's), those of Debian 12, and the newest.
func combinations(t *testing.T, tier string) []combination {
	t.Helper()
	return combined(t, tier, versions("bwrap"))
}

// pastas are the lab's bwrap with each pasta that the tier has use for.
func pastas(t *testing.T, tier string) []combination {
	t.Helper()
	return combined(t, tier, map[string]string{own: ""})
}

func combined(t *testing.T, tier string, bwraps map[string]string) []combination {
	t.Helper()
	var list []combination
	for bwrapName, bwrap := range bwraps {
		for pastaName, pasta := range versions("pasta") {
			name := tier + ", bwrap of " + bwrapName
			switch {
			case tier == "inet":
				name += ", pasta of " + pastaName
			case pastaName != own:
				continue // one will do for a tier without
			}
			program := install(t, os.Getenv("CLAUDEBOX_BIN"), tools{"bwrap": bwrap, "pasta": pasta})
			list = append(list, combination{name: name, program: program, pasta: pastaName})
		}
	}
	return list
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
