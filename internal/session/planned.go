package session

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
	"claudebox/internal/ui/progress"
)

// planner finds or makes the plan of a launch. The keeper protects the plan's store paths from garbage collection.
type planner struct {
	call
	keeper *keeper
}

// planned is the plan of a launch, with facts that are not in the plan itself.
type planned struct {
	plan     plan.Plan
	ownFiles []string // profiles and plans that claudebox obeys: they say what the next sandbox may do
	missing  []string // packages that are not in the store yet, if nothing may be fetched
	remarks  []string // for the user, on the project's own profile

	// tools are the manifest's, by their names: what runs on this host is claudebox's own, whatever a plan file says.
	tools map[string]string
}

// plan returns the plan of a launch: the file of --plan, a plan that a Nix module made, or one made now from the
// user's profile. The project's own profile and the flags are applied to it.
func (p planner) plan() (found planned, err error) {
	ref, file := p.ref(), p.options.Plan
	if file == "" {
		file = p.files().Plan(ref)
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
	found.ownFiles = append(namedFiles(p.call), found.ownFiles...)
	if p.options.Network != "" {
		found.plan = found.plan.WithTier(p.options.Network)
	}
	found.plan = tierOnBranch(p.options, found.plan)
	ports, err := parsePublish(p.options.Publish)
	for _, port := range ports {
		found.plan = found.plan.WithPorts(int(port.Inside))
	}
	return found, err
}

// lookUpProfile loads the profile that the options ask for. It is for callers that start nothing.
func lookUpProfile(c Caller, o Options) (asked call, prof profile.Profile, err error) {
	if asked, err = newCall(c, o, looking); err == nil {
		prof, _, err = profile.Load(asked.ref(), asked.files())
	}
	return asked, prof, err
}

// namedFiles lists the files, of a profile and a plan, that the call names by their paths.
func namedFiles(c call) (list []string) {
	if profile.IsFile(c.ref()) {
		list = append(list, c.files().Absolute(c.ref(), diag.Position{}))
	}
	if c.options.Plan != "" {
		list = append(list, c.files().Absolute(c.options.Plan, diag.Position{}))
	}
	return list
}

// judge returns an error if --network names an unknown tier, or if one flag would silently take the place of another,
// which could be the narrower wish.
func (o Options) judge() error {
	if o.Plan != "" && o.Profile != "" {
		return diag.Errorf("launch by --plan "+o.Plan+" and --profile "+o.Profile,
			"leave one of them out; a plan is made by a profile with `claudebox plan --pinned -P "+o.Profile+"`",
			"a plan says all that a profile does, so only one of them could count")
	}
	if o.Branch == "" && (o.From != "" || o.WithChanges || len(o.With) > 0) {
		return diag.Errorf("read --from, --with and --with-changes", "name the branch with --branch", "there is none")
	}
	if o.Branch != "" && o.NoBranch {
		return diag.Errorf("read --branch and --no-branch", "leave one of them out", "only one of them could count")
	}
	switch o.Network {
	case "", profile.TierFull, profile.TierInet, profile.TierAllow, profile.TierNone:
		return nil
	}
	return diag.Errorf("read --network", "use full, inet, allow or none", "there is no tier %q", o.Network)
}

// read reads a plan file, checks that it is for this machine, and has the keeper fetch and protect its store paths.
// With [Purpose.Look] it fetches nothing, and lists what is missing. A file that has not changed since the last time
// is not decoded again.
func (p planner) read(file string) (planned, error) {
	cache := p.cache("plan file", file)
	kept, found := cache.Find()
	if !found {
		var seen plancache.FileStates
		seen.Add(file)
		var err error
		if kept.Plan, err = decodePlan(file); err != nil {
			return planned{}, err
		}
		p.keeper.writeLater(func() { cache.Keep(kept.Plan, nil, seen) })
	}
	manifest, err := readManifest(p.caller.Manifest)
	if err != nil {
		return planned{}, err
	}
	read := planned{plan: kept.Plan, tools: manifest.Tools}
	if p.why.Look {
		read.missing = namesOf(read.plan, absent(read.plan.Roots()))
		if !p.why.Ask {
			return read, nil
		}
	}
	return read, p.keeper.holdFile(file, read.plan)
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
		return plan.Plan{}, diag.Errorf(op, "make it anew on this machine", "it is for %s; this is %s", p.System,
			nixSystem())
	}
	return p, nil
}

// make returns the plan from the cache if it is still valid, else one made from the profile that load returns.
func (p planner) make(cache plancache.Cache,
	load func(profiledir.Files) (profile.Profile, diag.Problems, error),
) (planned, error) {
	if kept, found := cache.Find(); found && p.keeper.holdRoots(cache.File(), kept.Roots) {
		return planned{plan: kept.Plan, tools: kept.Plan.Tools(), ownFiles: filesOf(kept.Inputs)}, nil
	}
	files, seen := p.files(), plancache.FileStates{}
	files.Seen = seen.Add
	seen.Add(p.caller.Manifest)
	prof, warnings, err := load(files)
	if err != nil {
		return planned{}, err
	}
	diag.Warn(p.caller.Stderr, warnings...)
	made, paths, err := p.planOf(prof)
	made.ownFiles = filesOf(seen)
	if err == nil && !p.why.Look && len(warnings) == 0 {
		p.keeper.writeLater(func() { p.keeper.keepPlan(cache, made.plan, paths, seen) })
	}
	return made, err
}

// planOf makes the plan of a profile. paths are the plan's store paths that are not claudebox's own: until roots are
// made for them, only this session's connection to the daemon protects them from garbage collection.
func (p planner) planOf(prof profile.Profile) (made planned, paths []string, err error) {
	manifest, err := readManifest(p.caller.Manifest)
	if err != nil {
		return planned{}, nil, err
	}
	var res resolve.Resolution
	err = p.keeper.waiting(func(ctx context.Context, _ *progress.Line) (err error) {
		res, err = p.resolve(ctx, manifest, prof)
		return err
	})
	if err != nil {
		return planned{}, nil, err
	}
	made.missing = res.Missing
	made.tools = res.Tools
	made.plan, err = plan.Build(prof, res)
	return made, beyondManifest(manifest, res), err
}

// CheckPackages returns [diag.Problems] for the packages of a profile that do not exist. Any other error says why they
// could not be looked up. Without a manifest it returns nil.
func CheckPackages(c Caller, prof profile.Profile) error {
	if _, err := os.Stat(c.Manifest); err != nil {
		return nil //nolint:nilerr // the manifest says which nixpkgs to look in
	}
	asked, err := newCall(c, Options{}, Purpose{Look: true, Keep: true})
	if err != nil {
		return err
	}
	k := &keeper{call: asked}
	_, _, err = planner{asked, k}.planOf(prof)
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
func (p planner) cache(inputs ...string) plancache.Cache {
	f := p.Facts
	inputs = slices.Concat(inputs, []string{p.caller.Version, p.caller.Manifest, f.Cwd, f.Home}, p.folders.Search())
	for _, name := range nixVariables {
		inputs = append(inputs, f.Env.Value(name, ""))
	}
	return plancache.For(filepath.Join(p.folders.Home, "plan-cache"), f.UID, p.build, inputs...)
}

// readManifest reads the manifest, which Nix wrote when it built claudebox: the store paths of tools and packages.
// Without it there is no shell and no tool to give to a sandbox.
func readManifest(file string) (*resolve.Manifest, error) {
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
func (p planner) resolve(ctx context.Context, m *resolve.Manifest, prof profile.Profile) (resolve.Resolution, error) {
	store, cache := p.keeper.store(), filepath.Join(p.folders.Cache, "resolve")
	var foresees resolve.Store
	if p.why.Ask {
		foresees = foresight{store}
	}
	if p.why.Dry {
		cache = ""
	}
	evaluator := nixeval.Evaluator{Program: instantiate(m.Tools)}
	for _, name := range nixVariables {
		if value, ok := p.Facts.Env.Get(name); ok {
			evaluator.Env = append(evaluator.Env, name+"="+value)
		}
	}
	system := nixSystem()
	if p.why.Keep {
		system = "" // the manifest's: the plan may be for another kind of machine
	}
	res, err := resolve.Packages(ctx, resolve.Request{
		Manifest: m, System: system, Packages: prof.Packages, Toolbox: prof.Toolbox, Nixpkgs: prof.Nixpkgs,
		Store: store, Evaluator: evaluator, Cache: cache, DryRun: p.why.Look, Foresees: foresees,
	})
	if prof.Nix.Daemon == profile.DaemonOff {
		res.Nixpkgs.Path = "" // the packages are resolved by now, and nothing inside reads the source
	}
	if err != nil || prof.Nix.Store != profile.StoreClosure {
		return res, err
	}
	res.Closure, err = m.ClosureOf(res, storePathsOf(prof), func(roots []string) ([]string, error) {
		return closure(ctx, store, roots)
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

// closure asks the daemon for the closure of roots and returns its paths, sorted.
func closure(ctx context.Context, store *nixdaemon.Client, roots []string) ([]string, error) {
	slices.Sort(roots)
	infos, err := store.Closure(ctx, slices.Compact(roots))
	return slices.Sorted(maps.Keys(infos)), err
}

// nixSystem returns Nix's name for this kind of machine, such as "x86_64-linux".
func nixSystem() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return arch + "-" + runtime.GOOS
}
