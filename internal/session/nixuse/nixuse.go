// Package nixuse is what the agent uses of Nix: a store of its own over the host's, the host's daemon, or none.
package nixuse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/inside"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/networking"
)

// Request is what decides on Nix inside.
type Request struct {
	Plan     plan.Plan
	Tools    map[string]string // claudebox's own, by their names
	Host     []byte            // the public lines of this machine's nix.conf
	Home     string            // the user's
	Folders  profiledir.Folders
	Instance string // the instance's folder
	Look     bool   // nothing is tried
}

// Part is what Nix uses inside.
type Part struct {
	launch.Part
	launch.Nix
}

// Of decides what Nix uses inside.
func Of(r Request) (made Part, err error) {
	switch r.Plan.Nix.Daemon {
	case "own":
		made = ownStore(r)
	case "host":
		made, err = hostDaemon(r)
	default:
		made.off("Nix is off in this sandbox")
	}
	if made.Registry != nil {
		return made, err
	}
	pin := r.Plan.Pins.Nixpkgs
	source := inside.Source{
		Path: pin.Path, Rev: pin.Rev, NarHash: pin.NarHash, LastModified: pin.LastModified,
		Nix: plan.ToolPath(r.Plan, resolve.ToolNix),
	}
	made.Registry, made.Conf = source.Registry(), append(made.Conf, source.Conf()...)
	return made, err
}

// off leaves Nix without a store: whatever needs one names why. It evaluates, as long as it needs none.
func (p *Part) off(why string) {
	p.Conf, p.Registry = inside.NoConf(why), inside.NoRegistry(why)
	p.Set("NIX_PATH", "nixpkgs="+inside.Nowhere(why), "nix")
}

// ownStore gives the sandbox a store of its own over the host's. If this machine cannot, Nix inside only evaluates,
// and a warning says why.
func ownStore(r Request) (made Part) {
	p := r.Plan
	if err := tryStore(r); err != nil {
		made.off("Nix cannot build in this sandbox, claudebox check says why")
		made.Warn("Nix inside neither builds nor fetches: " + err.Error())
		return made
	}
	dir, extra := inside.Choose(filepath.Join(r.Instance, "nix"))
	if extra {
		made.Note("another session uses this project's Nix store: what Nix builds and fetches in " +
			"this one is gone at its end")
	}
	made.Store = dir
	made.Conf = inside.Conf(Caches(r.Host, r.Plan.Network), r.Host)
	for _, m := range []launch.Mount{
		{Kind: plan.Bind, Source: inside.Var(dir), Destination: inside.StateInner},
		{Kind: plan.ROBind, Source: inside.Upper(dir), Destination: inside.UpperInner},
		{Kind: plan.ROBind, Source: inside.SocketPath(dir), Destination: inside.SocketInner},
	} {
		m.Why = plan.Base
		made.Mount(m)
	}
	isProfile := func(m plan.Mount) bool { return strings.Contains(m.Destination, "/.nix-profile") }
	if !slices.ContainsFunc(p.Mounts, isProfile) {
		made.Mount(launch.Mount{
			Kind: plan.Symlink, Source: inside.NoProfile, Why: plan.Base,
			Destination: filepath.Join(r.Home, ".nix-profile"),
		})
	}
	return made
}

const httpsPort = 443

// Caches are the binary caches of the host that Nix inside can reach.
func Caches(host []byte, network plan.Network) inside.Caches {
	return inside.CachesOf(host).Reached(func(name string) bool {
		return networking.Reaches(network, name, httpsPort)
	})
}

// tryStore returns an error that says why this machine cannot give a sandbox a store of its own. Success is cached
// until the next boot, or until claudebox's folder moves. With [Request.Look] it does not try, and returns nil.
func tryStore(r Request) error {
	if r.Look {
		return nil
	}
	var st unix.Stat_t
	if os.Mkdir(r.Folders.Home, 0o700) == nil { // the first launch tries as well, and makes it for good later
		defer os.Remove(r.Folders.Home)
	}
	if unix.Stat(r.Folders.Home, &st) != nil {
		return nil // the launch says why it cannot be made
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	bwrap, env, nix := r.Tools[resolve.ToolBwrap], r.Tools[resolve.ToolEnv], r.Tools[resolve.ToolNix]
	key := fmt.Sprintf("%s %d %s %s works\n", boot, st.Dev, r.Folders.Home, nix)
	file := filepath.Join(r.Folders.Cache, "nix-inside")
	if string(cachefile.Read(file)) == key {
		return nil
	}
	err = launch.TryStore(bwrap, env, nix, r.Folders.Home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another first launch has just taken its folder away
	}
	if err != nil {
		return err
	}
	cachefile.Write(file, []byte(key))
	return nil
}

// bootID returns the id that the kernel makes at each boot.
func bootID() (string, error) {
	text, err := smallfile.Read("/proc/sys/kernel/random/boot_id", 1<<10)
	return strings.TrimSpace(string(text)), err
}

// hostDaemon lets the sandbox reach the host's daemon. It returns an error outside tier full, as what the daemon
// fetches passes no tier; and unless the daemon itself says that it does not trust this user, as for a trusted one
// its socket is a way to become root.
func hostDaemon(r Request) (made Part, err error) {
	const op = "reach the host's Nix daemon"
	if r.Plan.Network.Tier != profile.TierFull {
		return made, diag.Errorf(op, "write `nix: {daemon: own}`, or leave it out",
			"in tier %s the daemon would fetch past the tier", r.Plan.Network.Tier)
	}
	client, err := nixdaemon.Dial(context.Background(), plan.DaemonSocketDir+"/socket", nixdaemon.Options{})
	if err != nil {
		return made, err
	}
	defer client.Close()
	if client.Info().Trust != nixdaemon.NotTrusted {
		return made, diag.Errorf(op, "write `nix: {daemon: own}`, or take yourself out of `trusted-users` in nix.conf",
			"it does not say that it distrusts you, and would make the agent root (Nix before 2.15 cannot tell)")
	}
	made.Daemon, made.Conf = true, inside.DaemonConf(r.Host)
	made.Warn("the agent reaches the host's Nix daemon: it builds into the host's store, may collect its garbage, " +
		"and sees everybody's roots")
	made.Warn("what the agent builds through the Nix daemon runs outside this sandbox, and sees of the host what the " +
		"daemon's setting `sandbox` leaves open")
	return made, nil
}
