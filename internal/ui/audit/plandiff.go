package audit

import (
	"fmt"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/plan/diff"
)

// Diff renders what changed between two plans: a line for each subject, with
// a mark for each change, then the changes themselves. Those that widen the
// sandbox are marked and red.
func (v View) Diff(d diff.Diff, before, after string) string {
	p := page{View: v}
	if len(d) == 0 {
		p.line("claudebox: no change from " + p.short(before) + " to " + p.short(after))
		return p.b.String()
	}
	p.line(p.Paint(layout.Bold, "claudebox: from "+p.short(before)+" to "+p.short(after)))
	for _, s := range d {
		p.labelled(s.Name, "", p.summary(s.Changes))
	}
	for _, s := range d {
		p.title(s.Name)
		p.changes(s.Changes)
	}
	return p.b.String()
}

// signs are the marks of changes, and colours their paint.
var (
	signs   = map[diff.Kind]string{diff.Added: "+", diff.Removed: "-", diff.Changed: "~"}
	colours = map[diff.Kind]string{diff.Added: layout.Green, diff.Changed: layout.Yellow}
)

// summary counts changes by kind, and draws each, as far as there is room.
func (v View) summary(changes []diff.Change) string {
	const most = 20 // marks
	count := map[diff.Kind]int{}
	wider := 0
	for _, c := range changes {
		count[c.Kind]++
		if c.Wider {
			wider++
		}
	}
	var words []string
	bar := ""
	for _, kind := range []diff.Kind{diff.Added, diff.Changed, diff.Removed} {
		if n := count[kind]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, kind))
			bar += v.Paint(colours[kind], strings.Repeat(signs[kind], min(n, most*n/len(changes)+1)))
		}
	}
	text := fmt.Sprintf("%-33s%s", strings.Join(words, ", "), bar)
	if wider > 0 {
		text += v.Paint(layout.Red, fmt.Sprintf("  %d wider", wider))
	}
	return text
}

// changes lists them as rows: sign and name, what it was and is, a remark.
func (p *page) changes(list []diff.Change) {
	room := p.Width - indent
	widest := 0
	for _, c := range list {
		widest = max(widest, layout.Width(diag.Visible(c.Name)))
	}
	widest = min(widest, room/3)
	for _, c := range list {
		name := layout.Shorten(diag.Visible(c.Name), max(widest, room-2-layout.Width(p.values(c))-gap))
		text := fmt.Sprintf("%s %-*s", signs[c.Kind], widest, name)
		if values := p.values(c); values != "" {
			text += strings.Repeat(" ", gap) + layout.Shorten(values, room-layout.Width(text)-gap)
		}
		code := colours[c.Kind]
		if c.Wider {
			code = layout.Red
		}
		p.line(strings.Repeat(" ", indent) + p.Paint(code, strings.TrimRight(text, " ")))
	}
}

// values is all that is said of a change after its name.
func (v View) values(c diff.Change) string {
	text := v.short(c.Before) + v.short(c.After)
	if c.Kind == diff.Changed && c.Before != c.After {
		text = v.short(c.Before) + " → " + v.short(c.After)
	} else if c.Kind == diff.Changed {
		text = v.short(c.After)
	}
	remarks := []string{c.Note, ""}
	if c.Wider {
		remarks[1] = "wider"
	}
	for _, remark := range remarks {
		if remark != "" {
			text = strings.TrimLeft(text+"  ("+remark+")", " ")
		}
	}
	return text
}
