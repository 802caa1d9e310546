package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nixdaemon"
	"claudebox/internal/nixeval"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/resolve"
	"claudebox/internal/storepath"
)

// choosePlan finds the plan of a launch: the file of a flag, a plan that a
// module made, or one made now from a profile. The network flag is applied
// to it last.
func (s *session) choosePlan(sys System, o options, why purpose) (plan.Plan, error) {
	p, err := s.findPlan(sys, o, why)
	if err != nil || o.network == "" {
		return p, err
	}
	if !isTier(o.network) {
		return plan.Plan{}, diag.Errorf("read --network", "use full, inet, allow or none", "there is no tier %q", o.network)
	}
	return p.WithTier(o.network), nil
}

func isTier(word string) bool {
	switch profile.Tier(word) {
	case profile.TierFull, profile.TierInet, profile.TierAllow, profile.TierNone:
		return true
	}
	return false
}

func (s *session) findPlan(sys System, o options, why purpose) (plan.Plan, error) {
	if o.plan != "" {
		src, err := os.ReadFile(o.plan)
		if err != nil {
			return plan.Plan{}, &diag.Error{Op: "read plan " + o.plan, Err: cause(err)}
		}
		return readPlan(o.plan, src)
	}
	ref := o.profile
	if ref == "" {
		ref = s.facts.Env.Value("CLAUDEBOX_PROFILE", "default")
	}
	if file, src := s.modulePlan(ref); src != nil {
		return readPlan(file, src)
	}
	return s.makePlan(sys, ref, why)
}

// modulePlan finds a plan that a module made for a profile. It wins over a
// profile of that name in the same place, not over one in an earlier place.
func (s *session) modulePlan(ref string) (file string, src []byte) {
	if isProfileFile(ref) {
		return "", nil
	}
	for _, dir := range s.folders.search() {
		file := filepath.Join(dir, "plans", ref+".json")
		if src, err := os.ReadFile(file); err == nil {
			return file, src
		}
		for _, extension := range profile.Extensions {
			if _, err := os.Stat(filepath.Join(dir, "profiles", ref+extension)); err == nil {
				return "", nil
			}
		}
	}
	return "", nil
}

// readPlan decodes a plan file and checks that it fits this machine now.
func readPlan(file string, src []byte) (plan.Plan, error) {
	p, err := plan.Decode(file, src)
	if err != nil {
		return plan.Plan{}, err
	}
	op := "read plan " + file
	if p.System != nixSystem() {
		return plan.Plan{}, diag.Errorf(op, "make it anew on this machine", "it is for %s; this is %s", p.System, nixSystem())
	}
	for _, path := range p.StorePaths() {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return plan.Plan{}, diag.Errorf(op, "fetch it with `nix-store --realise "+path+"`, or make the plan anew",
				"%s is no longer in the store", path)
		}
	}
	return p, nil
}

// makePlan goes the whole way from a profile to a plan.
func (s *session) makePlan(sys System, ref string, why purpose) (plan.Plan, error) {
	cache := s.planCache(sys, ref)
	if p, found := cache.find(); found {
		return p, nil
	}
	files := newProfileFiles(s.facts)
	files.seen = &witnesses{}
	files.seen.note(sys.Manifest)
	prof, warnings, err := profile.Load(ref, files)
	if err != nil {
		return plan.Plan{}, err
	}
	for _, w := range warnings {
		diag.Warn(sys.Stderr, w)
	}
	if err := refuseWishes(prof); err != nil {
		return plan.Plan{}, err
	}
	manifest, err := readManifest(sys.Manifest)
	if err != nil {
		return plan.Plan{}, err
	}
	waiting := showProgress(sys.Stderr, isTerminal(sys.Stderr))
	defer waiting.done()
	s.store().Options.Log = waiting.hear
	var res resolve.Resolution
	err = s.interruptible(func(ctx context.Context) (err error) {
		res, err = s.resolve(ctx, manifest, prof, why)
		return err
	})
	if err != nil {
		return plan.Plan{}, err
	}
	for _, pkg := range res.Packages {
		if pkg.Missing {
			s.missing = append(s.missing, pkg.Attr)
		}
	}
	p, err := plan.Build(prof, res)
	if err == nil && !why.look && len(warnings) == 0 && cacheable(prof, manifest, res) {
		cache.keepFor(p, files.seen.list)
	}
	return p, err
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

func (s *session) resolve(ctx context.Context, m *resolve.Manifest, prof profile.Profile, why purpose) (resolve.Resolution, error) {
	store, cache := s.store(), filepath.Join(s.folders.cache, "resolve")
	if why.dry {
		cache = ""
	}
	res, err := resolve.Packages(ctx, resolve.Request{
		Manifest: m, System: nixSystem(), Packages: prof.Packages, Sources: prof.Sources, Nixpkgs: prof.Nixpkgs,
		Store: store, Evaluator: s.evaluator(m),
		Cache: cache, DryRun: why.look,
	})
	if err != nil || prof.Nix.Store != profile.StoreClosure {
		return res, err
	}
	res.Closure, err = closureOf(ctx, store, res)
	return res, err
}

// nixVariables tell Nix where its store is and how to reach it. They are all
// that an evaluation learns of the caller's environment.
var nixVariables = []string{"NIX_REMOTE", "NIX_DAEMON_SOCKET_PATH", "NIX_STATE_DIR", "NIX_CONF_DIR", "NIX_SSL_CERT_FILE"}

func (s *session) evaluator(m *resolve.Manifest) nixeval.Evaluator {
	e := nixeval.Evaluator{Program: filepath.Join(filepath.Dir(m.Tools[resolve.ToolNix]), "nix-instantiate")}
	for _, name := range nixVariables {
		if value, ok := s.facts.Env.Get(name); ok {
			e.Env = append(e.Env, name+"="+value)
		}
	}
	return e
}

// store is the connection to the Nix daemon, made when it is first used and
// kept until the session ends: the daemon keeps its paths as long.
func (s *session) store() *nixdaemon.Store {
	if s.held == nil {
		env := s.facts.Env
		s.held = &nixdaemon.Store{
			Socket: nixdaemon.SocketPath(env.Value("NIX_DAEMON_SOCKET_PATH", ""), env.Value("NIX_STATE_DIR", "")),
		}
	}
	return s.held
}

// closureOf asks the daemon for everything that the packages and tools refer
// to, for a sandbox that shall see no more of the store.
func closureOf(ctx context.Context, store *nixdaemon.Store, res resolve.Resolution) ([]string, error) {
	var roots []string
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
	return closure(ctx, store, roots)
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
