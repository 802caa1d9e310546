package planning

import (
	"context"
	"errors"
	"maps"
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
	"claudebox/internal/session/networking"
	"claudebox/internal/ui/progress"
)

// Planner finds or makes the plan of a launch. The keeper protects the plan's store paths from garbage collection.
type Planner struct {
	Call
	Keeper *Keeper
}

// Planned is the plan of a launch, with facts that are not in the plan itself.
type Planned struct {
	Plan     plan.Plan
	OwnFiles []string // profiles and plans that claudebox obeys: they say what the next sandbox may do
	Missing  []string // packages that are not in the store yet, if nothing may be fetched
	Remarks  []string // for the user, on the project's own profile

	// Tools are the manifest's, by their names: what runs on this host is claudebox's own, whatever a plan file says.
	Tools map[string]string
}

// Plan returns the plan of a launch: the file of --plan, a plan that a Nix module made, or one made now from the
// user's profile. The project's own profile and the flags are applied to it.
func (p Planner) Plan() (found Planned, err error) {
	ref, file := p.Ref(), p.Options.Plan
	if file == "" {
		file = p.Files().Plan(ref)
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
		return Planned{}, err
	}
	found.OwnFiles = append(namedFiles(p.Call), found.OwnFiles...)
	if p.Options.Network != "" {
		found.Plan = found.Plan.WithTier(p.Options.Network)
	}
	found.Plan = tierOnBranch(p.Options, found.Plan)
	ports, err := networking.ParsePublish(p.Options.Publish)
	for _, port := range ports {
		found.Plan = found.Plan.WithPorts(int(port.Inside))
	}
	return found, err
}

// Plan makes a plan, and no launch. It neither opens the project nor looks for the agent, so it works in a Nix
// build, too. It refuses --mount-ro and --mount-rw, which belong to a launch, not to a plan.
func Plan(c Caller, o Options, why Purpose) (plan.Plan, error) {
	asked, err := NewCall(c, o, why)
	if err != nil {
		return plan.Plan{}, err
	}
	if len(o.MountRO)+len(o.MountRW) > 0 {
		return plan.Plan{}, diag.Errorf("make a plan", "name the folder in the profile's `mounts`",
			"--mount-ro and --mount-rw stand in no plan")
	}
	k := &Keeper{Call: asked}
	found, err := Planner{asked, k}.Plan()
	if !why.Look {
		k.WriteNow()
	}
	return found.Plan, errors.Join(err, k.Close())
}

// LookUpProfile loads the profile that the options ask for. It is for callers that start nothing.
func LookUpProfile(c Caller, o Options) (asked Call, prof profile.Profile, err error) {
	if asked, err = NewCall(c, o, Looking); err == nil {
		prof, _, err = profile.Load(asked.Ref(), asked.Files())
	}
	return asked, prof, err
}

// namedFiles lists the files, of a profile and a plan, that the call names by their paths.
func namedFiles(c Call) (list []string) {
	if profile.IsFile(c.Ref()) {
		list = append(list, c.Files().Absolute(c.Ref(), diag.Position{}))
	}
	if c.Options.Plan != "" {
		list = append(list, c.Files().Absolute(c.Options.Plan, diag.Position{}))
	}
	return list
}

// read reads a plan file, checks that it is for this machine, and has the keeper fetch and protect its store paths.
// With [Purpose.Look] it fetches nothing, and lists what is missing. A file that has not changed since the last time
// is not decoded again.
func (p Planner) read(file string) (Planned, error) {
	cache := p.cache("plan file", file)
	kept, found := cache.Find()
	if !found {
		var seen plancache.FileStates
		seen.Add(file)
		var err error
		if kept.Plan, err = decodePlan(file); err != nil {
			return Planned{}, err
		}
		p.Keeper.WriteLater(func() { cache.Keep(kept.Plan, nil, seen) })
	}
	manifest, err := ReadManifest(p.Caller.Manifest)
	if err != nil {
		return Planned{}, err
	}
	read := Planned{Plan: kept.Plan, Tools: manifest.Tools}
	if p.Purpose.Look {
		read.Missing = namesOf(read.Plan, absent(read.Plan.Roots()))
		if !p.Purpose.Ask {
			return read, nil
		}
	}
	return read, p.Keeper.holdFile(file, read.Plan)
}

// decodePlan reads a plan file. It returns an error if the plan is for another kind of machine.
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
		return plan.Plan{}, diag.Errorf(op, "make it anew with `claudebox plan --pinned`", "it is for %s; this is %s", p.System,
			nixSystem())
	}
	return p, nil
}

// make returns the plan from the cache if it is still valid, else one made from the profile that load returns.
func (p Planner) make(cache plancache.Cache,
	load func(profiledir.Files) (profile.Profile, diag.Problems, error),
) (Planned, error) {
	if kept, found := cache.Find(); found && p.Keeper.holdRoots(cache.File(), kept.Roots) {
		return Planned{Plan: kept.Plan, Tools: kept.Plan.Tools(), OwnFiles: filesOf(kept.Inputs)}, nil
	}
	files, seen := p.Files(), plancache.FileStates{}
	files.Seen = seen.Add
	seen.Add(p.Caller.Manifest)
	prof, warnings, err := load(files)
	if err != nil {
		return Planned{}, err
	}
	diag.Warn(p.Caller.Stderr, warnings...)
	made, paths, err := p.planOf(prof)
	made.OwnFiles = filesOf(seen)
	if err == nil && !p.Purpose.Look && len(warnings) == 0 {
		p.Keeper.WriteLater(func() { p.Keeper.keepPlan(cache, made.Plan, paths, seen) })
	}
	return made, err
}

// planOf makes the plan of a profile. paths are the plan's store paths that are not claudebox's own: until roots are
// made for them, only this session's connection to the daemon protects them from garbage collection.
func (p Planner) planOf(prof profile.Profile) (made Planned, paths []string, err error) {
	manifest, err := ReadManifest(p.Caller.Manifest)
	if err != nil {
		return Planned{}, nil, err
	}
	var res resolve.Resolution
	err = p.Keeper.waiting(func(ctx context.Context, _ *progress.Line) (err error) {
		res, err = p.resolve(ctx, manifest, prof)
		return err
	})
	if err != nil {
		return Planned{}, nil, err
	}
	made.Missing = res.Missing
	made.Tools = res.Tools
	made.Plan, err = plan.Build(prof, res)
	return made, beyondManifest(manifest, res), err
}

// CheckPackages returns [diag.Problems] for the packages of a profile that do not exist. Any other error says why they
// could not be looked up. Without a manifest it returns nil.
func CheckPackages(c Caller, prof profile.Profile) error {
	if _, err := os.Stat(c.Manifest); err != nil {
		return nil //nolint:nilerr // the manifest says which nixpkgs to look in
	}
	asked, err := NewCall(c, Options{}, Purpose{Look: true, Keep: true})
	if err != nil {
		return err
	}
	k := &Keeper{Call: asked}
	_, _, err = Planner{asked, k}.planOf(prof)
	return errors.Join(err, k.Close())
}

// filesOf lists the files that a plan was made of, without those that did not exist.
func filesOf(made plancache.FileStates) []string {
	var files []string
	for _, w := range made {
		if cachefile.Exists(w.State) && !slices.Contains(files, w.Path) {
			files = append(files, w.Path)
		}
	}
	return files
}

// cache returns the place of a plan in the cache. Its key is made of inputs, which say what the plan is made of, and of
// everything that decides which files are read then.
func (p Planner) cache(inputs ...string) plancache.Cache {
	f := p.Facts
	inputs = slices.Concat(inputs, []string{p.Caller.Version, p.Caller.Manifest, f.Cwd, f.Home}, p.Folders.Search())
	for _, name := range nixVariables {
		inputs = append(inputs, f.Env.Value(name, ""))
	}
	return plancache.For(filepath.Join(p.Folders.Home, "plan-cache"), p.Build, inputs...)
}

// ReadManifest reads the manifest, which Nix wrote when it built claudebox: the store paths of tools and packages.
// Without it there is no shell and no tool to give to a sandbox.
func ReadManifest(file string) (*resolve.Manifest, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, diag.Errorf("read claudebox's manifest",
			"use the claudebox that the flake builds: `nix run .#claudebox`", "there is none at %s", file)
	}
	defer f.Close()
	return resolve.ReadManifest(f)
}

// resolve finds the store paths of a profile's packages, and fetches or builds what is missing unless this is only a
// look. If the sandbox is to see no more of the store than it needs, the resolution has that closure, too.
func (p Planner) resolve(ctx context.Context, m *resolve.Manifest, prof profile.Profile) (resolve.Resolution, error) {
	store, cache := p.Keeper.Store(), filepath.Join(p.Folders.Cache, "resolve")
	var foresees resolve.Store
	if p.Purpose.Ask {
		foresees = foresight{store}
	}
	if p.Purpose.Dry {
		cache = ""
	}
	evaluator := nixeval.Evaluator{Program: instantiate(m.Tools)}
	for _, name := range nixVariables {
		if value, ok := p.Facts.Env.Get(name); ok {
			evaluator.Env = append(evaluator.Env, name+"="+value)
		}
	}
	system := nixSystem()
	if p.Purpose.Keep {
		system = "" // the manifest's: the plan may be for another kind of machine
	}
	res, err := resolve.Packages(ctx, resolve.Request{
		Manifest: m, System: system, Packages: prof.Packages, Toolbox: prof.Toolbox, Nixpkgs: prof.Nixpkgs,
		Store: store, Evaluator: evaluator, Cache: cache, DryRun: p.Purpose.Look, Foresees: foresees,
	})
	if prof.Nix.Daemon == profile.DaemonOff {
		res.Nixpkgs.Path = "" // the packages are resolved by now, and nothing inside reads the source
	}
	if err != nil || prof.Nix.Store != profile.StoreClosure {
		return res, err
	}
	res.Closure, err = m.ClosureOf(res, storePathsOf(prof), func(roots []string) ([]string, error) {
		return Closure(ctx, store, roots)
	})
	return res, err
}

// instantiate returns the path of nix-instantiate, which lies beside the tool nix.
func instantiate(tools map[string]string) string {
	return filepath.Join(filepath.Dir(tools[resolve.ToolNix]), "nix-instantiate")
}

// nixVariables tell Nix where its store is and how to reach it. An evaluation
// gets no other variable of the caller's environment.
var nixVariables = []string{
	"NIX_REMOTE", "NIX_DAEMON_SOCKET_PATH", "NIX_STATE_DIR", "NIX_CONF_DIR", "NIX_SSL_CERT_FILE",
}

// storePathsOf lists the store paths that a profile's variables and mounts name, without those that do not exist.
func storePathsOf(prof profile.Profile) []string {
	var paths []string
	for _, v := range prof.Env {
		paths = append(paths, storepath.In(v.Value)...)
	}
	for _, m := range prof.Mounts {
		paths = append(paths, storepath.In(m.Host)...)
	}
	return slices.DeleteFunc(paths, isAbsent)
}

// Closure asks the daemon for the closure of roots and returns its paths, sorted.
func Closure(ctx context.Context, store *nixdaemon.Client, roots []string) ([]string, error) {
	slices.Sort(roots)
	infos, err := store.Closure(ctx, slices.Compact(roots))
	return slices.Sorted(maps.Keys(infos)), err
}

// nixSystem returns Nix's name for this kind of machine, such as "x86_64-linux".
func nixSystem() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return arch + "-" + runtime.GOOS
}
