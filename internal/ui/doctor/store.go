package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/sandbox/launch"
)

// storePaths checks that the plan's store paths are there and that the daemon knows them: of
// a path that it does not know, the next garbage collection may remove a part.
func storePaths(e examination) Finding {
	var gone []string
	for _, path := range e.Paths {
		if _, err := os.Stat(path); err != nil {
			if known, err := storepath.Of(path); err == nil {
				path = known // what Nix can fetch
			}
			gone = append(gone, path)
		}
	}
	if len(gone) > 0 {
		gone = slices.Compact(slices.Sorted(slices.Values(gone)))
		return failed("gone from the store: "+firstAndCount(gone),
			"fetch them with `nix-store --realise "+strings.Join(gone, " ")+"`, or "+diag.Reinstall)
	}
	if e.client != nil { // else the daemon's own finding says so
		if f := judgeUnknown(unknownPaths(e.client, e.Paths)); f.Level != OK {
			return f
		}
	}
	detail := fmt.Sprintf("%d files and folders that the plan pins are there", len(e.Paths))
	if len(e.Fetched) > 0 {
		detail += "; a launch fetches or builds first: " + strings.Join(e.Fetched, ", ")
	}
	return ok(detail)
}

func judgeUnknown(paths []string) Finding {
	if len(paths) == 0 {
		return ok("")
	}
	return warning("there, but unknown to the Nix daemon, which may remove it: "+firstAndCount(paths),
		"make them known with `nix-store --realise "+strings.Join(paths, " ")+"`")
}

// firstAndCount names the first path, and says how many more there are.
func firstAndCount(paths []string) string {
	if len(paths) == 1 {
		return paths[0]
	}
	return fmt.Sprintf("%s and %d more", paths[0], len(paths)-1)
}

// pathQuerier is what unknownPaths needs of a Nix daemon.
type pathQuerier interface {
	QueryValidPaths(ctx context.Context, paths []string) ([]string, error)
}

// unknownPaths returns the store paths that files lie in and that are not valid to the daemon; none if it does not
// answer.
func unknownPaths(daemon pathQuerier, files []string) []string {
	var paths []string
	for _, file := range files {
		if path, err := storepath.Of(file); err == nil {
			paths = append(paths, path)
		}
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	ctx, cancel := context.WithTimeout(context.Background(), daemonWait)
	defer cancel()
	valid, err := daemon.QueryValidPaths(ctx, paths)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(paths, func(path string) bool { return slices.Contains(valid, path) })
}

// daemon makes the finding about the Nix daemon. A launch needs it to fetch packages, and the agent to use Nix inside.
func daemon(e examination) Finding {
	if e.client == nil {
		return warning(e.refused.Error()+"; packages outside the manifest cannot be had, and Nix does not work inside",
			diag.Remedy(e.refused))
	}
	return judgeDaemon(e.client.Info(), e.Nix)
}

// judgeDaemon makes the finding about a daemon that answers. inside is [Machine.Nix]. A daemon that trusts the user can
// make them root, so a sandbox may reach such a daemon only through the filter.
func judgeDaemon(said nixdaemon.Info, inside string) Finding {
	version := "Nix " + said.Version
	switch {
	case inside == "": // there is no plan, which would say what a sandbox uses
		return ok(version)
	case inside != "host":
		return ok(version + "; a sandbox can ask it what the store has, by a filter, and nothing else")
	case said.Trust == nixdaemon.NotTrusted:
		return ok(version + " does not trust you, so a sandbox can reach it itself")
	case said.Trust == nixdaemon.Trusted:
		return failed(version+" trusts you, and could make the agent root",
			"write `nix: {daemon: own}`, or take yourself out of `trusted-users` in /etc/nix/nix.conf and "+
				"restart the daemon")
	}
	return failed(version+" does not say whether it trusts you, and could make the agent root",
		"write `nix: {daemon: own}`, or upgrade Nix to 2.15 or newer")
}

// nixInside reports whether a sandbox can have a Nix store of its own.
func nixInside(e examination) Finding {
	if _, err := os.Stat(e.AgentHomes); err != nil {
		return info("not tried yet: " + e.AgentHomes + " is made by the first launch")
	}
	if err := launch.TryStore(e.Bwrap, e.Env, e.OwnNix, e.AgentHomes); err != nil {
		return warning(err.Error()+"; Nix inside evaluates, and neither builds nor fetches", diag.Remedy(err))
	}
	return ok("has a store of its own over the host's")
}
