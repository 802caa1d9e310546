package session

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/planning"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// openProject opens the project. It returns an error if the project is too large to look at as a whole, and nobody is
// asked before the start.
func openProject(in inputs) (project.Project, error) {
	opened, err := openRemembered(in, projectRequest(in))
	unseen := opened.Cut && !slices.Contains(in.Plan.Show, "**")
	if err == nil && unseen && !in.Purpose.Look && (in.Options.Yes || in.Confirm() == "never") {
		err = diag.Errorf("hide the project's secret files",
			"start without --yes, in a subfolder, or say `show: [\"**\"]` in the profile to hide nothing",
			"it has more entries than are looked at, and nobody is asked")
	}
	return guarded.WithOwnDirenv(opened), err
}

// openRemembered opens a project. It returns an error if what is remembered of earlier sessions cannot be read.
func openRemembered(in inputs, req project.Request) (project.Project, error) {
	memory := aftermath.NewMemory(in.Folders.Home)
	req.Memory = memory
	opened, err := project.Open(req)
	return opened, cmp.Or(err, memory.Err())
}

// projectRequest makes the request for [project.Open] about the caller's project.
func projectRequest(in inputs) project.Request {
	p := in.Plan
	var never []string // no sandbox may see them
	for _, s := range profile.SecretPaths {
		never = append(never, s.Path)
	}
	return project.Request{
		Dir: in.Facts.Cwd, Home: in.Facts.Home, UID: in.Facts.UID, Own: in.Folders.Own(), Never: never,
		Build: in.Build, WritableConfig: p.Git.Config == "writable",
		GitRoot: p.Project == "git-root" || in.Options.OnBranch(p),
		Strict:  p.Protect.Mode == "strict", Worktrees: p.Worktrees,
		Protect: p.Protect.Globs, Hide: p.Hide, Show: p.Show,
		OwnFiles: slices.Concat(in.OwnFiles, in.placesByLink), UserGit: in.userGit.Files,
		HomeLinks: in.home.Links, HomeFiles: in.home.Named,
	}
}

// besideRequest makes the request for [project.Open] about a folder beside the project.
func besideRequest(in inputs, dir string) project.Request {
	req := projectRequest(in)
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

// judgeSearchPlaces returns an error if a path of byLink, see [placesByLink], leads to nothing in a folder of list: the
// agent could make there what claudebox or git would obey. A target that exists is read-only inside.
func judgeSearchPlaces(byLink []string, list []guarded.Folder) error {
	for _, place := range byLink {
		real, err := beneath.Leads(place)
		if err != nil {
			continue
		}
		if _, err := os.Lstat(real); err == nil {
			continue
		}
		if slices.ContainsFunc(list, func(f guarded.Folder) bool { return pathname.Below(real, f.Path) }) {
			return diag.Errorf("protect "+diag.Name(place),
				"remove that link, or make the file or folder that it leads to",
				"it is a link to %s, which is not there: the agent could make it, and claudebox or git "+
					"would obey it", diag.Name(real))
		}
	}
	return nil
}

// judgeWritable returns an error for a read-write mount that the user named and through
// which the agent would reach what git or claudebox obeys on the host.
func judgeWritable(in inputs, mounts []launch.Mount) error {
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
		for _, dir := range slices.Concat(in.Folders.Own(), searchPlaces(in.Folders, in.Caller.Manifest)) {
			real, err := beneath.Leads(dir)
			if err == nil && (pathname.Below(m.Source, real) ||
				slices.Contains(in.Folders.Own(), dir) && pathname.Below(real, m.Source)) {
				return diag.Errorf(op, "mount it read-only, or what is needed of it",
					"it would open %s: what is there says what a sandbox may do", dir)
			}
		}
		for _, name := range in.userGit.Obeyed(in.Facts) {
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
		if strings.EqualFold(filepath.Base(at), ".git") || at != name && project.IsGitFolder(at) {
			return at
		}
	}
	return ""
}

// guardPart is what it takes to guard the folders that are mounted beside the project.
type guardPart struct {
	launch.Part
	given []guarded.Folder // see [bound]
}

// guardGiven guards the folders that the user mounts read-write, and covers what looks secret in those that may be
// read.
func guardGiven(in inputs, mounts []launch.Mount) (made guardPart, err error) {
	if in.branch == nil {
		made.given = []guarded.Folder{{Project: in.project, At: in.project.Path}}
	}
	for _, m := range mounts {
		switch {
		case !lending.UserNamed(m) || !lending.IsFolder(m.Source),
			in.branch == nil && pathname.Below(m.Source, in.project.Path):
		case m.Kind == plan.Bind:
			err = made.addBeside(in, m, mounts)
		case m.Kind != plan.ROBind || m.Secret || pathname.Below(m.Source, "/nix/store") ||
			pathname.Below(in.project.Path, m.Source): // granted, public, or refused for what it would open
		default:
			err = made.addReadable(in, m, mounts)
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
}

// addBeside protects a folder beside the project as the project is protected: the host's git obeys what is in it. The
// mount of a bare repository becomes one of the agent's own.
func (p *guardPart) addBeside(in inputs, m launch.Mount, mounts []launch.Mount) error {
	req := besideRequest(in, m.Source)
	if m.Secret {
		req.Show = []string{"**"} // all of it was asked for
	}
	opened, err := openRemembered(in, req)
	if err != nil {
		return err
	}
	if i := slices.Index(handover.Outers(opened.Places), m.Source); i >= 0 { // a bare repository
		at := slices.IndexFunc(mounts, func(of launch.Mount) bool { return of.Destination == m.Destination })
		mounts[at].Source, mounts[at].Why = handover.Place{Folder: in.kept().Place(m.Source)}.Inner(), launch.WhyOwnGit
	}
	folder := guarded.Folder{Project: opened, At: m.Destination}
	p.given = append(p.given, folder)
	p.Mount(in.kept().HeldMount(opened))
	p.StandIns = append(p.StandIns, p.cover(in, folder, m, mounts).StandIns...)
	noteProject(&p.Part, m.Source+": ", opened)
	if folder.IsMoved() {
		p.Note(m.Source + " lies elsewhere inside: what you replace there while the session runs is not covered again")
	}
	return nil
}

// cover mounts what protects a folder in its mount m, and returns all that does: of a read-only mount, what hides
// something. What has a mount of its own is left out.
func (p *guardPart) cover(in inputs, folder guarded.Folder, m launch.Mount, mounts []launch.Mount) launch.Part {
	kept := in.kept().Protection(folder.Project)
	p.Mount(guarded.Objects(folder.Project)...)
	for i, at := range folder.Mounts {
		made := kept.Mounts[i]
		made.Destination, made.Secret = folder.In(at.Path), m.Secret
		taken := func(m launch.Mount) bool { return m.Destination == made.Destination }
		hides := at.Mode == project.Hidden || at.Mode == project.Made
		if slices.ContainsFunc(mounts, taken) || slices.ContainsFunc(p.Mounts, taken) ||
			!pathname.Below(at.Path, m.Source) || in.branch == nil && pathname.Below(at.Path, in.project.Path) ||
			m.Kind == plan.ROBind && (!hides || in.lending().IsShown(at.Path)) {
			continue
		}
		p.Mount(made)
	}
	return kept
}

// addReadable covers what looks secret in a folder that is mounted read-only: by its name or content anywhere; and in a
// folder that may be a project, what a session there would not see.
func (p *guardPart) addReadable(in inputs, m launch.Mount, mounts []launch.Mount) error {
	lent, _, whole, err := in.lending().Cover(m.Source, m.Destination)
	p.Add(lent)
	if err != nil {
		return err
	}
	if !whole {
		p.Warn(fmt.Sprintf("%s has more than %d entries: further secret files in it are not hidden",
			m.Source, project.LentLimit))
		return nil
	}
	req := besideRequest(in, m.Source)
	req.Lent = true
	opened, err := openRemembered(in, req)
	if errors.Is(err, project.ErrUnfound) {
		return err
	}
	if err == nil { // else it is no project, as a folder of another user
		kept := p.cover(in, guarded.Folder{Project: opened, At: m.Destination}, m, mounts)
		if slices.ContainsFunc(opened.Mounts, guarded.HidesFolder) {
			p.StandIns = append(p.StandIns, kept.StandIns[0]) // the empty folder
		}
	}
	return nil
}

// noteProject adds the notes on a folder: red ones as warnings, the others as notes that begin with about.
func noteProject(p *launch.Part, about string, folder project.Project) {
	for _, n := range folder.Notes {
		if n.Red {
			p.Warn(n.Text)
		} else {
			p.Note(about + n.Text)
		}
	}
}
