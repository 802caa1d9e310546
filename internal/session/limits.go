package session

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/scope"
)

// scopePatience is how long systemd may take for a scope.
const scopePatience = 10 * time.Second

// addLimits says which limits of the profile do not hold here. That on
// processes holds without systemd, where the kernel counts them apart.
func (c call) addLimits(h *launch.Host, p plan.Plan, _ Options, _ Purpose) error {
	if p.Limits.Tasks > 0 && !(h.OwnPIDs && launch.CountsProcesses()) && !byScope(p.Limits) {
		h.Warnings = append(h.Warnings,
			"limits: tasks does not hold: here the kernel does not count the sandbox's processes apart")
	}
	if !byScope(p.Limits) {
		return nil
	}
	manager, err := c.findManager()
	if err != nil {
		h.Warnings = append(h.Warnings, "limits: memory and cpu do not hold: "+err.Error())
		return nil
	}
	manager.Close()
	h.Held = true
	return nil
}

// byScope reports whether limits need systemd.
func byScope(l plan.Limits) bool { return l.Memory > 0 || l.CPU > 0 }

func (c call) findManager() (*scope.Manager, error) {
	ctx, cancel := context.WithTimeout(context.Background(), scopePatience)
	defer cancel()
	return scope.Find(ctx, c.Facts.Env.Get)
}

// holdLimits has the launch put its processes into a scope of systemd, where
// there was one when the user was asked.
func (s *Session) holdLimits() error {
	if !s.Launch.Held {
		return nil
	}
	manager, err := s.findManager()
	if err != nil {
		return err
	}
	s.runner.Hold = func(pids []int) error {
		defer manager.Close()
		ctx, cancel := context.WithTimeout(context.Background(), scopePatience)
		defer cancel()
		name := "claudebox-" + strings.ToLower(rand.Text()[:12]) + ".scope"
		return manager.Hold(ctx, name, pids, scope.Limits(s.Launch.Plan.Limits))
	}
	return nil
}
