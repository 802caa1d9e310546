package session

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/aside"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/scope"
)

// limitsOf warns of the limits in the profile that cannot be enforced here. limited reports whether systemd enforces
// those on memory and cpu; it is asked only if there are any. The limit on processes needs no systemd, if the kernel
// counts the sandbox's processes apart.
func limitsOf(in inputs) (made launch.Part, limited bool) {
	limits := in.Plan.Limits
	if limits.Memory <= 0 && limits.CPU <= 0 {
		if limits.Tasks > 0 && !launch.CountsProcesses() {
			made.Warn("limits: tasks does not hold: here the kernel does not count the sandbox's processes apart")
		}
		return made, false
	}
	err := askSystemd(in.Facts.Env, scope.Request{})
	if err != nil {
		made.Warn("limits: memory and cpu do not hold: " + err.Error())
	}
	return made, err == nil
}

// askSystemd asks the user's systemd, through claudebox's helper.
func askSystemd(env host.Environment, r scope.Request) error {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.Socket = scope.Socket(env.Get)
	return aside.AskHelper(ctx, scope.StageName, r, &struct{}{})
}

// setLimits puts the sandbox's processes into a scope of systemd.
func (s *Session) setLimits(pids []int) error {
	err := askSystemd(s.Facts.Env, scope.Request{
		Name: "claudebox-" + strings.ToLower(rand.Text()[:12]) + ".scope",
		PIDs: pids, Limits: scope.Limits(s.Launch.Plan.Limits),
	})
	if err != nil {
		const remedy = "see `systemctl --user status`, or leave memory and cpu out of the profile's limits"
		return &diag.Error{Op: "hold the limits by a scope of your systemd", Err: err, Remedy: remedy}
	}
	return nil
}
