package plan

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
)

// mounts returns every mount of the plan, sorted by destination: bwrap must make a
// mount before those below it.
func mounts(prof profile.Profile, res resolve.Resolution) []Mount {
	list := slices.Clone(baseMounts)
	if prof.Network.Tier != profile.TierNone {
		list = append(list, networkMounts...)
	}
	if prof.Nix.Store == profile.StoreFull {
		list = append(list, Mount{Kind: ROBind, Source: storepath.Dir, Destination: storepath.Dir})
	} else {
		list = append(list, Mount{Kind: Closure, Destination: storepath.Dir})
	}
	list = append(list, links(prof, res)...)
	list = append(list, cacheMounts(prof.Cache)...)
	list = based(list)
	for _, folder := range keptFolders(prof.Agent) {
		list = append(list, keptMount(folder))
	}
	for _, m := range prof.Mounts {
		list = append(list, profileMount(m))
	}
	SortMounts(list)
	return list
}

// based returns copies of mounts that are marked as claudebox's own: Why is [Base].
func based(list []Mount) []Mount {
	return mapped(list, func(m Mount) Mount {
		m.Why = Base
		return m
	})
}

// SortMounts orders mounts by destination, parents first.
func SortMounts(list []Mount) {
	slices.SortStableFunc(list, func(a, b Mount) int { return cmp.Compare(a.Destination, b.Destination) })
}

// links returns symbolic links for the fixed paths that scripts rely on (/bin/sh,
// /usr/bin/env), and with compat nix-ld for those that programs built for other
// distributions need.
func links(prof profile.Profile, res resolve.Resolution) []Mount {
	var list []Mount
	add := func(tool, destination string) {
		if t, ok := res.Tools[tool]; ok {
			list = append(list, Mount{Kind: Symlink, Source: t, Destination: destination})
		}
	}
	add(resolve.ToolEnv, "/usr/bin/env")
	add(resolve.ToolBash, "/bin/sh")
	if prof.Compat == profile.CompatNixLd {
		loader := "/lib64/ld-linux-x86-64.so.2" // the path in such programs (psABI)
		if res.System == "aarch64-linux" {
			loader = "/lib/ld-linux-aarch64.so.1"
		}
		for _, at := range []string{"/bin/bash", "/usr/bin/bash", "/usr/bin/sh"} {
			add(resolve.ToolBash, at)
		}
		add(resolve.ToolLoader, loader)
	}
	return list
}

func cacheMounts(cache string) []Mount {
	if cache != profile.CacheProject {
		return nil
	}
	list := []Mount{{Kind: Bind, Source: "${state}/cache", Destination: "${home}/" + caches[0]}}
	for _, name := range caches[1:] {
		list = append(list, Mount{
			Kind: Symlink, Source: "${home}/" + caches[0] + "/" + CacheFolder(name), Destination: "${home}/" + name,
		})
	}
	return list
}

// keptMount returns the mount of a kept folder of the agent's home.
func keptMount(folder string) Mount {
	return Mount{Kind: Bind, Source: "${state}/" + KeptFolder(folder), Destination: "${home}/" + folder, Why: Base}
}

// CacheFolders returns the names of the folders that must exist in the instance's
// cache, as targets of the links into it.
func CacheFolders() []string { return mapped(caches[1:], CacheFolder) }

// CacheFolder returns the name in the instance's cache of the folder name below home.
func CacheFolder(name string) string { return "home-" + path.Base(name) }

// profileMount turns a profile's entry into a mount.
func profileMount(m profile.Mount) Mount {
	kind := ROBind
	if m.Writable {
		kind = Bind
	}
	return Mount{
		Kind: kind, Source: late(m.Host), Destination: late(m.Sandbox),
		Optional: m.Optional, Secret: m.Secret, Why: m.Origin.Rule(),
	}
}

// late replaces a leading "~" by ${home} and a leading "." by ${project}, which package launch fills in on the host.
func late(p string) string {
	for short, value := range map[string]string{"~": "${home}", ".": "${project}"} {
		if rest, ok := strings.CutPrefix(p, short); ok && (rest == "" || rest[0] == '/') {
			return value + rest
		}
	}
	return p
}

// checkMounts returns an error if two mounts have one destination. list must be sorted by destination.
func checkMounts(list []Mount) error {
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if a.Destination == b.Destination {
			return diag.Errorf("plan the mounts", "choose another path inside",
				"%s and %s both mount at %s", a.Why, b.Why, a.Destination)
		}
	}
	return nil
}
