package folders

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// Giving is what the folders that an agent is given are guarded by.
type Giving struct {
	Host
	Project  project.Project
	OnBranch bool // the agent works on a branch: the project's folder is not given
	Lending  lending.Host
	Kept     guarded.Places
}

// Part is what it takes to guard the folders that are mounted beside the project.
type Part struct {
	launch.Part
	Given []guarded.Folder // that the agent may change: the project first

	away   []away
	hidden []project.Mount // in all folders, as they were opened
}

// away are where links of a mounted folder lead that have the name of a secret.
type away struct {
	from string // the folder
	to   []string
}

// Guard guards the folders that the user mounts read-write, and covers what looks secret in those that may be
// read.
func (g Giving) Guard(mounts []launch.Mount) (made Part, err error) {
	if !g.OnBranch {
		made.Given = []guarded.Folder{{Project: g.Project, At: g.Project.Path}}
	}
	for _, m := range mounts {
		switch {
		case !lending.UserNamed(m) || !lending.IsFolder(m.Source),
			!g.OnBranch && pathname.Below(m.Source, g.Project.Path):
		case m.Kind == plan.Bind:
			err = made.addBeside(g, m, mounts)
		case m.Kind != plan.ROBind || m.Secret || pathname.Below(m.Source, "/nix/store"): // granted, or public
		default:
			err = made.addReadable(g, m, mounts)
		}
		if err != nil {
			return made, err
		}
	}
	made.warnOfBorrowed(g, mounts)
	return made, made.judgeAway(g, mounts)
}

// warnOfBorrowed warns of repositories that borrow objects which are not inside: a file in the git folder names them,
// which came with the repository, perhaps. So they enter only where the user says so.
func (p *Part) warnOfBorrowed(g Giving, mounts []launch.Mount) {
	places := slices.Clone(g.Project.Places)
	for _, folder := range p.Given {
		places = append(places, folder.Places...)
	}
	var told []string
	for _, place := range places {
		var words []string
		for _, dir := range place.Borrows() {
			enters := func(m launch.Mount) bool {
				return (m.Kind == plan.Bind || m.Kind == plan.ROBind) && m.Source == m.Destination &&
					pathname.Below(dir, m.Source)
			}
			if lending.IsFolder(dir) && !slices.ContainsFunc(mounts, enters) {
				words = append(words, "--mount-ro "+diag.Quote(dir))
			}
		}
		if len(words) == 0 || slices.Contains(told, place.Outer) {
			continue
		}
		told = append(told, place.Outer)
		remedy := fmt.Sprintf("`%s` lets it read them; or make them its own: `git -C %s repack -adq && rm %s`",
			strings.Join(words, " "), diag.Quote(place.Outer), diag.Quote(place.Outer+"/objects/info/alternates"))
		p.Warn(diag.Name(place.Outer) + " borrows objects of another repository, which are not inside: git will find " +
			"commits missing there. " + remedy)
	}
}

// judgeAway returns an error if a link of a mounted folder that has the name of a secret leads into what the agent is
// given, where nothing hides that. (What the project's links lead to is hidden.)
func (p *Part) judgeAway(g Giving, mounts []launch.Mount) error {
	kept := slices.Concat(g.Project.Mounts, p.hidden)
	given := []string{g.Project.Path}
	if g.OnBranch {
		given = nil
	}
	for _, m := range mounts {
		if lending.UserNamed(m) && !m.Secret && (m.Kind == plan.Bind || m.Kind == plan.ROBind) {
			given = append(given, m.Source)
		}
	}
	for _, from := range p.away {
		for _, to := range from.to {
			inside := func(dir string) bool { return to != dir && pathname.Below(to, dir) }
			hides := func(m project.Mount) bool { return m.Mode == project.Hidden && pathname.Below(to, m.Path) }
			if slices.ContainsFunc(given, inside) && !slices.ContainsFunc(kept, hides) {
				return diag.Errorf("mount "+diag.Name(from.from),
					"name that in `hide` of the profile; or the link in `show`, if it is no secret",
					"a link in it that has the name of a secret leads to %s, which the agent could read there",
					diag.Name(to))
			}
		}
	}
	return nil
}

// addBeside protects a folder beside the project as the project is protected: the host's git obeys what is in it. The
// mount of a bare repository becomes one of the agent's own.
func (p *Part) addBeside(g Giving, m launch.Mount, mounts []launch.Mount) error {
	req := g.beside(m.Source)
	req.LedTo = g.Project.Away
	if m.Secret {
		req.Show = []string{"**"} // all of it was asked for
	}
	opened, err := g.open(req)
	if err != nil {
		return err
	}
	if i := slices.Index(handover.Outers(opened.Places), m.Source); i >= 0 { // a bare repository
		at := slices.IndexFunc(mounts, func(of launch.Mount) bool { return of.Destination == m.Destination })
		mounts[at].Source, mounts[at].Why = handover.Place{Folder: g.Kept.Place(m.Source)}.Inner(), launch.WhyOwnGit
	}
	for _, at := range handover.Outers(g.Project.Places) {
		if slices.Contains(handover.Outers(opened.Places), at) {
			return diag.Errorf("mount "+m.Source+" ("+m.Why+")", "mount it read-only, or start in it",
				"%s in it is the project's, of which the agent has one of its own", at)
		}
	}
	p.opened(m, opened)
	folder := guarded.Folder{Project: opened, At: m.Destination}
	p.Given = append(p.Given, folder)
	p.Mount(g.Kept.HeldMount(opened)...)
	p.StandIns = append(p.StandIns, p.cover(g, folder, m, mounts).StandIns...)
	Note(&p.Part, m.Source+": ", opened)
	return nil
}

// opened notes what of a mounted folder is hidden, and where its links lead.
func (p *Part) opened(m launch.Mount, folder project.Project) {
	p.hidden = append(p.hidden, folder.Mounts...)
	if !m.Secret {
		p.away = append(p.away, away{m.Source, folder.Away})
	}
}

// cover mounts what protects a folder in its mount m, and returns all that does: of a read-only mount, what hides
// something. What has a mount of its own is left out.
func (p *Part) cover(g Giving, folder guarded.Folder, m launch.Mount, mounts []launch.Mount) launch.Part {
	kept := g.Kept.Protection(folder.Project)
	p.Mount(guarded.Objects(folder.Project)...)
	for i, at := range folder.Mounts {
		made := kept.Mounts[i]
		made.Destination, made.Secret = folder.In(at.Path), m.Secret
		taken := func(m launch.Mount) bool { return m.Destination == made.Destination }
		hides := at.Mode == project.Hidden || at.Mode == project.Made
		if slices.ContainsFunc(mounts, taken) || slices.ContainsFunc(p.Mounts, taken) ||
			!pathname.Below(at.Path, m.Source) || !g.OnBranch && pathname.Below(at.Path, g.Project.Path) ||
			m.Kind == plan.ROBind && (!hides || g.Lending.IsShown(at.Path) || isUnder(made.Destination, m, mounts)) {
			continue
		}
		p.Mount(made)
	}
	return kept
}

// isUnder reports whether what is at a path inside is not that of the mount m: another one lies over it, or around it.
func isUnder(at string, m launch.Mount, mounts []launch.Mount) bool {
	return slices.ContainsFunc(mounts, func(over launch.Mount) bool {
		return over.Destination != m.Destination && over.Kind != plan.Symlink && // a mount takes a link's place
			pathname.Below(over.Destination, m.Destination) && pathname.Below(at, over.Destination)
	})
}

// addReadable covers what looks secret in a folder that is mounted read-only: by its name or content anywhere; and in a
// folder that may be a project, what a session there would not see.
func (p *Part) addReadable(g Giving, m launch.Mount, mounts []launch.Mount) error {
	lender := g.Lending
	lender.Over = func(at string) bool { return isUnder(at, m, mounts) }
	lent, _, whole, err := lender.Cover(m.Source, m.Destination, false)
	p.Add(lent)
	if err != nil {
		return err
	}
	if !whole {
		p.Warn(fmt.Sprintf("%s has more than %d entries: further secret files in it are not hidden",
			m.Source, project.LentLimit))
		return nil
	}
	req := g.beside(m.Source)
	req.Lent, req.LedTo = true, g.Project.Away
	opened, err := g.open(req)
	if errors.Is(err, project.ErrUnfound) {
		return err
	}
	if err == nil { // else it is no project, as a folder of another user
		p.opened(m, opened)
		kept := p.cover(g, guarded.Folder{Project: opened, At: m.Destination}, m, mounts)
		if slices.ContainsFunc(opened.Mounts, guarded.HidesFolder) {
			p.StandIns = append(p.StandIns, kept.StandIns[0]) // the empty folder
		}
	}
	return nil
}

// Note adds the notes on a folder: red ones as warnings, the others as notes that begin with about.
func Note(p *launch.Part, about string, folder project.Project) {
	for _, n := range folder.Notes {
		if n.Red {
			p.Warn(n.Text)
		} else {
			p.Note(about + n.Text)
		}
	}
}
