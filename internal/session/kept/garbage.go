package kept

import (
	"path/filepath"
	"slices"

	"claudebox/internal/host"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/nixuse"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/project"
)

// CollectGarbage removes from the Nix store inside, of the project that the caller stands in, all paths that no root
// refers to; the roots are the links in the project. It returns the last line that Nix printed.
func CollectGarbage(c planning.Caller, o planning.Options) (said string, err error) {
	found, instance, err := find(c, o)
	if err != nil {
		return "", err
	}
	manifest, err := planning.ReadManifest(c.Manifest)
	if err != nil {
		return "", err
	}
	facts, err := host.Detect()
	if err != nil {
		return "", err
	}
	links := [][2]string{
		{found.InstanceRoot, found.InstanceRoot},
		{filepath.Join(instance, "cache"), filepath.Join(facts.Home, ".cache")},
	}
	if slices.ContainsFunc(found.Mounts, func(m project.Mount) bool { return guarded.IsDirenv(found, m) }) {
		links = append(links, [2]string{filepath.Join(instance, guarded.DirenvFolder(found)), found.Path + "/.direnv"})
	}
	return nixuse.Collect(manifest.Tools, instance, links)
}
