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

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/inside"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/sandbox/storetree"
	"claudebox/internal/workspace/project"
)

// nixPart is what Nix uses inside.
type nixPart struct {
	part
	launch.Nix
}

// nixOf decides what Nix uses inside.
func nixOf(in inputs) (made nixPart, err error) {
	switch in.plan.Nix.Daemon {
	case "own":
		made = ownStore(in)
	case "host":
		made, err = hostDaemon(in)
	default:
		made.off("Nix is off in this sandbox")
	}
	if made.Registry != nil {
		return made, err
	}
	pin := in.plan.Pins.Nixpkgs
	source := inside.Source{
		Path: pin.Path, Rev: pin.Rev, NarHash: pin.NarHash, LastModified: pin.LastModified,
		Nix: plan.ToolPath(in.plan, resolve.ToolNix),
	}
	made.Registry, made.Conf = source.Registry(), append(made.Conf, source.Conf()...)
	return made, err
}

// off leaves Nix without a store: whatever needs one names why. It evaluates, as long as it needs none.
func (p *nixPart) off(why string) {
	p.Conf, p.Registry = inside.NoConf(why), inside.NoRegistry(why)
	p.set("NIX_PATH", "nixpkgs="+inside.Nowhere(why), "nix")
}

// ownStore gives the sandbox a store of its own over the host's. If this machine cannot, Nix inside only evaluates,
// and a warning says why.
func ownStore(in inputs) (made nixPart) {
	p := in.plan
	if err := tryStore(in); err != nil {
		made.off("Nix cannot build in this sandbox, claudebox check says why")
		made.warn("Nix inside neither builds nor fetches: " + err.Error())
		return made
	}
	dir, extra := inside.Choose(filepath.Join(in.Instance.Dir, "nix"))
	if extra {
		made.note("another session uses this project's Nix store: what Nix builds and fetches in " +
			"this one is gone at its end")
	}
	made.Store = dir
	made.Conf = inside.Conf(cachesInside(in), in.etc.NixConf)
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
			Destination: filepath.Join(in.Facts.Home, ".nix-profile"),
		})
	}
	return made
}

const httpsPort = 443

// cachesInside are the binary caches of the host that Nix inside can reach.
func cachesInside(in inputs) inside.Caches {
	return inside.CachesOf(in.etc.NixConf).Reached(func(name string) bool {
		return reaches(in.plan.Network, name, httpsPort)
	})
}

// tryStore returns an error that says why this machine cannot give a sandbox a store of its own. Success is cached
// until the next boot, or until claudebox's folder moves. With [Purpose.Look] or [Purpose.Dry] it does not try, and
// returns nil.
func tryStore(in inputs) error {
	var st unix.Stat_t
	if err := unix.Stat(in.folders.Home, &st); err != nil {
		return nil // the first launch makes it; the next one tries
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	bwrap, env, nix := in.tools[resolve.ToolBwrap], in.tools[resolve.ToolEnv], in.tools[resolve.ToolNix]
	key := fmt.Sprintf("%s %d %s %s works\n", boot, st.Dev, in.folders.Home, nix)
	file := filepath.Join(in.folders.Cache, "nix-inside")
	if string(cachefile.Read(file)) == key || in.why.Look || in.why.Dry {
		return nil
	}
	if err := launch.TryStore(bwrap, env, nix, in.folders.Home); err != nil {
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

// nixStore is the sandbox's own store while a session runs, and the filter between the sandbox and the host's
// daemon. The zero value has neither.
type nixStore struct {
	slot   *inside.Slot
	filter *inside.Filter
}

// open prepares the sandbox's store in dir, and the filter's socket. If another session has taken dir by now, it
// uses another folder. It returns the launch with the folder that is used.
func (n *nixStore) open(l launch.Launch, dir string, store *nixdaemon.Client, tell io.Writer,
	lost func(string),
) (_ launch.Launch, err error) {
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
		Dial: func(ctx context.Context) (*os.File, error) {
			return nixdaemon.Connect(ctx, store.Socket, store.Options.Local)
		},
		Lost: func(why string) {
			lost("Nix inside does no more in this session: " + why + "; start a new one")
		},
	})
	return l, err
}

// begin starts the filter, for the sandbox of bwrap, in the background. A filter that cannot be confined
// serves nobody, and the error is printed: so nothing has to wait for it.
func (n *nixStore) begin(bwrap int, tell io.Writer) {
	if filter := n.filter; filter != nil {
		go func() {
			if err := filter.Begin(bwrap); err != nil {
				diag.Print(tell, err)
			}
		}()
	}
}

// close ends the filter and releases the store.
func (n *nixStore) close() {
	if n.filter != nil {
		n.filter.Close()
	}
	if n.slot != nil {
		n.slot.Close()
	}
}

// hostDaemon lets the sandbox reach the host's daemon. It returns an error outside tier full, as what the daemon
// fetches passes no tier; and unless the daemon itself says that it does not trust this user, as for a trusted one
// its socket is a way to become root.
func hostDaemon(in inputs) (made nixPart, err error) {
	const op = "reach the host's Nix daemon"
	if in.plan.Network.Tier != profile.TierFull {
		return made, diag.Errorf(op, "write `nix: {daemon: own}`, or leave it out",
			"in tier %s the daemon would fetch past the tier", in.plan.Network.Tier)
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
	made.Daemon, made.Conf = true, inside.DaemonConf(in.etc.NixConf)
	made.warn("the agent reaches the host's Nix daemon: it builds into the host's store, may collect its garbage, " +
		"and sees everybody's roots")
	made.warn("what the agent builds through the Nix daemon runs outside this sandbox, and sees of the host what the " +
		"daemon's setting `sandbox` leaves open")
	return made, nil
}

// CollectGarbage removes from the Nix store inside, of the project that the caller stands in, all paths that no root
// refers to; the roots are the links in the project. It returns the last line that Nix printed. The agent could
// write the database, so Nix runs in a sandbox that has it, the layer of that store and nothing else, and no network.
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
	facts, err := host.Detect()
	if err != nil {
		return "", err
	}
	links := [][2]string{
		{found.InstanceRoot, found.InstanceRoot},
		{filepath.Join(instance, "cache"), filepath.Join(facts.Home, ".cache")},
	}
	if slices.ContainsFunc(found.Mounts, func(m project.Mount) bool { return isDirenv(found, m) }) {
		links = append(links, [2]string{filepath.Join(instance, direnvFolder(found)), found.Path + "/.direnv"})
	}
	words := inside.CollectWords(dir, links, nix)
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

// filterFile returns a pipe from which bwrap reads the filter of system calls.
func filterFile() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(seccomp.Filter()) // fits into the pipe's buffer, so it does not block
	w.Close()
	return r, err
}

func lastLine(text []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return lines[len(lines)-1]
}
