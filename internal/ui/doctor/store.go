package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/sandbox/launch"
)

// storePaths must be there, and ought to be known to the daemon: what it does
// not know the next garbage collection may take away half.
func storePaths(e examination) Finding {
	if len(e.Paths) == 0 {
		return Finding{}
	}
	var gone []string
	for _, path := range e.Paths {
		if _, err := os.Stat(path); err != nil {
			gone = append(gone, storePath(path))
		}
	}
	if len(gone) > 0 {
		gone = slices.Compact(slices.Sorted(slices.Values(gone)))
		return Finding{
			Level: Failed, Detail: "gone from the store: " + firstOf(gone),
			Remedy: "fetch them with `nix-store --realise " + strings.Join(gone, " ") + "`, or install claudebox anew",
		}
	}
	if e.client != nil { // else there is a finding of the daemon's
		if unknown := unknownPaths(e.client, e.Paths); len(unknown) > 0 {
			return Finding{
				Level: Warning, Detail: "there, but unknown to the Nix daemon, which may remove it: " +
					firstOf(unknown),
				Remedy: "make them known with `nix-store --realise " + strings.Join(unknown, " ") + "`",
			}
		}
	}
	return Finding{
		Level:  OK,
		Detail: fmt.Sprintf("%d files and folders that the plan pins are there", len(e.Paths)) + toFetch(e.Fetched),
	}
}

func firstOf(paths []string) string {
	if len(paths) == 1 {
		return paths[0]
	}
	return fmt.Sprintf("%s and %d more", paths[0], len(paths)-1)
}

func toFetch(packages []string) string {
	if len(packages) == 0 {
		return ""
	}
	return "; a launch fetches or builds first: " + strings.Join(packages, ", ")
}

// validity is the part of a Nix daemon that a look at store paths needs.
type validity interface {
	QueryValidPaths(ctx context.Context, paths []string) ([]string, error)
}

// unknownPaths are those of the store that the daemon does not call valid;
// none when it does not answer.
func unknownPaths(daemon validity, files []string) []string {
	var paths []string
	for _, file := range files {
		if strings.HasPrefix(file, store) {
			paths = append(paths, storePath(file))
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

const store = "/nix/store/"

// storePath cuts a file of the store down to the path that Nix knows.
func storePath(file string) string {
	rest, ok := strings.CutPrefix(file, store)
	if !ok {
		return file
	}
	name, _, _ := strings.Cut(rest, "/")
	return store + name
}

// daemon reports whether Nix can be used, outside for what a profile asks for
// and inside by the agent.
func daemon(e examination) Finding {
	switch {
	case e.Socket == "":
		return Finding{}
	case e.client == nil:
		f := fault(e.refused)
		f.Level = Warning
		f.Detail += "; packages outside the manifest cannot be had, and Nix does not work inside"
		return f
	}
	return judgeDaemon(e.client.Info(), e.Nix)
}

// judgeDaemon says what the daemon is for. One that trusts the user makes root
// of them, so that no sandbox may reach it itself (SAND-07).
func judgeDaemon(info nixdaemon.Info, inside string) Finding {
	version := "Nix " + info.Version
	switch {
	case inside == "": // no plan says what it is for
		return Finding{Level: OK, Detail: version}
	case inside != "host":
		return Finding{
			Level:  OK,
			Detail: version + "; a sandbox can ask it what the store has, by a filter, and nothing else",
		}
	case info.Trust == nixdaemon.NotTrusted:
		return Finding{Level: OK, Detail: version + " does not trust you, so a sandbox can reach it itself"}
	case info.Trust == nixdaemon.Trusted:
		return Finding{
			Level: Failed, Detail: version + " trusts you, and could make the agent root",
			Remedy: "write `nix: {daemon: own}`, or take yourself out of `trusted-users` in /etc/nix/nix.conf and " +
				"restart the daemon",
		}
	}
	return Finding{
		Level: Failed, Detail: version + " does not say whether it trusts you, and could make the agent root",
		Remedy: "write `nix: {daemon: own}`, or upgrade Nix to 2.15 or newer",
	}
}

// nixInside reports whether a sandbox can have a Nix store of its own.
func nixInside(e examination) Finding {
	if e.Nix != "own" || e.Bwrap == "" || e.Home == "" || e.refused != nil { // that was said
		return Finding{}
	}
	if _, err := os.Stat(e.Home); err != nil {
		return Finding{Level: Info, Detail: "not tried yet: " + e.Home + " is made by the first launch"}
	}
	if err := launch.TryStore(e.Bwrap, e.Env, e.Home); err != nil {
		f := fault(err)
		f.Level = Warning
		f.Detail += "; Nix inside evaluates, and neither builds nor fetches"
		return f
	}
	return Finding{Level: OK, Detail: "has a store of its own over the host's"}
}
