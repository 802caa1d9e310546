package launch

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
)

// Mounts returns the mounts of a plan, with final paths, followed by those in
// h.Mounts; they are not sorted yet. real resolves the links of a source that a user
// named; if it returns fs.ErrNotExist or ENOTDIR, an optional mount is left out.
func Mounts(p plan.Plan, h Host, real func(path string) (string, error)) ([]Mount, error) {
	files, late := madeFiles(p, h), lateValues(h)
	list := make([]Mount, 0, len(p.Mounts)+1+len(h.Mounts))
	for _, m := range p.Mounts {
		if unbound(m, h) {
			continue
		}
		b := bindMount(m, late, files, h.Bundle, p.Network.Tier == "full")
		if m.Source == string(plan.MadeZone) && h.Etc.Zones != "" {
			b = Mount{Kind: plan.ROBind, Source: h.Etc.Zones, Destination: zoneDir, Why: m.Why}
		}
		if b.Destination == storeDir {
			b.Upper = h.Nix.Store
		}
		kept, err := resolved(&b, real)
		if err != nil {
			return nil, err
		}
		if kept {
			list = append(list, b)
		}
		if b.Kind == plan.Proc { // bwrap has no option by which it would lack them
			for _, name := range h.Etc.Keys {
				none := Mount{Kind: plan.ROData, Source: "no keys", Destination: name, Mode: "0444", Why: m.Why}
				list = append(list, none)
			}
		}
	}
	if h.Nix.Daemon {
		list = append(list, Mount{
			Kind: plan.ROBind, Source: plan.DaemonSocketDir, Destination: plan.DaemonSocketDir, Why: "nix daemon",
		})
	}
	return append(list, h.Mounts...), nil
}

// zoneDir has the time zones. A program that does not find one takes UTC, without a word.
const zoneDir = "/usr/share/zoneinfo"

// storeDir is Nix's store, inside and outside.
const storeDir = "/nix/store"

// resolved follows the links of a source that a user named, and reports whether
// the mount is kept: an optional one whose source is missing is not.
func resolved(m *Mount, real func(string) (string, error)) (bool, error) {
	if !m.Open || m.Why == plan.Base {
		return true, nil
	}
	source, err := real(m.Source)
	switch {
	case err == nil:
		m.Source = source
		return true, nil
	case m.Optional && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)):
		return false, nil
	}
	return false, &diag.Error{
		Op: "mount " + m.Source + " (" + m.Why + ")", Err: err,
		Remedy: cmp.Or(diag.Remedy(err), "make it, or say `optional: true` for this mount"),
	}
}

// unbound reports whether a mount is left out: because the host has no certificates
// or no time zone for it, or because the host's library folders are mounted, beside
// which a link in /lib… does not fit.
func unbound(m plan.Mount, h Host) bool {
	switch {
	case m.Source == certificates:
		return h.Etc.Certificates == "" && h.Bundle == nil
	case strings.Contains(m.Destination, "${zone-name}") || strings.Contains(m.Source, "${zone-name}"):
		return h.Etc.Zone == nil && (h.Etc.Zones == "" || m.Source != string(plan.MadeZone))
	}
	return h.Agent.Libraries && m.Kind == plan.Symlink && strings.HasPrefix(m.Destination, "/lib")
}

// resolvConf is the resolver's configuration on the host. In tier full the sandbox
// shares the host's network, so its copy must be updated when a laptop roams or a VPN
// comes up.
const resolvConf = "/etc/resolv.conf"

// certificates is the Source in a plan of the mount of the certificate bundle.
const certificates = "${certs}"

// bindMount makes a mount of the plan one of the launch: with its late values, and with the content of a made file.
// bundle is [Host.Bundle]; full is set in tier full.
func bindMount(m plan.Mount, late *strings.Replacer, files map[plan.MadeFile][]byte, bundle []byte, full bool) Mount {
	b := Mount{
		Kind: m.Kind, Source: m.Source, Destination: late.Replace(m.Destination), Mode: m.Mode, Size: m.Size,
		Secret: m.Secret, Optional: m.Optional, Why: m.Why,
	}
	switch m.Kind {
	case plan.File, plan.ROData:
		b.Data = files[plan.MadeFile(m.Source)]
		if full && m.Source == string(plan.MadeResolv) {
			b.Kind, b.Mode, b.Follows = plan.ROBind, "", resolvConf
		}
		return b
	case plan.Bind, plan.ROBind:
		if m.Source == certificates && bundle != nil {
			b.Kind, b.Source, b.Data, b.Mode = plan.ROData, "certificates", bundle, "0444"
			return b
		}
		b.Open = isBeneathUser(m)
	}
	b.Source = late.Replace(m.Source)
	return b
}

// isBeneathUser reports whether a user or an agent may be able to write to a source,
// and not only root and Nix. Such a source is opened and checked before it is mounted.
func isBeneathUser(m plan.Mount) bool {
	return m.Why != plan.Base || strings.HasPrefix(m.Source, "${")
}

// projectParents returns the topmost folder between home and the project, if there is
// one and nothing is mounted there. It is mounted empty and read-only, so that
// `git worktree add ../x` fails inside instead of being lost with the session. The
// folders below it lie in the same mount.
func projectParents(h Host, mounts []Mount) []string {
	rest, ok := strings.CutPrefix(h.Project, h.Facts.Home+"/")
	first, _, deeper := strings.Cut(rest, "/")
	if !ok || !deeper {
		return nil
	}
	top := path.Join(h.Facts.Home, first)
	if slices.ContainsFunc(mounts, func(m Mount) bool { return m.Destination == top }) {
		return nil
	}
	return []string{top}
}

// WithoutLinksAbove removes the links below whose path something is mounted, such as
// ~/go for a project in ~/go: the mount point would be made where the link leads, in
// the cache, which the agent can write. A link of the home gives way to what is mounted
// in its own place, too.
func WithoutLinksAbove(home string, list []Mount) []Mount {
	return slices.DeleteFunc(slices.Clone(list), func(link Mount) bool {
		return link.Kind == plan.Symlink && slices.ContainsFunc(list, func(m Mount) bool {
			rest, below := pathname.Cut(m.Destination, link.Destination)
			return below && (rest != "" || m.Kind != plan.Symlink && pathname.Below(link.Destination, home))
		})
	})
}

// place sorts mounts into the order in which they are made. It returns an error for
// those that cannot be made at their destination. It adds the missing parent folders of
// a mount, unless they lie in a mount of the host, with mode 0755: bwrap would make
// them 0700. If a destination lies in a writable bind, it sets Point: bwrap must not
// create anything there, as an agent may have planted a link (CVE-2026-87766).
func place(list []Mount) ([]Mount, error) {
	list = slices.SortedStableFunc(slices.Values(list), func(a, b Mount) int {
		return cmp.Compare(a.Destination, b.Destination)
	})
	list = slices.CompactFunc(list, func(a, b Mount) bool { // one for each folder that is mounted
		return (a.Hides() || a.Kind == plan.Symlink) &&
			a.Destination == b.Destination && a.Source == b.Source && a.Kind == b.Kind && a.Why == b.Why
	})
	all, known := make([]Mount, 0, 2*len(list)), map[string]bool{"/": true}
	points := map[string]int{} // of all, links excluded, by destination
	add := func(m Mount) {
		if all = append(all, m); m.Kind != plan.Symlink {
			points[m.Destination] = len(all) - 1
		}
	}
	for _, m := range list {
		up, rel := nearest(all, points, m.Destination)
		if err := cmp.Or(conflict(all, m), madeOutside(up, &m)); err != nil {
			return nil, err
		}
		missing := missingParents(m.Destination, known)
		switch up.Kind {
		case none, plan.Tmpfs, plan.Dir:
			for _, dir := range missing {
				add(Mount{Kind: plan.Dir, Destination: dir, Mode: "0755", Why: m.Why})
			}
		case plan.Bind:
			m.Point = Place{Root: up.Source, Path: rel}
		}
		known[m.Destination] = true
		add(m)
	}
	if last := len(all) - 1; last >= mostMounts {
		return nil, diag.Errorf("bind the mounts", "remove what you did not make there, such as repositories of git",
			"%d mounts are needed, %s (%s) among them; Linux makes %d", len(all), all[last].Destination,
			all[last].Why, mostMounts)
	}
	return all, nil
}

// none is the kind of the zero Mount.
const none plan.MountKind = ""

// nearest returns the mount at the deepest of points that destination lies strictly below, and the path relative to
// it. It returns the zero Mount if there is none.
func nearest(list []Mount, points map[string]int, destination string) (up *Mount, rel string) {
	for dir := destination; dir != "/"; {
		dir = path.Dir(dir)
		if i, is := points[dir]; is {
			rel, _ := pathname.Cut(destination, dir)
			return &list[i], rel
		}
	}
	return &Mount{}, ""
}

// mostMounts is how many mounts a sandbox may have: Linux makes 100,000 in a namespace (proc_sys_fs(5), mount-max),
// those of the host included.
const mostMounts = 80_000

// conflict returns an error if the last mount of list has the same destination as m.
func conflict(list []Mount, m Mount) error {
	if len(list) == 0 || list[len(list)-1].Destination != m.Destination {
		return nil
	}
	first := list[len(list)-1]
	return diag.Errorf("bind the mounts", "leave one of the two out",
		"%s (%s) and %s (%s) would both lie at %s", first.Source, first.Why, m.Source, m.Why, m.Destination)
}

// madeOutside returns an error if m, a file, folder or link, would have to be created in
// a folder of the host, because its destination lies in the bind up; or if it would lie
// in the store of a closure.
func madeOutside(up, m *Mount) error {
	isBind := func(m *Mount) bool { return m.Kind == plan.Bind || m.Kind == plan.ROBind }
	switch {
	case up.Kind == plan.Closure:
		return diag.Errorf("mount "+m.Destination+" ("+m.Why+")", "mount it elsewhere, or use `nix: {store: full}`",
			"nothing can be added to the store inside")
	case isBind(up) && !isBind(m) && m.Kind != plan.ROData:
		return diag.Errorf("mount "+up.Source+" at "+up.Destination+" ("+up.Why+")",
			"mount it elsewhere, or single files of it",
			"the sandbox needs %s, which would be made in %s", m.Destination, up.Source)
	}
	return nil
}

// missingParents returns the parent folders of a path that are not in known yet,
// topmost first, and adds them to known.
func missingParents(destination string, known map[string]bool) []string {
	var dirs []string
	for dir := path.Dir(destination); !known[dir]; dir = path.Dir(dir) {
		known[dir] = true
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}
