package session

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/aside"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/scope"
)

// scopePatience is how long systemd may take for a scope.
const scopePatience = 10 * time.Second

// addLimits says which limits of the profile do not hold here. That on
// processes holds without systemd, where the kernel counts them apart.
func (c call) addLimits(h *launch.Host, p plan.Plan) error {
	if p.Limits.Tasks > 0 && !(h.OwnPIDs && launch.CountsProcesses()) && !byScope(p.Limits) {
		h.Warnings = append(h.Warnings,
			"limits: tasks does not hold: here the kernel does not count the sandbox's processes apart")
	}
	if !byScope(p.Limits) {
		return nil
	}
	if err := c.askSystemd(scope.Request{}); err != nil {
		h.Warnings = append(h.Warnings, "limits: memory and cpu do not hold: "+err.Error())
		return nil
	}
	h.Held = true
	return nil
}

// byScope reports whether limits need systemd.
func byScope(l plan.Limits) bool { return l.Memory > 0 || l.CPU > 0 }

// askSystemd asks the user's systemd, through claudebox's helper.
func (c call) askSystemd(r scope.Request) error {
	program, err := ownProgram(helperName)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopePatience)
	defer cancel()
	r.Socket = scope.Socket(c.Facts.Env.Get)
	return aside.Ask(ctx, program, scope.Word, r, &struct{}{})
}

// holdLimits puts the sandbox's processes into a scope of systemd.
func (s *Session) holdLimits(pids []int) error {
	err := s.askSystemd(scope.Request{
		Name: "claudebox-" + strings.ToLower(rand.Text()[:12]) + ".scope",
		PIDs: pids, Limits: scope.Limits(s.Launch.Plan.Limits),
	})
	if err != nil {
		return &diag.Error{
			Op: "hold the limits by a scope of your systemd", Err: err,
			Remedy: "see `systemctl --user status`, or leave memory and cpu out of the profile's limits",
		}
	}
	return nil
}
