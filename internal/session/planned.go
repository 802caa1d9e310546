package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/plan/plancache"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
)

// planner finds or makes the plan of a launch. What that needs of the store its keeper holds.
type planner struct {
	call
	keeper *keeper
}

// planned is the plan of a launch, with what is to be known of it.
type planned struct {
	plan    plan.Plan
	orders  []string // files that it was made of: one that lies in the project says what the next sandbox may do
	missing []string // packages that a dry run did not fetch
	remarks []string // on the project's own profile
}

// plan finds the plan of a launch: the file of a flag, a plan that a module
// made, or one made now from a profile. Then what the project brings is laid over
// it, judged by what the flags leave of the profile.
func (p planner) plan() (found planned, err error) {
	if err := p.options.judgeTier(); err != nil {
		return planned{}, err
	}
	ref, file := p.ref(), p.options.Plan
	if file == "" {
		file = modulePlan(p.folders.Search(), ref)
	}
	if file != "" {
		found, err = p.read(file)
	} else {
		found, err = p.make(p.cache(ref), func(files profiledir.Files) (profile.Profile, diag.Problems, error) {
			return profile.Load(ref, files)
		})
	}
	if err == nil {
		found, err = p.overlay(found)
	}
	if err != nil {
		return planned{}, err
	}
	found.orders = append(orders(p.call), found.orders...)
	if p.options.Network != "" {
		found.plan = found.plan.WithTier(p.options.Network)
	}
	ports, err := parsePublish(p.options.Publish)
	for _, port := range ports {
		found.plan = found.plan.WithPorts(int(port.Inside))
	}
	return found, err
}

// orders are the files of the command line that say what a sandbox may do. In
// the project an agent could change what the next one may.
func orders(c call) (list []string) {
	if profile.IsFile(c.ref()) {
		list = append(list, c.files().Absolute(c.ref(), diag.Position{}))
	}
	if c.options.Plan != "" {
		list = append(list, c.files().Absolute(c.options.Plan, diag.Position{}))
	}
	return list
}

// judgeTier refuses a tier of --network that there is not.
func (o Options) judgeTier() error {
	switch o.Network {
	case "", profile.TierFull, profile.TierInet, profile.TierAllow, profile.TierNone:
		return nil
	}
	return diag.Errorf("read --network", "use full, inet, allow or none", "there is no tier %q", o.Network)
}

// modulePlan finds a plan that a module made for a profile. It wins over a
// profile of that name in the same place, not over one in an earlier place.
func modulePlan(places []string, ref string) (file string) {
	if profile.IsFile(ref) {
		return ""
	}
	for _, dir := range places {
		file := filepath.Join(dir, "plans", ref+".json")
		if _, err := os.Stat(file); err == nil {
			return file
		}
		for _, extension := range profile.Extensions {
			if _, err := os.Stat(filepath.Join(dir, "profiles", ref+extension)); err == nil {
				return ""
			}
		}
	}
	return ""
}

// read reads a plan file, checks that it fits this machine now, and sees to it
// that its store paths stay. A file that has not changed since the last time is
// not decoded again.
func (p planner) read(file string) (planned, error) {
	cache := p.cache("plan file", file)
	kept, found := cache.Find()
	if !found {
		var seen plancache.Witnesses
		seen.Note(file)
		var err error
		if kept.Plan, err = decodePlan(file); err != nil {
			return planned{}, err
		}
		p.keeper.later(func() { cache.Keep(kept.Plan, nil, seen) })
	} else {
		p.keeper.later(func() { cache.Renew(kept) })
	}
	read := planned{plan: kept.Plan}
	if p.why.Look {
		read.missing = namesOf(read.plan, absent(read.plan.Roots()))
		return read, nil
	}
	return read, p.keeper.holdFile(file, read.plan)
}

func decodePlan(file string) (plan.Plan, error) {
	op := "read plan " + file
	src, err := os.ReadFile(file)
	if err != nil {
		return plan.Plan{}, diag.Wrap(op, err, "name a file that `claudebox plan --pinned` has written")
	}
	p, err := plan.Decode(file, src)
	if err != nil {
		return plan.Plan{}, err
	}
	if p.System != nixSystem() {
		return plan.Plan{}, diag.Errorf(op, "make it anew on this machine", "it is for %s; this is %s", p.System,
			nixSystem())
	}
	return p, nil
}

// make finds the plan that is kept in a cache, or makes one of the profile that load gives.
func (p planner) make(cache plancache.Cache,
	load func(profiledir.Files) (profile.Profile, diag.Problems, error),
) (planned, error) {
	if kept, found := cache.Find(); found && p.keeper.holdRoots(cache.File(), kept.Roots) {
		p.keeper.later(func() { cache.Renew(kept) })
		return planned{plan: kept.Plan, orders: filesOf(kept.Made)}, nil
	}
	files, seen := p.files(), plancache.Witnesses{}
	files.Seen = seen.Note
	seen.Note(p.caller.Manifest)
	prof, warnings, err := load(files)
	if err != nil {
		return planned{}, err
	}
	diag.Warn(p.caller.Stderr, warnings...)
	made, paths, err := p.planOf(prof)
	made.orders = filesOf(seen)
	if err == nil && !p.why.Look && len(warnings) == 0 {
		p.keeper.later(func() { p.keeper.keepPlan(cache, made.plan, paths, seen) })
	}
	return made, err
}

// planOf makes the plan of a profile. paths are what nothing keeps in the store but this session.
func (p planner) planOf(prof profile.Profile) (made planned, paths []string, err error) {
	manifest, err := readManifest(p.caller.Manifest)
	if err != nil {
		return planned{}, nil, err
	}
	var res resolve.Resolution
	err = p.keeper.waiting(func(ctx context.Context, _ *progress) (err error) {
		res, err = p.resolve(ctx, manifest, prof)
		return err
	})
	if err != nil {
		return planned{}, nil, err
	}
	made.missing = res.Missing
	made.plan, err = plan.Build(prof, res)
	return made, unheld(manifest, res), err
}

// LookUp looks the packages of a profile up, where there is a manifest. What is
// no package is in its [diag.Problems]; another error says why they could not
// be looked up.
func LookUp(c Caller, prof profile.Profile) error {
	if _, err := os.Stat(c.Manifest); err != nil {
		return nil //nolint:nilerr // without one there is nothing to look them up in
	}
	asked, err := newCall(c, Options{}, Purpose{Look: true, Keep: true})
	if err != nil {
		return err
	}
	k := &keeper{call: asked}
	_, _, err = planner{asked, k}.planOf(prof)
	return errors.Join(err, k.Close())
}

// filesOf are the files that a plan was made of, without those that were not there.
func filesOf(made plancache.Witnesses) []string {
	var files []string
	for _, w := range made {
		if cachefile.Known(w.State) && !slices.Contains(files, w.Path) {
			files = append(files, w.Path)
		}
	}
	return files
}

// cache is where the plan of a profile is kept: the question is what it
// was made of, with all that decides which files are looked for.
func (p planner) cache(question ...string) plancache.Cache {
	f := p.Facts
	question = slices.Concat(question, []string{p.caller.Version, p.caller.Manifest, f.Cwd, f.Home}, p.folders.Search())
	for _, name := range nixVariables {
		question = append(question, f.Env.Value(name, ""))
	}
	return plancache.For(filepath.Join(p.folders.Home, "plan-cache"), f.UID, p.build, question...)
}

// readManifest reads what Nix knew when claudebox was built. Without it there
// is no shell and no tool that a sandbox could be given.
func readManifest(file string) (*resolve.Manifest, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, diag.Errorf("read claudebox's manifest",
			"use the claudebox that the flake builds: `nix run .#claudebox`", "there is none at %s", file)
	}
	defer f.Close()
	return resolve.ReadManifest(f)
}

func (p planner) resolve(ctx context.Context, m *resolve.Manifest, prof profile.Profile) (resolve.Resolution, error) {
	store, cache := p.keeper.store(), filepath.Join(p.folders.Cache, "resolve")
	if p.why.Dry {
		cache = ""
	}
	evaluator := nixeval.Evaluator{Program: filepath.Join(filepath.Dir(m.Tools[resolve.ToolNix]), "nix-instantiate")}
	for _, name := range nixVariables {
		if value, ok := p.Facts.Env.Get(name); ok {
			evaluator.Env = append(evaluator.Env, name+"="+value)
		}
	}
	system := nixSystem()
	if p.why.Keep {
		system = "" // the manifest's
	}
	res, err := resolve.Packages(ctx, resolve.Request{
		Manifest: m, System: system, Packages: prof.Packages, Toolbox: prof.Toolbox, Sources: prof.Sources,
		Nixpkgs: prof.Nixpkgs, Store: store, Evaluator: evaluator, Cache: cache, DryRun: p.why.Look,
	})
	if prof.Nix.Daemon == profile.DaemonOff {
		res.Nixpkgs.Path = "" // what was looked up is found; nothing inside reads the source
	}
	if err != nil || prof.Nix.Store != profile.StoreClosure {
		return res, err
	}
	res.Closure, err = closureOf(ctx, store, m, res, named(prof))
	return res, err
}

// nixVariables say to Nix where its store is and how to reach it. They are all
// that an evaluation learns of the caller's environment.
var nixVariables = []string{
	"NIX_REMOTE", "NIX_DAEMON_SOCKET_PATH", "NIX_STATE_DIR", "NIX_CONF_DIR", "NIX_SSL_CERT_FILE",
}

// named are the store paths that a profile's variables and mounts name, as far as they are there.
func named(prof profile.Profile) []string {
	var paths []string
	for _, v := range prof.Env {
		paths = append(paths, storepath.In(v.Value)...)
	}
	for _, m := range prof.Mounts {
		paths = append(paths, storepath.In(m.Host)...)
	}
	gone := absent(paths)
	return slices.DeleteFunc(paths, func(path string) bool { return slices.Contains(gone, path) })
}

// closureOf is everything that the packages, the tools and further paths refer
// to, for a sandbox that shall see no more of the store. The daemon is asked
// when the manifest does not know it all.
func closureOf(ctx context.Context, store *nixdaemon.Store, m *resolve.Manifest, res resolve.Resolution,
	roots []string,
) ([]string, error) {
	for _, pkg := range res.Packages {
		for _, output := range pkg.Outputs {
			roots = append(roots, output.Path)
		}
	}
	for _, tool := range res.Tools {
		if path, err := storepath.Of(tool); err == nil {
			roots = append(roots, path)
		}
	}
	if res.Nixpkgs.Path != "" {
		roots = append(roots, res.Nixpkgs.Path)
	}
	if references, err := manifestReferences(m); err != nil {
		return nil, err
	} else if paths, known := references.Closure(roots); known {
		return paths, nil
	}
	return closure(ctx, store, roots)
}

func manifestReferences(m *resolve.Manifest) (resolve.References, error) {
	if m.References == "" {
		return nil, nil
	}
	f, err := os.Open(m.References)
	if err != nil {
		return nil, diag.Wrap("read what claudebox was built with", err, "install claudebox again")
	}
	defer f.Close()
	return resolve.ReadReferences(f)
}

// closure is the sorted paths of everything that roots refer to.
func closure(ctx context.Context, store *nixdaemon.Store, roots []string) ([]string, error) {
	slices.Sort(roots)
	infos, err := closureInfos(ctx, store, slices.Compact(roots))
	paths := make([]string, len(infos))
	for i, info := range infos {
		paths[i] = info.Path
	}
	return paths, err
}

func closureInfos(ctx context.Context, store *nixdaemon.Store, roots []string) ([]*nixdaemon.PathInfo, error) {
	client, err := store.Client(ctx)
	if err != nil {
		return nil, err
	}
	return client.Closure(ctx, roots)
}

// nixSystem is this machine as Nix names it.
func nixSystem() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return arch + "-" + runtime.GOOS
}
