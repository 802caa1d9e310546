package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/project"
)

// guardPart is what it takes to guard the folders that are mounted beside the
// project.
type guardPart struct {
	part
	given   []given  // see [bound]
	covered []string // likewise
}

// guard guards the folders that the user mounts read-write, and covers what looks
// secret in those that may be read.
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
			err = made.addLent(g, m)
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
}

// addBeside guards a folder as the project is: the host's git obeys what is in
// there.
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

// noteProject says what a person should know of a folder; about goes before what
// is not red.
func (p *part) noteProject(about string, folder project.Project) {
	for _, n := range folder.Notes {
		if n.Red {
			p.warn(n.Text)
		} else {
			p.note(about + n.Text)
		}
	}
}

// addLent covers what looks secret in a folder that may be read.
func (p *guardPart) addLent(g ground, m launch.Mount) error {
	lent, whole, err := coverLent(g, m.Source, m.Destination)
	p.add(lent)
	p.covered = append(p.covered, lent.sources()...)
	if err == nil && !whole {
		p.warn(fmt.Sprintf("%s has more than %d entries: further secret files in it are not hidden",
			m.Source, project.LentLimit))
	}
	return err
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
			Why: "it looks secret",
		})
		made.note(at + " looks secret and does not enter; `show: [" + pattern(at) + "]` lets it in")
	}
	return made, !cut, nil
}
