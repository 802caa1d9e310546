package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// Plan renders the whole launch so that it is read in ten seconds: what this
// profile, this host and this command line bring stands in full, with the
// rule it came from; what every sandbox has is named, in few lines.
func (v View) Plan(l launch.Launch) string {
	p := page{View: v}
	p.head(l, "claudebox: this would enter the sandbox")
	p.pins(l.Plan)
	own, base := l.Plan.Packages()
	p.packages("packages of the profile, first on PATH", own)
	p.paragraph("claudebox's own packages", names(base), ", ")
	p.secretsOutside(l)
	p.variables(l.Env)
	p.mounts(l)
	p.base(l.Mounts)
	p.remarks(l)
	return p.b.String()
}

// Whole renders everything: each package with its store path, every variable
// and every mount with the rule it came from.
func (v View) Whole(l launch.Launch) string {
	p := page{View: v}
	p.head(l, "claudebox: this would enter the sandbox")
	p.pins(l.Plan)
	p.packages("packages, in the order of PATH", l.Plan.Pins.Packages)
	p.secretsOutside(l)
	var rows [][]string
	for _, v := range l.Env {
		value := p.short(v.Masked())
		if v.Name == "PATH" {
			value = "the packages, in order"
		}
		rows = append(rows, []string{v.Name, value, string(v.From), secrecy(v.Secret), v.Why})
	}
	p.section("environment: nothing else enters", rows, 1, 3)
	rows = nil
	for _, m := range l.Mounts {
		if m.Kind != plan.Dir {
			rows = append(rows, []string{string(m.Kind), p.place(m), secrecy(m.Secret), rule(m)})
		}
	}
	p.section("mounts, in their order", rows, 1, 2)
	p.remarks(l)
	return p.b.String()
}

// shownDigest is how many characters of a digest are shown for a person to compare.
const shownDigest = 16

func (p *page) pins(pl plan.Plan) {
	nixpkgs := strings.TrimSpace(pl.Pins.Nixpkgs.Rev + " " + p.short(pl.Pins.Nixpkgs.Path))
	p.field("nixpkgs", cmp.Or(nixpkgs, "not pinned"), "")
	if n := p.Sizes.Paths; n > 0 {
		p.field("size", fmt.Sprintf("%s in %d store paths", size(p.Sizes.Total), n), "")
	}
	p.field("plan", "sha256 "+pl.Digest()[:shownDigest]+"…; `claudebox plan --all` shows it all", "")
}

func (p *page) packages(title string, list []plan.Package) {
	var rows [][]string
	for _, pkg := range list {
		for _, output := range pkg.Outputs {
			rows = append(rows, []string{
				pkg.Attr, pkg.Version, p.short(output.Path),
				size(p.Sizes.Of[output.Path]), pkg.Why,
			})
		}
	}
	p.section(title, rows, 2, -1)
}

// size renders a number of bytes for people; empty for 0, which means that it is not known.
func size(bytes uint64) string {
	switch {
	case bytes == 0:
		return ""
	case bytes < 1<<20:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// groups are the kinds of mounts in the base, for people.
var groups = []struct {
	name  string
	kinds []plan.MountKind
}{
	{"rw", []plan.MountKind{plan.Bind}},
	{"ro", []plan.MountKind{plan.ROBind, plan.Closure}},
	{"made", []plan.MountKind{plan.File, plan.ROData}},
	{"links", []plan.MountKind{plan.Symlink}},
	{"empty", []plan.MountKind{plan.Tmpfs}},
	{"kernel", []plan.MountKind{plan.Proc, plan.Dev}},
}

// base names the mounts that every sandbox has.
func (p *page) base(list []launch.Mount) {
	p.title("mounts of every sandbox")
	for _, g := range groups {
		var places []string
		for _, m := range list {
			if slices.Contains(g.kinds, m.Kind) && (m.Why == plan.Base || accesses[m.Kind] == "") {
				places = append(places, p.name(m.Destination))
			}
		}
		if len(places) > 0 {
			p.item(fmt.Sprintf("%-8s", g.name), strings.Join(places, "  "), "")
		}
	}
}
