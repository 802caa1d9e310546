package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/nix/buildbox"
	"claudebox/internal/nix/inside"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/storetree"
)

// nixInside is what a launch needs besides its words to have a Nix store of its
// own.
type nixInside struct {
	call
	dir    string // folder of the store; empty: there is none
	slot   *inside.Slot
	filter *inside.Filter
}

// add decides what Nix uses inside (SAND-07).
func (n *nixInside) add(h *launch.Host, p plan.Plan) error {
	var err error
	switch p.Nix.Daemon {
	case "own":
		err = n.addOwnStore(h, p)
	case "host":
		err = n.addHostDaemon(h, p)
	default:
		h.NixConf = inside.NoConf("Nix is off in this sandbox")
	}
	pin := p.Pins.Nixpkgs
	source := inside.Source{
		Path: pin.Path, Rev: pin.Rev, NarHash: pin.NarHash, LastModified: pin.LastModified,
		Nix: plan.ToolPath(p, resolve.ToolNix),
	}
	h.Registry, h.NixConf = source.Registry(), append(h.NixConf, source.Conf()...)
	return err
}

// addOwnStore gives the sandbox a store of its own over the host's.
func (n *nixInside) addOwnStore(h *launch.Host, p plan.Plan) error {
	err := n.tryStore(h)
	if p.Nix.Store == "closure" && !h.OwnPIDs {
		err = errors.New("the plan's closure and a store of its own need a /proc that shows process 2")
	}
	if err != nil {
		h.NixConf = inside.NoConf("Nix cannot build in this sandbox, claudebox check says why")
		h.Warnings = append(h.Warnings, "Nix inside neither builds nor fetches: "+err.Error())
		return nil
	}
	dir, extra := inside.Choose(filepath.Join(h.State, "nix"))
	if extra {
		h.Notes = append(h.Notes, "another session uses this project's Nix store: what Nix builds and fetches in "+
			"this one is gone at its end")
	}
	n.dir, h.NixStore = dir, dir
	allowed, err := hostpattern.ParseList(p.Network.Allow)
	if err != nil {
		return err
	}
	caches := inside.CachesOf(h.Etc.NixConf).Reached(
		func(name string) bool { return reaches(p.Network.Tier, allowed, name) })
	h.NixConf = inside.Conf(caches)
	for _, m := range []launch.Mount{
		{Kind: plan.Bind, Source: inside.Var(dir), Destination: inside.StateInner},
		{Kind: plan.ROBind, Source: inside.Upper(dir), Destination: inside.UpperInner},
		{Kind: plan.ROBind, Source: inside.SocketPath(dir), Destination: inside.SocketInner},
	} {
		m.Why = plan.Base
		h.Mounts = append(h.Mounts, m)
	}
	profile := filepath.Join(h.Facts.Home, ".nix-profile")
	isProfile := func(m plan.Mount) bool { return strings.Contains(m.Destination, "/.nix-profile") }
	if !slices.ContainsFunc(p.Mounts, isProfile) {
		h.Mounts = append(h.Mounts, launch.Mount{
			Kind: plan.Symlink, Source: inside.NoProfile, Destination: profile, Why: plan.Base,
		})
	}
	return nil
}

// reaches reports whether a sandbox reaches a cache on the network.
func reaches(tier string, allowed hostpattern.List, name string) bool {
	if tier == launch.ListedTier {
		_, found := allowed.Find(name, httpsPort)
		return found
	}
	return tier != "none"
}

const httpsPort = 443

// tryStore says what keeps this machine from a store of the sandbox's own. That
// it can be had is kept for as long as the kernel runs and claudebox's folder
// lies where it does.
func (c call) tryStore(h *launch.Host) error {
	var st unix.Stat_t
	if err := unix.Stat(c.folders.Home, &st); err != nil {
		return nil // the first launch makes it; the next one tries
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%s %d %s works\n", boot, st.Dev, c.folders.Home)
	file := filepath.Join(c.folders.Cache, "nix-inside")
	if string(cachefile.Read(file)) == key || c.why.Look {
		return nil
	}
	if err := launch.TryStore(h.Bwrap, h.Env, c.folders.Home); err != nil {
		return err
	}
	cachefile.WriteBelow(file, []byte(key))
	return nil
}

// bootID names the running kernel.
func bootID() (string, error) {
	text, err := smallfile.Read("/proc/sys/kernel/random/boot_id", 1<<10)
	return strings.TrimSpace(string(text)), err
}

// open makes the store ready, and the socket of the filter in front of the
// host's. It gives the launch, in another store where that is taken by now.
func (n *nixInside) open(l launch.Launch, store *nixdaemon.Store) (_ launch.Launch, err error) {
	n.slot, err = inside.Open(n.dir)
	if errors.Is(err, inside.ErrBusy) { // it was free when the launch was bound
		dir, _ := inside.Choose(filepath.Dir(n.dir))
		l = l.WithNixStore(n.dir, dir)
		n.dir = dir
		n.slot, err = inside.Open(dir)
	}
	if err != nil {
		return l, err
	}
	for _, note := range n.slot.Notes {
		diag.Note(n.caller.Stderr, note)
	}
	var only []string
	if l.Plan.Nix.Store == "closure" {
		only = l.Closure
		if err := n.slot.Lay(only, storetree.Points); err != nil {
			return l, &diag.Error{Op: "prepare the Nix store inside", Err: err}
		}
	}
	n.filter, err = inside.Listen(inside.Request{
		Dir: n.dir, Known: n.slot.Known, Only: only,
		Dial: func() (*os.File, error) { return nixdaemon.Connect(store.Socket, store.Options.Local) },
		Lost: func(why string) {
			diag.Note(n.caller.Stderr, "Nix inside does no more in this session: "+why+"; start a new one")
		},
	})
	return l, err
}

// begin has the filter answer, and says so when it cannot be confined. It
// serves nobody then, so nothing has to wait for it.
func (n *nixInside) begin() {
	if n.filter == nil {
		return
	}
	go func(filter *inside.Filter) {
		if err := filter.Begin(); err != nil {
			diag.Print(n.caller.Stderr, err)
		}
	}(n.filter)
}

// close ends the filter and lets go of the store.
func (n *nixInside) close() {
	if n.filter != nil {
		n.filter.Close()
	}
	if n.slot != nil {
		n.slot.Close()
	}
	n.filter, n.slot = nil, nil
}

// addHostDaemon lets the sandbox reach the host's daemon: in tier full only, as
// what it fetches passes no tier, and only when the daemon itself says that it
// does not trust this user, as for a trusted one its socket is a way to become
// root.
func (c call) addHostDaemon(h *launch.Host, p plan.Plan) error {
	h.NixConf = inside.NoConf("the host's Nix daemon is not reachable in this sandbox")
	if p.Network.Tier != "full" {
		return diag.Errorf("reach the host's Nix daemon", "write `nix: {daemon: own}`, or leave it out",
			"in tier %s the daemon would fetch past the tier", p.Network.Tier)
	}
	said, err := c.askDaemon(p)
	switch {
	case err != nil:
		return err
	case said.Trust != nixdaemon.NotTrusted.String():
		return diag.Errorf("reach the host's Nix daemon",
			"write `nix: {daemon: own}`, or take yourself out of `trusted-users` in nix.conf",
			"it does not say that it distrusts you, and would make the agent root (Nix before 2.15 cannot tell)")
	}
	h.Daemon, h.NixConf = true, inside.DaemonConf(h.Etc.NixConf)
	h.Warnings = append(h.Warnings, "the agent reaches the host's Nix daemon: it builds into the host's store, may "+
		"collect its garbage, and sees everybody's roots")
	if warning := said.warning(); warning != "" {
		h.Warnings = append(h.Warnings, warning)
	}
	return nil
}

// daemonSaid is what the host's daemon says of itself.
type daemonSaid struct {
	Trust  string
	Builds buildbox.Box
	Failed string // why Builds is empty
}

// warning is what somebody should know of what the agent builds there.
func (d daemonSaid) warning() string {
	const builds = "what the agent builds through the Nix daemon "
	switch d.Builds {
	case buildbox.Closed:
		return ""
	case buildbox.Open:
		return builds + "runs outside every sandbox: the daemon builds without one"
	case buildbox.Relaxed:
		return builds + "runs outside every sandbox when it asks for that (__noChroot): the daemon's sandbox is relaxed"
	}
	return builds + "may run outside every sandbox: " + d.Failed
}

// Bounds on how long the daemon may take to say whom it trusts, and to build
// the probe: others may build there, too.
const (
	daemonWait = 2 * time.Second
	probeWait  = 20 * time.Second
)

// askDaemon is what the daemon says of this user and of what it builds. Asking
// costs more than the rest of a launch, so the answer is kept until something
// changes that it depends on. A look builds nothing.
func (c call) askDaemon(p plan.Plan) (daemonSaid, error) {
	socket := plan.DaemonSocketDir + "/socket"
	key, err := daemonKey(socket, c.Facts.UID)
	if err != nil {
		return daemonSaid{}, err
	}
	file := filepath.Join(c.folders.Cache, "daemon")
	var said daemonSaid
	if kept, ok := bytes.CutPrefix(cachefile.Read(file), []byte(key)); ok && cachefile.Decode(kept, &said) {
		return said, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), daemonWait)
	defer cancel()
	client, err := nixdaemon.Dial(ctx, socket, nixdaemon.Options{})
	if err != nil {
		return daemonSaid{}, err
	}
	defer client.Close()
	said.Trust = client.Info().Trust.String()
	switch {
	case said.Trust != nixdaemon.NotTrusted.String():
		return said, nil // no sandbox reaches it
	case c.why.Look:
		said.Failed = "this look does not ask, a launch does"
		return said, nil
	}
	if said.Builds, err = c.probeBuilds(client, p); err != nil {
		said.Failed = "it did not build the probe that would say: " + err.Error()
		return said, nil
	}
	cachefile.WriteBelow(file, append([]byte(key), cachefile.Encode(said)...))
	return said, nil
}

// probeBuilds has the daemon build something that looks for its database and
// for this user's home.
func (c call) probeBuilds(client *nixdaemon.Client, p plan.Plan) (buildbox.Box, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	return buildbox.Probe{
		System: p.System, Bash: plan.ToolPath(p, resolve.ToolBash),
		Marks: []string{"/nix/var/nix/db", c.Facts.Home}, Read: os.ReadFile,
	}.Ask(ctx, client)
}

// daemonKey names everything that the daemon's answers depend on: the running
// daemon by its socket, and by systemd's word where that keeps the socket; its
// configuration by the files' state; this user by id and groups; and the running
// kernel, as counters begin anew with it.
func daemonKey(socket string, uid int) (string, error) {
	groups, err := os.Getgroups()
	if err != nil {
		return "", err
	}
	slices.Sort(groups)
	state := cachefile.State(socket)
	if !cachefile.Known(state) {
		return "", fmt.Errorf("%s is %s", socket, state)
	}
	boot, err := bootID()
	if err != nil {
		return "", err
	}
	run, _ := os.Readlink("/run/systemd/units/invocation:nix-daemon.service")
	key := fmt.Sprintf("%s %d %v %s %s", boot, uid, groups, state, run)
	for _, file := range []string{"/etc/nix/nix.conf", "/etc/nix/nix.custom.conf", "/etc/group"} {
		key += " " + cachefile.State(file)
	}
	return key + "\n", nil
}
