package systemd_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/systemd"
	"claudebox/internal/sandbox/scope"
	manager "claudebox/internal/sandbox/systemd"
)

const patience = 20 * time.Second

// do carries out a request through a stand-in.
func do(t *testing.T, s *systemd.StandIn, wait time.Duration, r scope.Request) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	r.Socket = scope.Socket(func(name string) (string, bool) {
		return map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=" + s.Socket + ",guid=0"}[name], name == "DBUS_SESSION_BUS_ADDRESS"
	})
	return manager.Do(ctx, r)
}

func TestAScopeHoldsTheProcessesWithTheirLimits(t *testing.T) {
	s := systemd.Start(t, &systemd.StandIn{})
	first := scope.Request{
		Name: "claudebox-1.scope", PIDs: []int{11, 12}, Limits: scope.Limits{Memory: 8 << 30, Tasks: 4096, CPU: 400},
	}
	must.Do(t, do(t, s, patience, first))
	want := map[string]any{
		"Description": "claudebox sandbox", "CollectMode": "inactive-or-failed", "PIDs": []uint32{11, 12},
		"MemoryMax": uint64(8 << 30), "TasksMax": uint64(4096), "CPUQuotaPerSecUSec": uint64(4_000_000),
	}
	if got := s.Units()["claudebox-1.scope"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	second := scope.Request{Name: "claudebox-2.scope", PIDs: []int{11}, Limits: scope.Limits{CPU: 50}}
	must.Do(t, do(t, s, patience, second))
	if got := s.Units()["claudebox-2.scope"]; got["MemoryMax"] != nil || got["TasksMax"] != nil || got["CPUQuotaPerSecUSec"] != uint64(500_000) {
		t.Errorf("got %v", got)
	}
}

func TestAScopeThatFailsIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		standIn *systemd.StandIn
		wait    time.Duration
		want    string
	}{
		"it is refused":         {&systemd.StandIn{Refuse: "Permission denied"}, patience, "Permission denied"},
		"its job fails":         {&systemd.StandIn{Result: "failed"}, patience, `its job ended with "failed"`},
		"systemd goes away":     {&systemd.StandIn{Drop: "StartTransientUnit"}, patience, ""},
		"systemd never answers": {&systemd.StandIn{Silent: "StartTransientUnit"}, time.Second, "deadline exceeded"},
		"the job never ends":    {&systemd.StandIn{Result: "never"}, time.Second, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			err := do(t, systemd.Start(t, tc.standIn), tc.wait, scope.Request{Name: "x.scope", PIDs: []int{1}, Limits: scope.Limits{CPU: 50}})
			if err == nil || errors.Is(err, manager.ErrNone) || !strings.Contains(err.Error(), tc.want) {
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
		socket := scope.Socket(func(name string) (string, bool) { v, set := env[name]; return v, set })
		err := manager.Do(t.Context(), scope.Request{Socket: socket})
		if !errors.Is(err, manager.ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := do(t, systemd.Start(t, &systemd.StandIn{Absent: true}), patience, scope.Request{}); !errors.Is(err, manager.ErrNone) {
		t.Errorf("a bus without it: %v", err)
	}
}
