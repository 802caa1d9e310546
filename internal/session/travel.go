package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
)

// A plan file may come from another machine. What it names is fetched by the
// daemon, from the binary caches that the daemon's own configuration trusts.

// have pins the paths that a plan file names, and fetches those that are not
// in the store. It says first how much that is.
func (k *keeper) have(file string, paths []string) error {
	return k.waiting(func(ctx context.Context, p *progress) error {
		valid, err := k.store().Pin(ctx, paths)
		if err != nil {
			return err
		}
		gone := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return slices.Contains(valid, path) })
		if len(gone) == 0 {
			return nil
		}
		missing, err := k.store().Missing(ctx, gone)
		if err != nil {
			return err
		}
		if n := len(missing.WillSubstitute); n > 0 {
			p.say(fmt.Sprintf("%s: %d store paths are to be fetched, %d MiB, unpacked %d MiB",
				file, n, mebibytes(missing.DownloadSize), mebibytes(missing.NARSize)))
		}
		failed, err := k.store().Realise(ctx, gone)
		if err != nil {
			return err
		}
		return cannotBeHad(file, missing, failed)
	})
}

// mebibytes rounds up: something is never nothing.
func mebibytes(n uint64) uint64 { return (n + 1<<20 - 1) >> 20 }

// cannotBeHad names every path that could not be fetched, and what the daemon
// says of one of them; nil: there is none. What a cache has and the daemon did
// not take lacks a signature that it trusts, as a rule.
func cannotBeHad(file string, missing nixdaemon.Missing, failed map[string]error) error {
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
	return diag.Errorf("read plan "+file, remedy, "%d of its store paths cannot be had:\n%s\nthe daemon says: %s",
		len(failed), strings.Join(paths, "\n"), shortest(failed))
}

// shortest is the error with the fewest words: a daemon logs what it tried for
// others, too.
func shortest(failed map[string]error) string {
	texts := make([]string, 0, len(failed))
	for _, err := range failed {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) })
}

// absent are those of paths at which nothing is.
func absent(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// namesOf names the packages and tools of a plan that paths belong to.
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
