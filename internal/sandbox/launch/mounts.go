package launch

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
)

// Mounts are those of a plan and then those of the host, final and in no order
// yet. real resolves every link of a source that a user named; its error says
// that the source is missing, which leaves an optional mount out.
func Mounts(p plan.Plan, h Host, real func(path string) (string, error)) ([]Mount, error) {
	files, late := madeFiles(p, h), lateValues(h)
	list := make([]Mount, 0, len(p.Mounts)+1+len(h.Mounts))
	for _, m := range p.Mounts {
		if unbound(m, h) {
			continue
		}
		b := bindMount(m, late, files, h.Bundle, p.Network.Tier == "full")
		if b.Destination == storeDir {
			b.Upper = h.NixStore
		}
		kept, err := resolved(&b, real)
		if err != nil {
			return nil, err
		}
		if kept {
			list = append(list, b)
		}
	}
	if h.Daemon {
		list = append(list, Mount{
			Kind: plan.ROBind, Source: plan.DaemonSocketDir, Destination: plan.DaemonSocketDir, Why: "nix daemon",
		})
	}
	return append(list, h.Mounts...), nil
}

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
		Remedy: "make it, or say `optional: true` for this mount",
	}
}

// unbound reports whether the host has nothing for a mount, or something that
// does not fit beside it.
func unbound(m plan.Mount, h Host) bool {
	switch {
	case m.Source == certificates:
		return h.Etc.Certificates == "" && h.Bundle == nil
	case strings.Contains(m.Destination, "${zone-name}") || strings.Contains(m.Source, "${zone-name}"):
		return h.Etc.Zone == nil
	}
	return h.Libraries && m.Kind == plan.Symlink && strings.HasPrefix(m.Destination, "/lib")
}

// resolvConf is the resolver's configuration on the host. In tier full the
// sandbox shares the host's network, so its copy has to follow when a laptop
// roams or a VPN comes up.
const resolvConf = "/etc/resolv.conf"

// certificates is the source of the bundle in a plan.
const certificates = "${certs}"

func bindMount(m plan.Mount, late late, files map[plan.MadeFile][]byte, bundle []byte, full bool) Mount {
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

// isBeneathUser reports whether a user or an agent can write to a source, unlike those
// that only root and Nix can: the former are opened and checked before they
// are mounted.
func isBeneathUser(m plan.Mount) bool {
	return m.Why != plan.Base || strings.HasPrefix(m.Source, "${")
}

// projectParents are the folders between home and the project. Inside they
// are empty and read-only, so that `git worktree add ../x` fails there
// instead of vanishing with the session. Only the topmost must be a mount:
// the others lie in it.
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

// withoutLinksAbove leaves out the links below which something is mounted, a
// project in ~/go for one: its mount point would be made where the link leads,
// in the cache, which the agent can write.
func withoutLinksAbove(list []Mount) []Mount {
	above := func(link Mount) bool {
		return link.Kind == plan.Symlink && slices.ContainsFunc(list, func(m Mount) bool {
			rest, below := strings.CutPrefix(m.Destination, link.Destination)
			return below && strings.HasPrefix(rest, "/")
		})
	}
	if !slices.ContainsFunc(list, above) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), above)
}

// noConflicts refuses two mounts at one destination.
func noConflicts(list []Mount) error {
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if a.Destination == b.Destination {
			return diag.Errorf("bind the mounts", "leave one of the two out",
				"%s (%s) and %s (%s) would both lie at %s", a.Source, a.Why, b.Source, b.Why, a.Destination)
		}
	}
	return nil
}

// withParents adds the folders that lead to a mount where nothing of the host
// is, so that they are as open as folders usually are: bwrap makes them 0700.
func withParents(list []Mount) []Mount {
	all, known := make([]Mount, 0, 2*len(list)), make(map[string]bool, 2*len(list))
	known["/"] = true
	for _, m := range list {
		for _, dir := range missingParents(m.Destination, known) {
			if up := nearest(all, dir); up == nil || up.Kind == plan.Tmpfs || up.Kind == plan.Dir {
				all = append(all, Mount{Kind: plan.Dir, Destination: dir, Mode: "0755", Why: m.Why})
			}
		}
		known[m.Destination] = true
		all = append(all, m)
	}
	return all
}

// missingParents lists the folders above a path that are not known yet,
// topmost first, and makes them known.
func missingParents(destination string, known map[string]bool) []string {
	var dirs []string
	for dir := path.Dir(destination); !known[dir]; dir = path.Dir(dir) {
		known[dir] = true
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// markAbove notes for each mount the writable bind that its destination lies
// in. bwrap must not create anything there: an agent may have planted a link
// (CVE-2026-87766).
func markAbove(list []Mount) {
	for i := range list {
		if up := nearest(list[:i], list[i].Destination); up != nil && up.Kind == plan.Bind {
			list[i].Above = Place{Root: up.Source, Path: strings.TrimPrefix(list[i].Destination, up.Destination+"/")}
		}
	}
}

// nothingMadeOutside refuses files, folders and links that would be made in a
// folder of the host, because what is mounted there leaves no room for them.
func nothingMadeOutside(list []Mount) error {
	for i, m := range list {
		up := nearest(list[:i], m.Destination)
		if up != nil && up.Kind == plan.Closure {
			return diag.Errorf("mount "+m.Destination+" ("+m.Why+")", "mount it elsewhere",
				"nothing can be added to the store inside")
		}
		if up == nil || up.Kind != plan.Bind && up.Kind != plan.ROBind || m.Kind == plan.Bind ||
			m.Kind == plan.ROBind || m.Kind == plan.ROData {
			continue
		}
		return diag.Errorf("mount "+up.Source+" at "+up.Destination+" ("+up.Why+")",
			"mount it elsewhere, or single files of it",
			"the sandbox needs %s, which would be made in %s", m.Destination, up.Source)
	}
	return nil
}

// nearest is the last mount that destination lies strictly below.
func nearest(list []Mount, destination string) *Mount {
	for i := len(list) - 1; i >= 0; i-- {
		rest, below := strings.CutPrefix(destination, strings.TrimSuffix(list[i].Destination, "/"))
		if below && strings.HasPrefix(rest, "/") && list[i].Kind != plan.Symlink {
			return &list[i]
		}
	}
	return nil
}
