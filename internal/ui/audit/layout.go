package audit

import (
	"strings"

	"claudebox/internal/diag/layout"
)

// table writes rows in aligned columns, four blanks in. The flexible column
// is shortened where a line would not fit; the marked one is red. A first
// cell that is much longer than the others stands on a line of its own; the
// last column, a reason, gives way before the flexible one, down to two fifths
// of the line.
func (p *page) table(rows [][]string, flexible, marked int) {
	widths := columnWidths(rows)
	if flexible > 0 {
		widths[0] = min(widths[0], p.view.Width/3)
	}
	over := func() int { return sum(widths) + indent - p.view.Width }
	if last := len(widths) - 1; over() > 0 {
		widths[last] = min(widths[last], max(widths[last]-over(), p.view.Width*2/5))
	}
	widths[flexible] = max(widths[flexible]-max(over(), 0), least)
	for _, row := range rows {
		p.row(row, widths, flexible, marked)
	}
}

const (
	indent = 4  // blanks before a table
	gap    = 2  // blanks between columns
	least  = 12 // narrowest flexible column
)

func (p *page) row(row []string, widths []int, flexible, marked int) {
	line := strings.Repeat(" ", indent)
	for i, cell := range row {
		if i == flexible || i == len(row)-1 {
			cell = layout.Shorten(cell, widths[i]-gap)
		}
		length := layout.Width(cell)
		if i == marked {
			cell = p.paint(red, cell)
		}
		if i == 0 && length+gap > widths[0] {
			p.line(line + cell)
			cell, length = "", 0
		}
		line += cell + strings.Repeat(" ", max(widths[i]-length, 0))
	}
	p.line(line)
}

func (p *page) line(text string) { p.b.WriteString(strings.TrimRight(text, " ") + "\n") }

// columnWidths counts the gap behind each column that has anything in it.
func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			if cell != "" {
				widths[i] = max(widths[i], layout.Width(cell)+gap)
			}
		}
	}
	return widths
}

func sum(list []int) int {
	total := 0
	for _, n := range list {
		total += n
	}
	return total
}
