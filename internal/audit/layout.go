package audit

import (
	"strings"
	"unicode/utf8"
)

// least is the narrowest text column that is still worth wrapping in.
const least = 20

// wrap breaks text at blanks into lines of at most width characters. A word
// that is longer stands alone on its line, whole: a cut path is no path.
func wrap(text string, width int) []string {
	width = max(width, least)
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

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
	widths[flexible] = max(widths[flexible]-max(over(), 0), least/2)
	for _, row := range rows {
		p.row(row, widths, flexible, marked)
	}
}

const (
	indent = 4 // blanks before a table
	gap    = 2 // blanks between columns
)

func (p *page) row(row []string, widths []int, flexible, marked int) {
	line := strings.Repeat(" ", indent)
	for i, cell := range row {
		if i == flexible || i == len(row)-1 {
			cell = shorten(cell, widths[i]-gap)
		}
		length := utf8.RuneCountInString(cell)
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
				widths[i] = max(widths[i], utf8.RuneCountInString(cell)+gap)
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

// shorten cuts the middle out: both ends of a path or a value tell more.
func shorten(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width || width < 3 {
		return s
	}
	head := (width - 1) / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}
