package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/sandbox/storetree"
)

// nixPart is what Nix uses inside.
type nixPart struct {
	part
	dir      string // folder of a store of the sandbox's own; empty: there is none
	daemon   bool   // the host's is reached
	conf     []byte // nix.conf
	registry []byte // of flakes
}

// nixOf decides what Nix uses inside (SAND-07).
func nixOf(g ground, ownPIDs bool) (made nixPart, err error) {
	switch g.plan.Nix.Daemon {
	case "own":
		made, err = ownStore(g, ownPIDs)
	case "host":
		made, err = hostDaemon(g)
	default:
		made.conf = inside.NoConf("Nix is off in this sandbox")
	}
	pin := g.plan.Pins.Nixpkgs
	source := inside.Source{
		Path: pin.Path, Rev: pin.Rev, NarHash: pin.NarHash, LastModified: pin.LastModified,
		Nix: plan.ToolPath(g.plan, resolve.ToolNix),
	}
	made.registry, made.conf = source.Registry(), append(made.conf, source.Conf()...)
	return made, err
}

// ownStore gives the sandbox a store of its own over the host's.
func ownStore(g ground, ownPIDs bool) (made nixPart, err error) {
	p := g.plan
	err = tryStore(g)
	if p.Nix.Store == "closure" && !ownPIDs {
		err = errors.New("the plan's closure and a store of its own need a /proc that shows process 2")
	}
	if err != nil {
		made.conf = inside.NoConf("Nix cannot build in this sandbox, claudebox check says why")
		made.warn("Nix inside neither builds nor fetches: " + err.Error())
		return made, nil
	}
	dir, extra := inside.Choose(filepath.Join(g.Instance.Dir, "nix"))
	if extra {
		made.note("another session uses this project's Nix store: what Nix builds and fetches in " +
			"this one is gone at its end")
	}
	made.dir = dir
	allowed, err := hostpattern.ParseList(p.Network.Allow)
	if err != nil {
		return made, err
	}
	made.conf = inside.Conf(inside.CachesOf(g.etc.NixConf).Reached(
		func(name string) bool { return reaches(p.Network.Tier, allowed, name) }))
	for _, m := range []launch.Mount{
		{Kind: plan.Bind, Source: inside.Var(dir), Destination: inside.StateInner},
		{Kind: plan.ROBind, Source: inside.Upper(dir), Destination: inside.UpperInner},
		{Kind: plan.ROBind, Source: inside.SocketPath(dir), Destination: inside.SocketInner},
	} {
		m.Why = plan.Base
		made.mount(m)
	}
	isProfile := func(m plan.Mount) bool { return strings.Contains(m.Destination, "/.nix-profile") }
	if !slices.ContainsFunc(p.Mounts, isProfile) {
		made.mount(launch.Mount{
			Kind: plan.Symlink, Source: inside.NoProfile, Why: plan.Base,
			Destination: filepath.Join(g.Facts.Home, ".nix-profile"),
		})
	}
	return made, nil
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
func tryStore(g ground) error {
	var st unix.Stat_t
	if err := unix.Stat(g.folders.Home, &st); err != nil {
		return nil // the first launch makes it; the next one tries
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%s %d %s works\n", boot, st.Dev, g.folders.Home)
	file := filepath.Join(g.folders.Cache, "nix-inside")
	if string(cachefile.Read(file)) == key || g.why.Look {
		return nil
	}
	bwrap, env := plan.ToolPath(g.plan, resolve.ToolBwrap), plan.ToolPath(g.plan, resolve.ToolEnv)
	if err := launch.TryStore(bwrap, env, g.folders.Home); err != nil {
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

// nixStore is a store of the sandbox's own while a session runs, and the filter in
// front of the host's. The zero value is none.
type nixStore struct {
	slot   *inside.Slot
	filter *inside.Filter
}

// open makes the store of a launch in a folder ready, and the socket of the filter.
// It gives the launch, in another store where that is taken by now.
func (n *nixStore) open(l launch.Launch, dir string, store *nixdaemon.Store, tell io.Writer) (_ launch.Launch,
	err error,
) {
	n.slot, err = inside.Open(dir)
	if errors.Is(err, inside.ErrBusy) { // it was free when the launch was bound
		other, _ := inside.Choose(filepath.Dir(dir))
		l, dir = l.WithNixStore(dir, other), other
		n.slot, err = inside.Open(dir)
	}
	if err != nil {
		return l, err
	}
	for _, note := range n.slot.Notes {
		diag.Note(tell, note)
	}
	var only []string
	if l.Plan.Nix.Store == "closure" {
		only = l.Closure
		if err := n.slot.Lay(only, storetree.Points); err != nil {
			return l, &diag.Error{Op: "prepare the Nix store inside", Err: err}
		}
	}
	n.filter, err = inside.Listen(inside.Request{
		Dir: dir, Known: n.slot.Known, Only: only,
		Dial: func() (*os.File, error) { return nixdaemon.Connect(store.Socket, store.Options.Local) },
		Lost: func(why string) {
			diag.Note(tell, "Nix inside does no more in this session: "+why+"; start a new one")
		},
	})
	return l, err
}

// begin has the filter answer, and says so when it cannot be confined. It
// serves nobody then, so nothing has to wait for it.
func (n *nixStore) begin(tell io.Writer) {
	if filter := n.filter; filter != nil {
		go func() {
			if err := filter.Begin(); err != nil {
				diag.Print(tell, err)
			}
		}()
	}
}

// close ends the filter and lets go of the store.
func (n *nixStore) close() {
	if n.filter != nil {
		n.filter.Close()
	}
	if n.slot != nil {
		n.slot.Close()
	}
}

// hostDaemon lets the sandbox reach the host's daemon: in tier full only, as
// what it fetches passes no tier, and only when the daemon itself says that it
// does not trust this user, as for a trusted one its socket is a way to become
// root.
func hostDaemon(g ground) (made nixPart, err error) {
	const op = "reach the host's Nix daemon"
	made.conf = inside.NoConf("the host's Nix daemon is not reachable in this sandbox")
	if g.plan.Network.Tier != "full" {
		return made, diag.Errorf(op, "write `nix: {daemon: own}`, or leave it out",
			"in tier %s the daemon would fetch past the tier", g.plan.Network.Tier)
	}
	said, err := askDaemon(g)
	switch {
	case err != nil:
		return made, err
	case said.Trust != nixdaemon.NotTrusted.String():
		return made, diag.Errorf(op, "write `nix: {daemon: own}`, or take yourself out of `trusted-users` in nix.conf",
			"it does not say that it distrusts you, and would make the agent root (Nix before 2.15 cannot tell)")
	}
	made.daemon, made.conf = true, inside.DaemonConf(g.etc.NixConf)
	made.warn("the agent reaches the host's Nix daemon: it builds into the host's store, may collect its garbage, " +
		"and sees everybody's roots")
	if warning := said.warning(); warning != "" {
		made.warn(warning)
	}
	return made, nil
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
func askDaemon(g ground) (daemonSaid, error) {
	socket := plan.DaemonSocketDir + "/socket"
	key, err := daemonKey(socket, g.Facts.UID)
	if err != nil {
		return daemonSaid{}, err
	}
	file := filepath.Join(g.folders.Cache, "daemon")
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
	case g.why.Look:
		said.Failed = "this look does not ask, a launch does"
		return said, nil
	}
	if said.Builds, err = probeBuilds(client, g.plan, g.Facts.Home); err != nil {
		said.Failed = "it did not build the probe that would say: " + err.Error()
		return said, nil
	}
	cachefile.WriteBelow(file, append([]byte(key), cachefile.Encode(said)...))
	return said, nil
}

// probeBuilds has the daemon build something that looks for its database and for this user's home.
func probeBuilds(client *nixdaemon.Client, p plan.Plan, home string) (buildbox.Box, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	return buildbox.Probe{
		System: p.System, Bash: plan.ToolPath(p, resolve.ToolBash),
		Marks: []string{"/nix/var/nix/db", home}, Read: os.ReadFile,
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

// CollectGarbage removes from the Nix store inside of the project that the caller
// stands in what no root refers to: no link in the project. It gives what Nix
// said last. The database was the agent's to write, so Nix runs in a sandbox
// that has it, the layer of that store and nothing else, and no network.
func CollectGarbage(c Caller, o Options) (said string, err error) {
	const op = "collect the garbage of the Nix store inside"
	found, instance, err := keptFor(c, o)
	if err != nil {
		return "", err
	}
	dir, busy := inside.Choose(filepath.Join(instance, "nix"))
	if busy {
		return "", diag.Errorf(op, "end it first", "a session of this project uses it")
	}
	if _, err := os.Stat(dir); err != nil {
		return "nothing was built or fetched inside yet", nil
	}
	manifest, err := readManifest(c.Manifest)
	if err != nil {
		return "", err
	}
	slot, err := inside.Open(dir)
	if err != nil {
		return "", err
	}
	defer slot.Close()
	nix := filepath.Join(filepath.Dir(manifest.Tools[resolve.ToolNix]), "nix-store")
	words := inside.CollectWords(dir, found.Root, nix)
	cmd := exec.Command(manifest.Tools[resolve.ToolBwrap], words...)
	cmd.Env = []string{}
	filter, err := filterFile()
	if err != nil {
		return "", err
	}
	defer filter.Close()
	cmd.ExtraFiles = []*os.File{filter}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &diag.Error{Op: op, Err: err, Remedy: "it says: " + diag.Visible(lastLine(out))}
	}
	return diag.Visible(lastLine(out)), nil
}

// filterFile is the filter of system calls as bwrap reads it.
func filterFile() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(seccomp.Filter()) // a pipe takes as much at once
	w.Close()
	return r, err
}

func lastLine(text []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return lines[len(lines)-1]
}
