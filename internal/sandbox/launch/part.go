package launch

import (
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
)

// Part is what one subject adds to a launch.
type Part struct {
	Mounts   []Mount
	StandIns []StandIn
	Made     []Variable // variables set for this launch; they override the plan's
	Outside  []Outside
	Left     []diag.Left // what of the user's does not enter
	Notes    []string    // messages for the user before the start
	Warnings []string    // the same, shown in red
}

// Mount adds mounts.
func (p *Part) Mount(list ...Mount) { p.Mounts = append(p.Mounts, list...) }

// Has reports whether one of the mounts is at a place inside.
func (p Part) Has(destination string) bool {
	return slices.ContainsFunc(p.Mounts, func(m Mount) bool { return m.Destination == destination })
}

// Note adds messages for the user before the start.
func (p *Part) Note(texts ...string) { p.Notes = append(p.Notes, texts...) }

// Warn adds messages that are shown in red.
func (p *Part) Warn(texts ...string) { p.Warnings = append(p.Warnings, texts...) }

// Leave says what of the user's does not enter: its kind, and why with the way in.
func (p *Part) Leave(kind, text string) {
	p.Left = append(p.Left, diag.Left{Kind: kind, Text: text})
}

// LeaveAll leaves out several of a kind, by their names. text has ALL for them, and FIRST for the first.
func (p *Part) LeaveAll(kind, text string, names []string) {
	if len(names) > 0 {
		text = strings.NewReplacer("ALL", diag.Visible(strings.Join(names, ", ")), "FIRST", names[0]).Replace(text)
		p.Left = append(p.Left, diag.Left{Kind: kind, Text: text, Also: len(names) - 1})
	}
}

// LeaveRed leaves out what a commit's content, or the way of a secret, depends on.
func (p *Part) LeaveRed(kind, text string) {
	p.Left = append(p.Left, diag.Left{Kind: kind, Text: text, Red: true})
}

// Set gives the sandbox a variable; why is the rule behind it.
func (p *Part) Set(name, value, why string) {
	entry := plan.Env{Name: name, From: plan.FromMade, Why: why}
	p.Made = append(p.Made, Variable{Env: entry, Value: value})
}

// ListOutside lists a secret as one that the agent uses and that stays outside.
func (p *Part) ListOutside(name string, hosts []string, why string) {
	p.Outside = append(p.Outside, Outside{Name: name, Hosts: hosts, Why: why})
}

// Add appends all that other parts add, in their order.
func (p *Part) Add(others ...Part) {
	for _, o := range others {
		p.Mount(o.Mounts...)
		p.Note(o.Notes...)
		p.Warn(o.Warnings...)
		p.Left = append(p.Left, o.Left...)
		p.Made, p.Outside = append(p.Made, o.Made...), append(p.Outside, o.Outside...)
		for _, s := range o.StandIns {
			if !slices.Contains(p.StandIns, s) { // parts may share a stand-in
				p.StandIns = append(p.StandIns, s)
			}
		}
	}
}
