// Package folders opens the folders of the host that an agent is given: the project, and those mounted beside it. It
// refuses what would open what claudebox, git or other tools obey, and protects the rest.
package folders

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/gituse"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/homelinks"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/planning"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/project"
)

// Host is what is known of this host when folders of it are opened, for a call and its plan.
type Host struct {
	planning.Call
	planning.Planned
	Git    gituse.Config
	Links  homelink.Found // of the user's home
	byLink []string       // see [placesByLink]
}

// HostOf is the host for a call and its plan; the links of the home were not looked at.
func HostOf(c planning.Call, of planning.Planned) Host {
	return Host{Call: c, Planned: of, Git: gituse.ReadConfig(c.Facts), byLink: placesByLink(c)}
}

// Project opens the project. It returns an error if the project is too large to look at as a whole, and nobody is asked
// before the start.
func (h Host) Project() (project.Project, error) {
	opened, err := h.open(h.request())
	unseen := opened.Cut && !slices.Contains(h.Plan.Show, "**")
	if err == nil && unseen && !h.Purpose.Look && (h.Options.Yes || h.Confirm(h.Folders) == "never") {
		err = diag.Errorf("hide the project's secret files",
			"start without --yes, in a subfolder, or say `show: [\"**\"]` in the profile to hide nothing",
			"it has more entries than are looked at, and nobody is asked")
	}
	return guarded.WithOwnDirenv(opened), err
}

// Beside opens a folder that is not the project.
func (h Host) Beside(dir string) (project.Project, error) { return h.open(h.beside(dir)) }

// open opens a folder. It returns an error if what is remembered of earlier sessions cannot be read.
func (h Host) open(req project.Request) (project.Project, error) {
	memory := aftermath.NewMemory(h.Folders.Home)
	req.Memory = memory
	opened, err := project.Open(req)
	return opened, cmp.Or(err, memory.Err())
}

// request is that for the caller's project.
func (h Host) request() project.Request {
	p := h.Plan
	homes, isSecret := h.otherNames()
	var never []string // no sandbox may see them
	for _, s := range profile.SecretPaths {
		never = append(never, s.Path)
	}
	return project.Request{
		Dir: h.Facts.Cwd, Home: h.Facts.Home, UID: h.Facts.UID, Own: h.Folders.Own(), Never: never,
		Build: h.Build, WritableConfig: p.Git.Config == "writable",
		GitRoot: p.Project == profile.ProjectGitRoot || h.Options.OnBranch(p),
		Strict:  p.Protect.Mode == "strict", Worktrees: p.Worktrees,
		Protect: p.Protect.Globs, Hide: p.Hide, Show: p.Show,
		OwnFiles: slices.Concat(h.OwnFiles, h.byLink), UserGit: h.Git.Files,
		HomeLinks: h.Links.Links, HomeFiles: homes, IsSecret: isSecret,
	}
}

// SecretFiles are the files of the profile's `secrets`, as far as they are there.
func (h Host) SecretFiles() (files []string) {
	for _, s := range h.Plan.Secrets {
		if s.File == "" {
			continue
		}
		if file, err := beneath.Canonical(h.Facts.Absolute(s.File)); err == nil {
			files = append(files, file)
		}
	}
	return files
}

// otherNames returns the files of the home that have further names, and those of the profile's `secrets`; and what
// tells which of them are secret.
func (h Host) otherNames() (files map[homelink.Inode]string, isSecret func(name string) bool) {
	files = h.Links.Named
	kept := h.SecretFiles()
	for _, file := range kept {
		var st unix.Stat_t
		if unix.Lstat(file, &st) == nil && st.Nlink > 1 {
			if files = maps.Clone(files); files == nil {
				files = map[homelink.Inode]string{}
			}
			files[homelink.Inode{Dev: st.Dev, Ino: st.Ino}] = file
		}
	}
	return files, func(name string) bool {
		return slices.Contains(kept, name) || homelinks.IsSecret(h.Facts.Home, name)
	}
}

// beside is the request for a folder beside the project.
func (h Host) beside(dir string) project.Request {
	req := h.request()
	req.Dir, req.Beside, req.GitRoot, req.Protect = dir, true, false, nil
	return req
}

// searchPlaces lists the paths that say what the next sandbox may do: the folders in
// which profiles, plans and approvals are looked for, the entries there, the
// manifest. They are listed whether they exist or not.
func searchPlaces(folders profiledir.Folders, manifest string) []string {
	places := []string{filepath.Join(folders.Home, "trusted"), filepath.Join(folders.Home, "plan-cache")}
	if manifest != "" {
		places = append(places, manifest)
	}
	for _, dir := range folders.Search() {
		places = append(places, dir)
		for _, name := range []string{"profiles", "plans"} {
			dir := filepath.Join(dir, name)
			places = append(places, dir)
			entries, _ := os.ReadDir(dir) // a launch ignores a folder that cannot be read, too
			for _, entry := range entries {
				places = append(places, filepath.Join(dir, entry.Name()))
			}
		}
	}
	return places
}

// placesByLink lists the paths that are reached by a link, of the search places and of
// the user's git configuration. A link can lead into a folder that the agent may change.
func placesByLink(c planning.Call) []string {
	places := append(searchPlaces(c.Folders, c.Caller.Manifest), usergit.Files(c.Facts.Home, c.Facts.Env.Get)...)
	return slices.DeleteFunc(places, func(place string) bool {
		real, err := beneath.Leads(place)
		return err != nil || real == place
	})
}

// JudgeSearchPlaces returns an error if a path that claudebox or git obeys is a link, and leads to nothing in one of
// the folders: the agent could make there what is obeyed. A target that exists is read-only inside.
func (h Host) JudgeSearchPlaces(given []guarded.Folder) error {
	for _, place := range h.byLink {
		real, err := beneath.Leads(place)
		if err != nil {
			continue
		}
		if _, err := os.Lstat(real); err == nil {
			continue
		}
		if slices.ContainsFunc(given, func(f guarded.Folder) bool { return pathname.Below(real, f.Path) }) {
			return diag.Errorf("protect "+diag.Name(place),
				"remove that link, or make the file or folder that it leads to",
				"it is a link to %s, which is not there: the agent could make it, and claudebox or git "+
					"would obey it", diag.Name(real))
		}
	}
	return nil
}

// JudgeWritable returns an error for a read-write mount that the user named and through
// which the agent would reach what git or claudebox obeys on the host.
func (h Host) JudgeWritable(mounts []launch.Mount) error {
	for _, m := range mounts {
		if m.Kind != plan.Bind || !lending.UserNamed(m) {
			continue
		}
		op := "mount " + diag.Name(m.Source) + " (" + m.Why + ")"
		if git := gitFolderAround(m.Source); git != "" {
			return diag.Errorf(op,
				"mount it read-only, or mount the working tree: what git obeys in there is protected",
				"it lies in %s, where this host's git obeys what an agent writes", git)
		}
		for _, dir := range slices.Concat(h.Folders.Own(), searchPlaces(h.Folders, h.Caller.Manifest)) {
			real, err := beneath.Leads(dir)
			if err == nil && (pathname.Below(m.Source, real) ||
				slices.Contains(h.Folders.Own(), dir) && pathname.Below(real, m.Source)) {
				return diag.Errorf(op, "mount it read-only, or what is needed of it",
					"it would open %s: what is there says what a sandbox may do", dir)
			}
		}
		for _, name := range h.Git.Obeyed(h.Facts) {
			if real, err := beneath.Leads(name); err == nil && pathname.Below(m.Source, real) {
				return diag.Errorf(op, "mount it read-only",
					"it would open %s, which your git's configuration names: this host's git obeys what is there",
					name)
			}
		}
	}
	return nil
}

// gitFolderAround returns the git folder that a path lies in, or the path itself if it is called .git; empty if there
// is none. A bare repository may be mounted as a whole, so that one is not returned for its own path.
func gitFolderAround(name string) string {
	for at := name; at != "/"; at = filepath.Dir(at) {
		if git.IsDotGit(filepath.Base(at)) || at != name && git.IsFolder(at) {
			return at
		}
	}
	return ""
}
