package audit

import (
	"strings"

	"claudebox/internal/launch"
	"claudebox/internal/plan"
)

// Plan renders the whole launch for reading: everything that [View.Text]
// says, each package with its store path, every variable and every mount with
// the rule it came from.
func (v View) Plan(l launch.Launch) string {
	p := page{view: v}
	p.head(l, "claudebox: this would enter the sandbox")
	p.pins(l.Plan)
	p.packages(l.Plan.Pins.Packages)
	p.environment(l.Env)
	p.allMounts(l.Mounts)
	p.remarks(l)
	return p.b.String()
}

// shownDigest is as much of a digest as a person compares.
const shownDigest = 16

func (p *page) pins(pl plan.Plan) {
	p.field("nixpkgs", orElse(strings.TrimSpace(pl.Pins.Nixpkgs.Rev+" "+p.short(pl.Pins.Nixpkgs.Path)), "not pinned"))
	p.field("plan", "sha256 "+pl.Digest()[:shownDigest]+"…")
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func (p *page) packages(list []plan.Package) {
	var rows [][]string
	for _, pkg := range list {
		for _, output := range pkg.Outputs {
			rows = append(rows, []string{pkg.Attr, pkg.Version, p.short(output.Path), pkg.Why})
		}
	}
	p.section("packages, in the order of PATH", rows, 2, -1)
}

func (p *page) environment(env []launch.Variable) {
	var rows [][]string
	for _, v := range env {
		value := p.short(v.Masked())
		if v.Name == "PATH" {
			value = "the packages, in order"
		}
		rows = append(rows, []string{v.Name, value, string(v.From), secrecy(v.Secret), v.Why})
	}
	p.section("environment: nothing else enters", rows, 1, 3)
}

func (p *page) allMounts(list []launch.Mount) {
	var rows [][]string
	for _, m := range list {
		if m.Kind != plan.Dir {
			rows = append(rows, []string{string(m.Kind), p.place(m), secrecy(m.Secret), m.Why})
		}
	}
	p.section("mounts, in their order", rows, 1, 2)
}

// section is a titled table, left out when there are no rows.
func (p *page) section(title string, rows [][]string, flexible, marked int) {
	if len(rows) == 0 {
		return
	}
	p.title(title)
	p.table(rows, flexible, marked)
}
