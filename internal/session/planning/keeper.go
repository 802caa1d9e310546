package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/gcroot"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/plan/plancache"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/ui/progress"
)

// While a sandbox runs, a store path that is only mounted in it would be
// collected. What is in claudebox's own closure is kept by the running
// claudebox and by who installed it; the rest is held by one of these: the
// connection to the daemon that resolved it, a set of durable roots, or an
// open file of a plan that is in the store itself.

// Keeper protects store paths from garbage collection while a session lives, and writes the caches that the next
// launch reads. The caller closes it.
type Keeper struct {
	Call
	connection *nixdaemon.Client // to the daemon; nil: none was needed yet
	open       []io.Closer       // roots and open files that protect store paths
	writes     []func()          // see [Keeper.WriteLater]
}

// Close ends the protection of all store paths, but for durable roots.
func (k *Keeper) Close() error {
	var err error
	if k.connection != nil {
		err = k.connection.Close()
	}
	for _, one := range k.open {
		err = errors.Join(err, one.Close())
	}
	return err
}

// Store returns the connection to the Nix daemon. It is made when it is first used, and
// stays open until the end: as long, the daemon protects the paths that it was asked for.
func (k *Keeper) Store() *nixdaemon.Client {
	if k.connection == nil {
		k.connection = &nixdaemon.Client{}
		k.connection.Socket, k.connection.Options.Local = Daemon(k.Call)
	}
	return k.connection
}

// Daemon returns the socket of the host's Nix daemon. If there is none, local is
// the nix-daemon program, which serves a store that the user owns.
func Daemon(c Call) (socket, local string) {
	env := c.Facts.Env
	socket = nixdaemon.SocketPath(env.Value("NIX_DAEMON_SOCKET_PATH", ""), env.Value("NIX_STATE_DIR", ""))
	if isAbsent(socket) {
		if m, err := ReadManifest(c.Caller.Manifest); err == nil {
			local = filepath.Join(filepath.Dir(m.Tools[resolve.ToolNix]), "nix-daemon")
		}
	}
	return socket, local
}

// roots returns the folder of the roots that outlast a session.
func (k *Keeper) roots() gcroot.Folder {
	return gcroot.Folder{Dir: filepath.Join(k.Folders.Home, "roots"), Auto: gcroot.AutoDir}
}

// holdRoots keeps the roots that an earlier launch made for the paths of file, a plan, and reports whether they are all
// there.
func (k *Keeper) holdRoots(file string, paths []string) bool {
	if len(paths) == 0 {
		return true
	}
	set, ok := k.roots().Hold(file, paths)
	if ok {
		k.open = append(k.open, set)
	}
	return ok
}

// WriteLater leaves a function to [Keeper.WriteNow]: one that writes what the next launch reads.
func (k *Keeper) WriteLater(write func()) { k.writes = append(k.writes, write) }

// WriteNow calls the functions that [Keeper.WriteLater] was given. A launch does so once bwrap
// runs: then they do not delay the start, and claudebox's folder exists.
func (k *Keeper) WriteNow() {
	for _, write := range k.writes {
		write()
	}
}

// keepPlan caches a plan for the next launch, if its store paths can be protected as well.
func (k *Keeper) keepPlan(cache plancache.Cache, p plan.Plan, paths []string, seen plancache.FileStates) {
	if cache.File() == "" {
		return
	}
	if len(paths) > 0 && k.makeRoots(cache.File(), paths) != nil {
		return // only this session's connection protects the paths
	}
	cache.Keep(p, paths, seen)
}

// makeRoots makes durable roots for paths. of is the file that refers to them: a plan file, or one of the cache.
func (k *Keeper) makeRoots(of string, paths []string) error {
	set, err := k.roots().Make(context.Background(), k.Store(), of, paths)
	if err == nil {
		k.open = append(k.open, set)
	}
	return err
}

// beyondManifest lists the store paths of a resolution that are not in the manifest. Those of the manifest are in
// claudebox's own closure, and protected by that.
func beyondManifest(m *resolve.Manifest, res resolve.Resolution) []string {
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

// holdFile makes sure that the store paths of a plan file are in the store, and stay there while the session lives.
// A plan that a module made is in the store itself, and refers to them all: it is enough to have it open, as the
// garbage collector looks for the open files of every process.
func (k *Keeper) holdFile(file string, p plan.Plan) error {
	real, err := filepath.EvalSymlinks(k.Facts.Absolute(file))
	if err != nil {
		return diag.Wrap("read plan "+file, err, "")
	}
	paths := p.Roots()
	if _, err := storepath.Of(real); err == nil && len(absent(paths)) == 0 {
		f, err := os.Open(real)
		if err != nil {
			return diag.Wrap("read plan "+real, err, "")
		}
		k.open = append(k.open, f)
		return nil
	}
	if k.holdRoots(real, paths) {
		return nil
	}
	if err := k.fetch(file, paths); err != nil {
		return err
	}
	// if no roots can be made, the connection protects the paths, and the next launch needs one as well
	k.WriteLater(func() { _ = k.makeRoots(real, paths) })
	return nil
}

// A plan file may come from another machine. What it names is fetched by the
// daemon, from the binary caches that the daemon's own configuration trusts.

// foresight is a store in which nothing is fetched or built: it says what could not be.
type foresight struct{ *nixdaemon.Client }

// Realise says of which targets the daemon knows no way to have them.
func (f foresight) Realise(ctx context.Context, targets []string) (map[string]error, error) {
	missing, err := f.QueryMissing(ctx, targets)
	failed := map[string]error{}
	for _, target := range missing.Unknown {
		failed[target] = errors.New(cmp.Or(strings.Join(missing.Notes, "; "), "no binary cache has it"))
	}
	return failed, err
}

// fetch has the daemon protect the paths that a plan file names, and fetch those that
// are not in the store. It prints first how much that is.
func (k *Keeper) fetch(file string, paths []string) error {
	return k.waiting(func(ctx context.Context, p *progress.Line) error {
		valid, err := k.Store().Pin(ctx, paths)
		if err != nil {
			return err
		}
		gone := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return slices.Contains(valid, path) })
		if len(gone) == 0 {
			return nil
		}
		missing, err := k.Store().QueryMissing(ctx, gone)
		if err != nil {
			return err
		}
		realise := k.Store().Realise
		if k.Purpose.Look {
			realise = foresight{k.Store()}.Realise
		} else if n := len(missing.WillSubstitute); n > 0 {
			p.Say(fmt.Sprintf("%s: %d store paths are to be fetched, %d MiB, unpacked %d MiB",
				file, n, mebibytes(missing.DownloadSize), mebibytes(missing.NARSize)))
		}
		failed, err := realise(ctx, gone)
		if err != nil {
			return err
		}
		return notFetched(file, missing, failed)
	})
}

// mebibytes rounds up, so that only 0 is shown as 0.
func mebibytes(n uint64) uint64 { return (n + 1<<20 - 1) >> 20 }

// notFetched returns an error that names every path that could not be fetched, with what the daemon says of one of
// them; nil if failed is empty. A path that a cache has and the daemon did not take lacks, as a rule, a signature
// that the daemon trusts.
func notFetched(file string, missing nixdaemon.Missing, failed map[string]error) error {
	if len(failed) == 0 {
		return nil
	}
	paths := slices.Sorted(maps.Keys(failed))
	remedy := "copy them to a cache where the plan was made (`nix copy --to CACHE $(claudebox plan --store-paths)`), " +
		"and name it in `substituters` of this machine's nix.conf"
	refused := func(path string) bool { return slices.Contains(missing.WillSubstitute, path) }
	if slices.ContainsFunc(paths, refused) {
		remedy = "have the cache's paths signed (`nix store sign --key-file KEY` before `nix copy`), by a key " +
			"whose public part is among `trusted-public-keys` in this machine's nix.conf"
	}
	shorter := func(a, b string) int { return cmp.Compare(len(failed[a].Error()), len(failed[b].Error())) }
	shortest := failed[slices.MinFunc(paths, shorter)] // a daemon logs what it tried for others, too
	return diag.Errorf("read plan "+file, remedy, "%d of its store paths cannot be had:\n%s\nthe daemon says: %v",
		len(failed), strings.Join(paths, "\n"), shortest)
}

// absent returns those of paths that do not exist.
func absent(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !isAbsent(path) })
}

func isAbsent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// namesOf returns the names of a plan's packages and tools that paths belong to.
func namesOf(p plan.Plan, paths []string) []string {
	var names []string
	for _, pkg := range p.Pins.Packages {
		if slices.ContainsFunc(pkg.Outputs, func(o plan.Output) bool { return slices.Contains(paths, o.Path) }) {
			names = append(names, pkg.Attr)
		}
	}
	for _, tool := range p.Pins.Tools {
		if path, err := storepath.Of(tool.Path); err == nil && slices.Contains(paths, path) {
			names = append(names, filepath.Base(tool.Path))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
