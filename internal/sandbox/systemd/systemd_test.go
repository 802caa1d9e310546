package systemd_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"claudebox/checks/systemd"
	"claudebox/internal/sandbox/scope"
	manager "claudebox/internal/sandbox/systemd"
)

const patience = 20 * time.Second

// find connects to a stand-in.
func find(t *testing.T, s *systemd.StandIn) (*manager.Manager, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	m, err := manager.Find(ctx, scope.Socket(func(name string) (string, bool) {
		return map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=" + s.Socket + ",guid=0"}[name], name == "DBUS_SESSION_BUS_ADDRESS"
	}))
	if err == nil {
		t.Cleanup(m.Close)
	}
	return m, err
}

func TestAScopeHoldsTheProcessesWithTheirLimits(t *testing.T) {
	s := systemd.Start(t, &systemd.StandIn{})
	m, err := find(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Hold(t.Context(), "claudebox-1.scope", []int{11, 12}, scope.Limits{Memory: 8 << 30, Tasks: 4096, CPU: 400}); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"Description": "claudebox sandbox", "CollectMode": "inactive-or-failed", "PIDs": []uint32{11, 12},
		"MemoryMax": uint64(8 << 30), "TasksMax": uint64(4096), "CPUQuotaPerSecUSec": uint64(4_000_000),
	}
	if got := s.Units()["claudebox-1.scope"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := m.Hold(t.Context(), "claudebox-2.scope", []int{11}, scope.Limits{CPU: 50}); err != nil {
		t.Fatal(err)
	}
	if got := s.Units()["claudebox-2.scope"]; got["MemoryMax"] != nil || got["TasksMax"] != nil || got["CPUQuotaPerSecUSec"] != uint64(500_000) {
		t.Errorf("got %v", got)
	}
}

func TestAScopeThatFailsIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		standIn *systemd.StandIn
		want    string
	}{
		"it is refused":         {&systemd.StandIn{Refuse: "Permission denied"}, "Permission denied"},
		"its job fails":         {&systemd.StandIn{Result: "failed"}, `its job ended with "failed"`},
		"systemd goes away":     {&systemd.StandIn{Drop: "StartTransientUnit"}, ""},
		"systemd never answers": {&systemd.StandIn{Silent: "StartTransientUnit"}, "deadline exceeded"},
		"the job never ends":    {&systemd.StandIn{Result: "never"}, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := find(t, systemd.Start(t, tc.standIn))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := m.Hold(ctx, "x.scope", []int{1}, scope.Limits{CPU: 50}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWhereThereIsNoSystemd(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"nothing is named":       {},
		"no socket is there":     {"XDG_RUNTIME_DIR": t.TempDir()},
		"a program is to be run": {"DBUS_SESSION_BUS_ADDRESS": "unixexec:path=/bin/false"},
		"another machine":        {"DBUS_SESSION_BUS_ADDRESS": "tcp:host=127.0.0.1,port=1"},
	} {
		_, err := manager.Find(t.Context(), scope.Socket(func(name string) (string, bool) { v, set := env[name]; return v, set }))
		if !errors.Is(err, manager.ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := find(t, systemd.Start(t, &systemd.StandIn{Absent: true})); !errors.Is(err, manager.ErrNone) {
		t.Errorf("a bus without it: %v", err)
	}
}
