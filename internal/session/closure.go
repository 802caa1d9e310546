package session

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/linux/cachefile"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// addClosure adds what a program of the store refers to beyond the plan's
// own closure.
func (s *Session) addClosure(h *launch.Host, p plan.Plan, program string) error {
	root, err := storepath.Of(program)
	if err != nil {
		return err
	}
	if slices.Contains(p.Pins.Closure, root) {
		return nil // and with it all that it refers to
	}
	h.Closure, err = s.closureOfAgent(root)
	return err
}

// closureOfAgent asks the daemon once for as long as the path is the one that
// it was: a valid path loses nothing that it refers to.
func (s *Session) closureOfAgent(root string) ([]string, error) {
	file, key := filepath.Join(s.folders.Cache, "agent-closure"), root+" "+cachefile.State(root)
	if paths, ok := keptClosure(file, key); ok {
		return paths, nil
	}
	var paths []string
	err := s.interruptible(func(ctx context.Context) (err error) {
		paths, err = closure(ctx, s.keeper.store(), []string{root})
		return err
	})
	if err == nil && !s.why.Dry {
		cachefile.WriteBelow(file, []byte(key+"\n"+strings.Join(paths, "\n")))
	}
	return paths, err
}

// keptClosure is the content of a file that begins with key, if all of it is
// there.
func keptClosure(file, key string) ([]string, bool) {
	first, rest, _ := strings.Cut(string(cachefile.Read(file)), "\n")
	if first != key {
		return nil, false
	}
	paths := strings.Split(rest, "\n")
	for _, path := range paths {
		if _, err := os.Lstat(path); err != nil || storepath.Check(path) != nil {
			return nil, false
		}
	}
	return paths, true
}
