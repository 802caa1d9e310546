package session

import (
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
	"claudebox/internal/session/usergit"
	"claudebox/internal/ui/audit"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

func openProject(g ground) (project.Project, error) {
	opened, err := project.Open(projectRequest(g))
	unseen := opened.Cut && !slices.Contains(g.plan.Show, "**")
	if err == nil && unseen && !g.why.Look && (g.options.Yes || !g.plan.Asks()) {
		err = diag.Errorf("hide the project's secret files",
			"start without --yes, in a subfolder, or say `show: [\"**\"]` in the profile to hide nothing",
			"it has more entries than are looked at, and nobody is asked")
	}
	return opened, err
}

// projectRequest is what package project is asked for the project.
func projectRequest(g ground) project.Request {
	p, home := g.plan, g.folders.Home
	var never []string // no sandbox may see them (SAND-09)
	for _, s := range profile.SecretPaths {
		never = append(never, s.Path)
	}
	return project.Request{
		Dir: g.Facts.Cwd, Home: g.Facts.Home, UID: g.Facts.UID, Own: ownFolders(g.folders), Never: never,
		Build: g.build, GitRoot: p.Project == "git-root", WritableConfig: p.Git.Config == "writable",
		Strict: p.Protect.Mode == "strict", Worktrees: p.Beside, Protect: p.Protect.Globs, Hide: p.Hide, Show: p.Show,
		Orders: slices.Concat(g.orders, g.led), UserGit: g.userGit.files,
		Memory: aftermath.NewMemory(home),
		Filled: func(dir string) project.Filled { return aftermath.Filled(home, dir) },
		Known:  func(scope project.Scope) *project.Seen { return aftermath.Known(home, scope) },
	}
}

// searchPlaces are the places that say what the next sandbox may do: where
// profiles, plans and approvals are looked for, the entries there, the
// manifest. They count whether anything is there or not.
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
			entries, _ := os.ReadDir(dir) // one that cannot be read is nothing to a launch either
			for _, entry := range entries {
				places = append(places, filepath.Join(dir, entry.Name()))
			}
		}
	}
	return places
}

// ledElsewhere are those of the search places, and of the user's files of
// git's configuration, that a link leads to another place.
func ledElsewhere(c call) (list []string) {
	places := append(searchPlaces(c.folders, c.caller.Manifest), usergit.Files(c.Facts.Home, c.Facts.Env.Get)...)
	for _, place := range places {
		if real, err := beneath.Leads(place); err == nil && real != place {
			list = append(list, place)
		}
	}
	return list
}

// ownFolders are claudebox's own folders, and where they lead.
func ownFolders(folders profiledir.Folders) []string {
	list := folders.Own()
	for _, dir := range folders.Own() {
		if real, err := beneath.Leads(dir); err == nil && real != dir {
			list = append(list, real)
		}
	}
	return list
}

// judgeSearchPlaces refuses a link to where an agent could make what claudebox
// or git would obey. What is there already is read-only inside.
func judgeSearchPlaces(led []string, list []given) error {
	for _, place := range led {
		real, err := beneath.Leads(place)
		if err != nil {
			continue
		}
		if _, err := os.Lstat(real); err == nil {
			continue
		}
		if slices.ContainsFunc(list, func(f given) bool { return pathname.Below(real, f.Path) }) {
			return diag.Errorf("protect "+place, "remove that link, or make the file or folder that it leads to",
				"it is a link to %s, which is not there: the agent could make it, and claudebox or git "+
					"would obey it", real)
		}
	}
	return nil
}

// judgeWritable refuses a read-write mount that a user named and through which
// an agent would reach what git or claudebox obeys on the host.
func judgeWritable(g ground, mounts []launch.Mount) error {
	for _, m := range mounts {
		if m.Kind != plan.Bind || !userNamed(m) {
			continue
		}
		op := "mount " + m.Source + " (" + m.Why + ")"
		if git := gitFolderAround(m.Source); git != "" {
			return diag.Errorf(op,
				"mount it read-only, or mount the working tree: what git obeys in there is protected",
				"it lies in %s, where this host's git obeys what an agent writes", git)
		}
		for _, dir := range append(ownFolders(g.folders), searchPlaces(g.folders, g.caller.Manifest)...) {
			real, err := beneath.Leads(dir)
			if err == nil && (pathname.Below(m.Source, real) ||
				slices.Contains(g.folders.Own(), dir) && pathname.Below(real, m.Source)) {
				return diag.Errorf(op, "mount it read-only, or what is needed of it",
					"it would open %s: what is there says what a sandbox may do", dir)
			}
		}
		for _, name := range g.userGit.obeyed(g.call) {
			if real, err := beneath.Leads(name); err == nil && pathname.Below(m.Source, real) {
				return diag.Errorf(op, "mount it read-only",
					"it would open %s, which your git's configuration names: this host's git obeys what is there",
					name)
			}
		}
	}
	return nil
}

// gitFolderAround is the git folder that a path lies in, or the .git that it
// is; empty when there is none. A bare repository as a whole may be given.
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
	part
	given []given // see [bound]
}

// guard guards the folders that the user mounts read-write, and covers what looks secret in those that may be read.
func guard(g ground, mounts []launch.Mount) (made guardPart, err error) {
	made.given = []given{{g.project, g.project.Path}}
	for _, m := range mounts {
		switch {
		case !userNamed(m) || !isFolder(m.Source) || pathname.Below(m.Source, g.project.Path):
		case m.Kind == plan.Bind:
			err = made.addBeside(g, m, mounts)
		case m.Kind != plan.ROBind || m.Secret || pathname.Below(m.Source, "/nix/store") ||
			pathname.Below(g.project.Path, m.Source): // granted, public, or refused for what it would open
		default:
			lent, whole, covers := coverLent(g, m.Source, m.Destination)
			if made.add(lent); covers == nil && !whole {
				made.warn(fmt.Sprintf("%s has more than %d entries: further secret files in it are not hidden",
					m.Source, project.LentLimit))
			}
			err = covers
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
}

// addBeside guards a folder as the project is: the host's git obeys what is in there.
func (p *guardPart) addBeside(g ground, m launch.Mount, mounts []launch.Mount) error {
	req := projectRequest(g)
	req.Dir, req.GitRoot, req.Protect = m.Source, false, nil
	if m.Secret {
		req.Show = []string{"**"} // all of it was asked for
	}
	opened, err := project.OpenBeside(req)
	if err != nil {
		return err
	}
	folder := given{opened, m.Destination}
	p.given = append(p.given, folder)
	kept := protection(opened, emptyFolder(g.call))
	for i, made := range kept.mounts {
		path := opened.Mounts[i].Path
		made.Destination, made.Secret = folder.inside(path), m.Secret
		taken := func(m launch.Mount) bool { return m.Destination == made.Destination }
		if !slices.ContainsFunc(mounts, taken) && !slices.ContainsFunc(p.mounts, taken) &&
			pathname.Below(path, m.Source) && !pathname.Below(path, g.project.Path) {
			p.mount(made)
		}
	}
	p.standIns = append(p.standIns, kept.standIns...)
	p.noteProject(m.Source+": ", opened)
	if folder.moved() {
		p.note(m.Source + " lies elsewhere inside: what you replace there while the session runs is not covered again")
	}
	return nil
}

// noteProject says what a person should know of a folder; about goes before what is not red.
func (p *part) noteProject(about string, folder project.Project) {
	for _, n := range folder.Notes {
		if n.Red {
			p.warn(n.Text)
		} else {
			p.note(about + n.Text)
		}
	}
}

// coverLent covers what looks secret in a folder of the user's own that the
// agent can read, and reports whether all of it was looked at.
func coverLent(g ground, source, destination string) (made part, whole bool, err error) {
	// as `show` in a profile names it, from the user's home or from the root
	pattern := func(path string) string {
		if rest, ok := strings.CutPrefix(path, g.Facts.Home+"/"); ok {
			return rest
		}
		return strings.TrimPrefix(path, "/")
	}
	shown := func(rel string) bool { return project.Shown(g.plan.Show, pattern(filepath.Join(source, rel))) }
	covers, cut, err := project.LookLent(source, shown)
	if err != nil {
		return made, false, diag.Wrap("look for secrets in "+source, err, "make it readable for you, or take it away")
	}
	for _, c := range covers {
		at := filepath.Join(source, c.Rel)
		made.mount(launch.Mount{
			Kind: plan.ROData, Source: at, Destination: destination + "/" + c.Rel, Data: c.Content,
			Why: audit.WhyHidden,
		})
		made.note(at + " looks secret and does not enter; `show: [" + pattern(at) + "]` lets it in")
	}
	return made, !cut, nil
}
