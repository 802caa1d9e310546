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
// is shortened where a line would not fit; the marked one is red.
func (p *page) table(rows [][]string, flexible, marked int) {
	widths := columnWidths(rows)
	if over := sum(widths) + 4 - p.view.Width; over > 0 {
		widths[flexible] = max(widths[flexible]-over, least)
	}
	for _, row := range rows {
		p.b.WriteString("    ")
		p.row(row, widths, flexible, marked)
	}
}

const gap = 2

func (p *page) row(row []string, widths []int, flexible, marked int) {
	var line strings.Builder
	for i, cell := range row {
		if i == flexible {
			cell = shorten(cell, widths[i]-gap)
		}
		pad := strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(cell), 0))
		if i == marked {
			cell = p.paint(red, cell)
		}
		line.WriteString(cell + pad)
	}
	p.b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

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
