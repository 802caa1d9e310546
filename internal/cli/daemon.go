package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/launch"
	"claudebox/internal/nixdaemon"
	"claudebox/internal/plan"
)

// addDaemon decides whether the Nix daemon may be reached inside. Until there
// is a gate in front of it, it may in tier full only, and only when the
// daemon itself says that it does not trust this user: for a trusted one its
// socket is a way to become root (SAND-07).
func (s *session) addDaemon(h *launch.Host, p plan.Plan, _ options, why purpose) error {
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
func (s *session) daemonTrust(why purpose) (string, error) {
	socket := plan.DaemonSocketDir + "/socket"
	key, err := trustKey(socket, s.facts.UID)
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.folders.cache, "daemon-trust")
	if kept, err := os.ReadFile(file); err == nil {
		if trust, ok := strings.CutPrefix(string(kept), key); ok {
			return strings.TrimSpace(trust), nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), daemonWait)
	defer cancel()
	client, err := nixdaemon.Dial(ctx, socket, nixdaemon.Options{})
	if err != nil {
		return "", err
	}
	defer client.Close()
	trust := client.Info().Trust.String()
	if !why.look {
		keep(file, key+trust+"\n")
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
	state, err := fileState(socket)
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s %d %v %s", strings.TrimSpace(string(boot)), uid, groups, state)
	for _, file := range []string{"/etc/nix/nix.conf", "/etc/nix/nix.custom.conf", "/etc/group"} {
		state, err := fileState(file)
		if err != nil {
			state = "absent"
		}
		key += " " + state
	}
	return key + " trust ", nil
}

// fileState changes whenever a file is written or replaced.
func fileState(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d:%d:%d.%09d", st.Dev, st.Ino, st.Size, st.Ctim.Sec, st.Ctim.Nsec), nil
}

// keep writes a cache file. A cache that cannot be written only costs time.
func keep(file, content string) {
	if os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	temporary := fmt.Sprintf("%s.%d", file, os.Getpid())
	if os.WriteFile(temporary, []byte(content), 0o600) != nil || os.Rename(temporary, file) != nil {
		os.Remove(temporary)
	}
}
