package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/profile"
)

// checkClaims finds what a plan file says of itself and is not. Anybody can
// write one with a digest that fits. What belongs to every sandbox is shown
// in no audit and judged by nobody, so it has to be of the base indeed; what
// runs on the host has to come from the store.
func checkClaims(p Plan) error {
	for _, m := range p.Mounts {
		if m.Why == Base && !isBase(m) {
			return fmt.Errorf("the mount of %s at %s is none of the base", m.Source, m.Destination)
		}
	}
	for _, path := range p.Pins.Closure {
		if !isInStore(path) || strings.Contains(path[len(storeDir)+1:], "/") {
			return fmt.Errorf("%q in its closure is no store path", path)
		}
	}
	for _, t := range p.Pins.Tools {
		if !isInStore(t.Path) {
			return fmt.Errorf("the tool %s at %s is not in the store", t.Name, t.Path)
		}
	}
	return nil
}

// isBase reports whether a mount shows nothing of the host but what the base
// does.
func isBase(m Mount) bool {
	if m.Kind != Bind && m.Kind != ROBind {
		return true
	}
	if m.Kind == ROBind && (m.Source == storeDir || isInStore(m.Source)) {
		return true
	}
	of := func(known Mount) bool { return known.Kind == m.Kind && known.Source == m.Source }
	return slices.ContainsFunc(baseMounts, of) || slices.ContainsFunc(cacheMounts(profile.CacheProject), of)
}

const storeDir = "/nix/store"

func isInStore(name string) bool {
	return strings.HasPrefix(name, storeDir+"/") && path.Clean(name) == name
}
