package session

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/plan/plancache"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
)

// choosePlan finds the plan of a launch: the file of a flag, a plan that a
// module made, or one made now from a profile. Then what the project brings
// is laid over it, judged by what the flags leave of the profile.
func (s *Session) choosePlan(o Options, why Purpose) (plan.Plan, error) {
	if err := o.judgeTier(); err != nil {
		return plan.Plan{}, err
	}
	p, err := s.findPlan(o, why)
	if err == nil {
		p, err = s.withProject(p, o, why)
	}
	if err != nil {
		return plan.Plan{}, err
	}
	if o.Network != "" {
		p = p.WithTier(o.Network)
	}
	if len(o.Publish) > 0 {
		return withPublished(p, o.Publish)
	}
	return p, nil
}

// judgeTier refuses a tier of --network that there is not.
func (o Options) judgeTier() error {
	switch profile.Tier(o.Network) {
	case "", profile.TierFull, profile.TierInet, profile.TierAllow, profile.TierNone:
		return nil
	}
	return diag.Errorf("read --network", "use full, inet, allow or none", "there is no tier %q", o.Network)
}

// networkFlags are the flags that change what a project's own profile is judged by.
func (o Options) networkFlags() []string {
	if o.Network == "" {
		return nil
	}
	return []string{"--network " + o.Network}
}

func (s *Session) findPlan(o Options, why Purpose) (plan.Plan, error) {
	if o.Plan != "" {
		return s.readPlan(o.Plan, o, why)
	}
	ref := profileRef(s.Facts, o)
	if file := s.modulePlan(ref); file != "" {
		return s.readPlan(file, o, why)
	}
	return s.makePlan(ref, o, why)
}

// profileRef is the profile that was asked for.
func profileRef(f host.Facts, o Options) string {
	return cmp.Or(o.Profile, f.Env.Value("CLAUDEBOX_PROFILE", profile.Default))
}

// modulePlan finds a plan that a module made for a profile. It wins over a
// profile of that name in the same place, not over one in an earlier place.
func (s *Session) modulePlan(ref string) (file string) {
	if profile.IsFile(ref) {
		return ""
	}
	for _, dir := range s.folders.Search() {
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

// readPlan reads a plan file, checks that it fits this machine now, and sees to
// it that its store paths stay. A file that has not changed since the last time
// is not decoded again.
func (s *Session) readPlan(file string, o Options, why Purpose) (plan.Plan, error) {
	cache := s.planCache("plan file", file)
	kept, found := cache.Find()
	p := kept.Plan
	if !found {
		var seen plancache.Witnesses
		seen.Note(file)
		var err error
		if p, err = decodePlan(file); err != nil {
			return plan.Plan{}, err
		}
		s.later(func() { cache.Keep(p, nil, seen) })
	} else {
		s.later(func() { cache.Renew(kept) })
	}
	if why.Look {
		s.missing = namesOf(p, absent(p.Roots()))
		return p, nil
	}
	return p, s.holdFile(file, p)
}

func decodePlan(file string) (plan.Plan, error) {
	op := "read plan " + file
	src, err := os.ReadFile(file)
	if err != nil {
		return plan.Plan{}, &diag.Error{Op: op, Err: diag.Cause(err), Remedy: "name a file that `claudebox plan --pinned` has written"}
	}
	p, err := plan.Decode(file, src)
	if err != nil {
		return plan.Plan{}, err
	}
	if p.System != nixSystem() {
		return plan.Plan{}, diag.Errorf(op, "make it anew on this machine", "it is for %s; this is %s", p.System, nixSystem())
	}
	return p, nil
}

// makePlan goes the whole way from a profile to a plan.
func (s *Session) makePlan(ref string, o Options, why Purpose) (plan.Plan, error) {
	cache := s.planCache(ref)
	if kept, found := cache.Find(); found && s.holdRoots(cache.File(), kept.Roots) {
		s.obey(kept.Made)
		s.later(func() { cache.Renew(kept) })
		return kept.Plan, nil
	}
	files, seen := s.caller.profiles(s.Facts), &plancache.Witnesses{}
	files.Seen = seen.Note
	seen.Note(s.caller.Manifest)
	prof, warnings, err := profile.Load(ref, files)
	if err != nil {
		return plan.Plan{}, err
	}
	for _, w := range warnings {
		diag.Warn(s.caller.Stderr, w)
	}
	s.obey(*seen)
	p, paths, err := s.planOf(prof, why)
	if err == nil && !why.Look && len(warnings) == 0 {
		s.later(func() { s.keepPlan(cache, p, paths, *seen) })
	}
	return p, err
}

// planOf makes the plan of a profile. paths are what nothing keeps in the store
// but this session.
func (s *Session) planOf(prof profile.Profile, why Purpose) (p plan.Plan, paths []string, err error) {
	if err := refuseWishes(prof); err != nil {
		return plan.Plan{}, nil, err
	}
	manifest, err := readManifest(s.caller.Manifest)
	if err != nil {
		return plan.Plan{}, nil, err
	}
	var res resolve.Resolution
	err = s.waiting(func(ctx context.Context, _ *progress) (err error) {
		res, err = s.resolve(ctx, manifest, prof, why)
		return err
	})
	if err != nil {
		return plan.Plan{}, nil, err
	}
	for _, pkg := range res.Packages {
		if pkg.Missing {
			s.missing = append(s.missing, pkg.Attr)
		}
	}
	p, err = plan.Build(prof, res)
	return p, unheld(manifest, res), err
}

// obey takes down the files that a plan was made of. One that lies in the
// project says what the next sandbox may do.
func (s *Session) obey(made plancache.Witnesses) {
	for _, w := range made {
		if cachefile.Known(w.State) && !slices.Contains(s.orders, w.Path) {
			s.orders = append(s.orders, w.Path)
		}
	}
}

// planCache is where the plan of a profile is kept: the question is what it
// was made of, with all that decides which files are looked for.
func (s *Session) planCache(question ...string) plancache.Cache {
	f := s.Facts
	question = slices.Concat(question, []string{s.caller.Version, s.caller.Manifest, f.Cwd, f.Home}, s.folders.Search())
	for _, name := range nixVariables {
		question = append(question, f.Env.Value(name, ""))
	}
	return plancache.For(filepath.Join(s.folders.Home, "plan-cache"), f.UID, s.build(), question...)
}

// build is the state of the running program, which every cache depends on:
// another build may look for something else. Empty: it is not known.
func (s *Session) build() string {
	if state := cachefile.State("/proc/self/exe"); s.made == "" && cachefile.Known(state) {
		s.made = state
	}
	return s.made
}

// readManifest reads what Nix knew when claudebox was built. Without it there
// is no shell and no tool that a sandbox could be given.
func readManifest(file string) (*resolve.Manifest, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, diag.Errorf("read claudebox's manifest", "use the claudebox that the flake builds: `nix run .#claudebox`",
			"there is none at %s", file)
	}
	defer f.Close()
	return resolve.ReadManifest(f)
}

func (s *Session) resolve(ctx context.Context, m *resolve.Manifest, prof profile.Profile, why Purpose) (resolve.Resolution, error) {
	store, cache := s.store(), filepath.Join(s.folders.Cache, "resolve")
	if why.Dry {
		cache = ""
	}
	res, err := resolve.Packages(ctx, resolve.Request{
		Manifest: m, System: nixSystem(), Packages: prof.Packages, Sources: prof.Sources, Nixpkgs: prof.Nixpkgs,
		Store: store, Evaluator: s.evaluator(m),
		Cache: cache, DryRun: why.Look,
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

// nixVariables tell Nix where its store is and how to reach it. They are all
// that an evaluation learns of the caller's environment.
var nixVariables = []string{"NIX_REMOTE", "NIX_DAEMON_SOCKET_PATH", "NIX_STATE_DIR", "NIX_CONF_DIR", "NIX_SSL_CERT_FILE"}

func (s *Session) evaluator(m *resolve.Manifest) nixeval.Evaluator {
	e := nixeval.Evaluator{Program: filepath.Join(filepath.Dir(m.Tools[resolve.ToolNix]), "nix-instantiate")}
	for _, name := range nixVariables {
		if value, ok := s.Facts.Env.Get(name); ok {
			e.Env = append(e.Env, name+"="+value)
		}
	}
	return e
}

// store is the connection to the Nix daemon, made when it is first used and
// kept until the Session ends: the daemon keeps its paths as long.
func (s *Session) store() *nixdaemon.Store {
	if s.held == nil {
		env := s.Facts.Env
		s.held = &nixdaemon.Store{
			Socket: nixdaemon.SocketPath(env.Value("NIX_DAEMON_SOCKET_PATH", ""), env.Value("NIX_STATE_DIR", "")),
		}
	}
	return s.held
}

// named are the store paths that a profile's variables and mounts name, as far
// as they are there.
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
func closureOf(ctx context.Context, store *nixdaemon.Store, m *resolve.Manifest, res resolve.Resolution, roots []string) ([]string, error) {
	for _, pkg := range res.Packages {
		for _, output := range pkg.Outputs {
			roots = append(roots, output.Path)
		}
	}
	for _, tool := range res.Tools {
		if path, err := storepath.Of(tool.Path); err == nil {
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
		return nil, &diag.Error{Op: "read what claudebox was built with", Err: diag.Cause(err), Remedy: "install claudebox again"}
	}
	defer f.Close()
	return resolve.ReadReferences(f)
}

// closure is the sorted paths of everything that roots refer to.
func closure(ctx context.Context, store *nixdaemon.Store, roots []string) ([]string, error) {
	client, err := store.Client(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(roots)
	infos, err := client.Closure(ctx, slices.Compact(roots))
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(infos))
	for i, info := range infos {
		paths[i] = info.Path
	}
	return paths, nil
}

// nixSystem is this machine as Nix names it.
func nixSystem() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return arch + "-" + runtime.GOOS
}
