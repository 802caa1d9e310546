package session

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nix/gcroot"
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

func (s *Session) roots() gcroot.Folder {
	return gcroot.Folder{Dir: filepath.Join(s.folders.Home, "roots"), Auto: gcroot.AutoDir}
}

// holdRoots holds the roots that were made for a file, and tells whether they
// are all there.
func (s *Session) holdRoots(file string, paths []string) bool {
	if len(paths) == 0 {
		return true
	}
	set, ok := s.roots().Hold(file, paths)
	if ok {
		s.holds = append(s.holds, set)
	}
	return ok
}

// keepNow keeps what there is to keep. A launch does it when bwrap is at work:
// it takes nothing of the start, and claudebox's folder is there by then.
func (s *Session) keepNow() {
	for _, keep := range s.keeps {
		keep()
	}
}

// later leaves something to [Session.keepNow].
func (s *Session) later(keep func()) { s.keeps = append(s.keeps, keep) }

// keepPlan keeps a plan for the next launch, if its paths can be kept, too.
func (s *Session) keepPlan(cache plancache.Cache, p plan.Plan, paths []string, seen plancache.Witnesses) {
	if cache.File() == "" {
		return
	}
	if len(paths) > 0 && s.makeRoots(cache.File(), paths) != nil {
		return // this session holds them by its connection
	}
	cache.Keep(p, paths, seen)
}

func (s *Session) makeRoots(of string, paths []string) error {
	set, err := s.roots().Make(context.Background(), s.store(), of, paths)
	if err == nil {
		s.holds = append(s.holds, set)
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
func (s *Session) holdFile(file string, p plan.Plan) error {
	real, err := filepath.EvalSymlinks(s.absolute(file))
	if err != nil {
		return &diag.Error{Op: "read plan " + file, Err: diag.Cause(err)}
	}
	if _, err := storepath.Of(real); err == nil && len(absent(p.Roots())) == 0 {
		return s.holdOpen(real)
	}
	paths := p.Roots()
	if s.holdRoots(real, paths) {
		return nil
	}
	if err := s.have(file, paths); err != nil {
		return err
	}
	s.later(func() { _ = s.makeRoots(real, paths) }) // else the connection holds them, and is needed the next time as well
	return nil
}

func (s *Session) holdOpen(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return &diag.Error{Op: "read plan " + file, Err: diag.Cause(err)}
	}
	s.holds = append(s.holds, f)
	return nil
}
