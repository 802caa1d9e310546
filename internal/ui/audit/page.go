package audit

import (
	"fmt"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
)

// page collects the lines of an audit.
type page struct {
	View
	b strings.Builder
}

const (
	labelWidth = 10 // columns of a label
	indent     = 4  // blanks before a table
	gap        = 2  // blanks between columns
	least      = 12 // narrowest flexible column
)

// unbroken is a blank at which no line is broken. Text of others has none that [diag.Visible] leaves.
const unbroken = "\u00a0"

// short makes a path readable, control characters included.
func (v View) short(path string) string { return diag.Visible(layout.Path(v.Home, path)) }

// name makes the path of a file readable that an agent may have named, see [diag.Name].
func (v View) name(path string) string { return diag.Name(layout.Path(v.Home, path)) }

// each applies of to each element of a list.
func each[T, R any](list []T, of func(T) R) []R {
	made := make([]R, len(list))
	for i, one := range list {
		made[i] = of(one)
	}
	return made
}

func visible(list []string) []string { return each(list, diag.Visible) }

func (p *page) line(text string) { p.b.WriteString(strings.TrimRight(text, " ") + "\n") }

func (p *page) title(text string) { fmt.Fprintf(&p.b, "\n  %s\n", p.Paint(layout.Bold, text)) }

// room is how many columns stand beside the labels.
func (v View) room() int { return v.Width - labelWidth - 2 }

// labelled writes lines beside a label.
func (p *page) labelled(label, colour string, lines ...string) {
	for _, line := range lines {
		p.line("  " + p.Paint(layout.Dim, fmt.Sprintf("%-*s", labelWidth, label)) + p.Paint(colour, line))
		label = ""
	}
}

// field writes a text beside a label, in as many lines as it takes.
func (p *page) field(label, text, colour string) {
	p.labelled(label, colour, layout.Wrap(text, p.room())...)
}

// few writes a field in no more lines than most. A text that is too long for them is cut
// in the middle of the last.
func (p *page) few(label, text, colour string, most int) {
	lines := layout.Wrap(text, p.room())
	if len(lines) > most {
		lines = append(lines[:most-1:most-1], strings.Join(lines[most-1:], " "))
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(layout.Shorten(line, p.room()), unbroken, " ")
	}
	p.labelled(label, colour, lines...)
}

// item writes a paragraph, with a mark before its first line.
func (p *page) item(mark, text, colour string) {
	for _, line := range layout.Wrap(diag.Visible(text), p.Width-indent-len(mark)) {
		p.line(strings.Repeat(" ", indent) + mark + p.Paint(colour, line))
		mark = strings.Repeat(" ", len(mark))
	}
}

// paragraph writes a titled list of words; nothing, if there are none.
func (p *page) paragraph(title string, words []string, separator string) {
	if len(words) == 0 {
		return
	}
	p.title(title)
	p.item("", strings.Join(words, separator), "")
}

// section writes a titled table; nothing, if there are no rows. Its columns are aligned,
// four blanks in. The flexible column is shortened where a line would not fit;
// the marked one is red. A first cell that is much longer than the others stands
// on a line of its own; the last column, a reason, is wrapped, and gives way before the
// flexible one, down to two fifths of the line.
func (p *page) section(title string, rows [][]string, flexible, marked int) {
	if len(rows) == 0 {
		return
	}
	p.title(title)
	last := len(rows[0]) - 1
	widths := make([]int, last+1) // with the gap after each column that has anything in it
	for _, row := range rows {
		for i, cell := range row {
			if cell != "" {
				widths[i] = max(widths[i], layout.Width(cell)+gap)
			}
		}
	}
	if flexible > 0 {
		widths[0] = min(widths[0], p.Width/3)
	}
	over := indent - p.Width
	for _, width := range widths {
		over += width
	}
	if over > 0 {
		before := widths[last]
		widths[last] = min(before, max(before-over, p.Width*2/5))
		over -= before - widths[last]
	}
	widths[flexible] = max(widths[flexible]-max(over, 0), least)
	before := indent // columns before the last
	for _, width := range widths[:last] {
		before += width
	}
	for _, row := range rows {
		line := strings.Repeat(" ", indent)
		reason := layout.Wrap(row[last], widths[last]-gap)
		for i, cell := range append(row[:last:last], reason[0]) {
			if i == flexible || i == last {
				cell = layout.Shorten(cell, widths[i]-gap)
			}
			length := layout.Width(cell)
			if i == marked {
				cell = p.Paint(layout.Red, cell)
			}
			if i == 0 && length+gap > widths[0] {
				p.line(line + cell)
				cell, length = "", 0
			}
			line += cell + strings.Repeat(" ", max(widths[i]-length, 0))
		}
		p.line(line)
		for _, more := range reason[1:] {
			p.line(strings.Repeat(" ", before) + layout.Shorten(more, widths[last]-gap))
		}
	}
}
