package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// addDaemon decides whether the Nix daemon may be reached inside. Until there
// is a gate in front of it, it may in tier full only, and only when the
// daemon itself says that it does not trust this user: for a trusted one its
// socket is a way to become root (SAND-07).
func (s *Session) addDaemon(h *launch.Host, p plan.Plan, _ Options, why Purpose) error {
	if p.Nix.Daemon == "off" {
		return nil
	}
	if p.Network.Tier != "full" {
		h.Notes = append(h.Notes, "the Nix daemon is not reachable inside in tier "+p.Network.Tier)
		return nil
	}
	trust, err := s.daemonTrust(why)
	switch {
	case err != nil:
		h.Notes = append(h.Notes, "the Nix daemon is not reachable inside: "+err.Error())
	case trust != nixdaemon.NotTrusted.String():
		h.Warnings = append(h.Warnings, "the Nix daemon is not reachable inside: it does not say that it distrusts you "+
			"(take yourself out of `trusted-users` in nix.conf; Nix before 2.15 cannot tell)")
	default:
		h.Daemon = true
		if off := h.Etc.NixSandbox; off == "false" || off == "relaxed" {
			h.Warnings = append(h.Warnings, "what the agent builds through the Nix daemon runs outside the sandbox: nix.conf has sandbox = "+off)
		}
	}
	return nil
}

// daemonWait bounds how long the daemon may take to say whom it trusts.
const daemonWait = 2 * time.Second

// daemonTrust is what the daemon says of this user. Asking costs more than
// the rest of a launch, so the answer is kept until something changes that
// it depends on.
func (s *Session) daemonTrust(why Purpose) (string, error) {
	socket := plan.DaemonSocketDir + "/socket"
	key, err := trustKey(socket, s.Facts.UID)
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.folders.Cache, "daemon-trust")
	if trust, ok := strings.CutPrefix(string(cachefile.Read(file)), key); ok {
		return strings.TrimSpace(trust), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), daemonWait)
	defer cancel()
	client, err := nixdaemon.Dial(ctx, socket, nixdaemon.Options{})
	if err != nil {
		return "", err
	}
	defer client.Close()
	trust := client.Info().Trust.String()
	if !why.Look {
		cachefile.WriteBelow(file, []byte(key+trust+"\n"))
	}
	return trust, nil
}

// trustKey names everything that the daemon's answer depends on: the running
// daemon by its socket, its configuration by the files' state, this user by
// id and groups, and the running kernel, as counters begin anew with it.
func trustKey(socket string, uid int) (string, error) {
	groups, err := os.Getgroups()
	if err != nil {
		return "", err
	}
	slices.Sort(groups)
	state := cachefile.State(socket)
	if !cachefile.Known(state) {
		return "", fmt.Errorf("%s is %s", socket, state)
	}
	boot, err := smallfile.Read("/proc/sys/kernel/random/boot_id", 1<<10)
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s %d %v %s", strings.TrimSpace(string(boot)), uid, groups, state)
	for _, file := range []string{"/etc/nix/nix.conf", "/etc/nix/nix.custom.conf", "/etc/group"} {
		key += " " + cachefile.State(file)
	}
	return key + " trust ", nil
}
