// Package limits holds the limits of a profile: on the memory, the processor time and the processes of a sandbox.
package limits

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/aside"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/scope"
)

// Of warns of the limits in the profile that cannot be enforced here. limited reports whether systemd enforces
// those on memory and cpu; it is asked only if there are any. The limit on processes needs no systemd.
func Of(limits plan.Limits, env host.Environment) (made launch.Part, limited bool) {
	if limits.Memory <= 0 && limits.CPU <= 0 {
		return made, false
	}
	err := askSystemd(env, scope.Request{})
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

// Set puts the sandbox's processes into a scope of systemd.
func Set(limits plan.Limits, env host.Environment, pids []int) error {
	err := askSystemd(env, scope.Request{
		Name: "claudebox-" + strings.ToLower(rand.Text()[:12]) + ".scope",
		PIDs: pids, Limits: scope.Limits(limits),
	})
	if err != nil {
		const remedy = "see `systemctl --user status`, or leave memory and cpu out of the profile's limits"
		return &diag.Error{Op: "hold the limits by a scope of your systemd", Err: err, Remedy: remedy}
	}
	return nil
}
