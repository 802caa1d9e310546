//go:build lab

package sandbox_test

import (
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/systemd"
)

// A9: what a profile limits is held by a scope of the user's systemd, with every
// process of the sandbox in it before the agent runs.
func TestLimitsAreHeldByAScopeOfSystemd(t *testing.T) {
	w := newWorld(t)
	w.env["XDG_RUNTIME_DIR"] = t.TempDir()
	bus := (&systemd.StandIn{Socket: filepath.Join(w.env["XDG_RUNTIME_DIR"], "bus")}).Serve(t)
	flags := []string{"--profile", w.profile(t, "limits: {memory: 8G, tasks: 4096, cpu: 400%}")}
	wantEqual(t, w.inside(t, "ulimit -u", flags...), "4096\n")
	units := bus.Units()
	if len(units) != 1 {
		t.Fatalf("%d scopes: %v", len(units), units)
	}
	for name, unit := range units {
		pids, _ := unit["PIDs"].([]uint32)
		if !strings.HasPrefix(name, "claudebox-") || len(pids) < 2 || unit["MemoryMax"] != uint64(8<<30) || unit["TasksMax"] != uint64(4096) || unit["CPUQuotaPerSecUSec"] != uint64(4_000_000) {
			t.Errorf("%s is %v", name, unit)
		}
	}
}

func TestLimitsThatDoNotHoldAreSaid(t *testing.T) {
	w := newWorld(t)
	w.env["XDG_RUNTIME_DIR"] = t.TempDir()
	flags := []string{"--profile", w.profile(t, "limits: {memory: 8G}")}
	if said := oneLine(run(t, w.claudebox(append([]string{"--dry-run"}, flags...)...)).stderr); !strings.Contains(said, "limits: memory and cpu do not hold: no systemd of this user can be reached") {
		t.Errorf("not said: %s", said)
	}
	if got := run(t, w.session("echo runs", flags...)); got.stdout != "runs\n" || !strings.Contains(oneLine(got.stderr), "memory and cpu do not hold") {
		t.Errorf("status %d, %s%s", got.status, got.stdout, got.stderr)
	}
}

// A limit that was promised and cannot be set up stops the launch.
//
// Promise: what cannot be set up stops the launch.
func TestALimitThatSystemdRefusesStopsTheLaunch(t *testing.T) {
	w := newWorld(t)
	w.env["XDG_RUNTIME_DIR"] = t.TempDir()
	(&systemd.StandIn{Socket: filepath.Join(w.env["XDG_RUNTIME_DIR"], "bus"), Refuse: "Permission denied"}).Serve(t)
	got := run(t, w.session("echo ran", "--profile", w.profile(t, "limits: {memory: 8G}")))
	wantRefused(t, got, "hold the limits by a scope of your systemd: Permission denied")
	if !strings.Contains(got.stderr, "or leave memory and cpu out of the profile's limits") {
		t.Errorf("no remedy: %s", got.stderr)
	}
	if got = run(t, w.session("echo ran", "--profile", w.profile(t, ""))); got.status != 0 {
		t.Errorf("after its remedy: %s", got.stderr)
	}
}
