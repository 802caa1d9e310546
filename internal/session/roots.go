package session

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nix/gcroot"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/plan/plancache"
	"claudebox/internal/plan/resolve"
)

// While a sandbox runs, a store path that is only mounted in it would be
// collected. What is in claudebox's own closure is kept by the running
// claudebox and by who installed it; the rest is held by one of these: the
// connection to the daemon that resolved it, a set of durable roots, or an
// open file of a plan that is in the store itself.

// keeper keeps store paths while a session lives, and what the next launch
// finds. The caller closes it.
type keeper struct {
	call
	held  *nixdaemon.Store // the connection; nil: none was needed yet
	holds []io.Closer      // roots and open files
	keeps []func()         // keep what the next launch finds
}

// Close lets go of all that is held.
func (k *keeper) Close() error {
	var err error
	if k.held != nil {
		err = k.held.Close()
	}
	for _, h := range k.holds {
		err = errors.Join(err, h.Close())
	}
	return err
}

// store is the connection to the Nix daemon, made when it is first used and
// kept until the end: the daemon keeps its paths as long.
func (k *keeper) store() *nixdaemon.Store {
	if k.held == nil {
		k.held = &nixdaemon.Store{}
		k.held.Socket, k.held.Options.Local = daemon(k.call)
	}
	return k.held
}

// daemon gives the socket of the host's Nix daemon and, where there is none, the
// program that serves a store which is the user's own.
func daemon(c call) (socket, local string) {
	env := c.Facts.Env
	socket = nixdaemon.SocketPath(env.Value("NIX_DAEMON_SOCKET_PATH", ""), env.Value("NIX_STATE_DIR", ""))
	if _, err := os.Lstat(socket); errors.Is(err, fs.ErrNotExist) {
		if m, err := readManifest(c.caller.Manifest); err == nil {
			local = filepath.Join(filepath.Dir(m.Tools[resolve.ToolNix]), "nix-daemon")
		}
	}
	return socket, local
}

func (k *keeper) roots() gcroot.Folder {
	return gcroot.Folder{Dir: filepath.Join(k.folders.Home, "roots"), Auto: gcroot.AutoDir}
}

// holdRoots holds the roots that were made for a file, and reports whether they
// are all there.
func (k *keeper) holdRoots(file string, paths []string) bool {
	if len(paths) == 0 {
		return true
	}
	set, ok := k.roots().Hold(file, paths)
	if ok {
		k.holds = append(k.holds, set)
	}
	return ok
}

// keepNow keeps what there is to keep. A launch does it when bwrap is at work:
// it takes nothing of the start, and claudebox's folder is there by then.
func (k *keeper) keepNow() {
	for _, keep := range k.keeps {
		keep()
	}
}

// later leaves something to [keeper.keepNow].
func (k *keeper) later(keep func()) { k.keeps = append(k.keeps, keep) }

// keepPlan keeps a plan for the next launch, if its paths can be kept, too.
func (k *keeper) keepPlan(cache plancache.Cache, p plan.Plan, paths []string, seen plancache.Witnesses) {
	if cache.File() == "" {
		return
	}
	if len(paths) > 0 && k.makeRoots(cache.File(), paths) != nil {
		return // this session holds them by its connection
	}
	cache.Keep(p, paths, seen)
}

func (k *keeper) makeRoots(of string, paths []string) error {
	set, err := k.roots().Make(context.Background(), k.store(), of, paths)
	if err == nil {
		k.holds = append(k.holds, set)
	}
	return err
}

// unheld is what a resolution has beyond the manifest, which is in claudebox's
// own closure.
func unheld(m *resolve.Manifest, res resolve.Resolution) []string {
	var paths []string
	for _, pkg := range res.Packages {
		for _, output := range pkg.Outputs {
			if m.Packages[pkg.Attr].Outputs[output.Name] != output.Path {
				paths = append(paths, output.Path)
			}
		}
	}
	if path := res.Nixpkgs.Path; path != "" && path != m.Nixpkgs.Path {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// holdFile sees to it that what a plan file names is in the store and stays
// there. A plan of a module is in the store itself, and refers to it all: it is
// enough to have it open, as the collector looks for the open files of every
// process.
func (k *keeper) holdFile(file string, p plan.Plan) error {
	real, err := filepath.EvalSymlinks(k.absolute(file))
	if err != nil {
		return &diag.Error{Op: "read plan " + file, Err: diag.Cause(err)}
	}
	if _, err := storepath.Of(real); err == nil && len(absent(p.Roots())) == 0 {
		return k.holdOpen(real)
	}
	paths := p.Roots()
	if k.holdRoots(real, paths) {
		return nil
	}
	if err := k.have(file, paths); err != nil {
		return err
	}
	// else the connection holds them, and is needed the next time as well
	k.later(func() { _ = k.makeRoots(real, paths) })
	return nil
}

func (k *keeper) holdOpen(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return &diag.Error{Op: "read plan " + file, Err: diag.Cause(err)}
	}
	k.holds = append(k.holds, f)
	return nil
}
