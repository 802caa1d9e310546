package doctor

import (
	"fmt"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
)

// View is how findings are shown.
type View struct {
	Home   string // the user's, shown as "~"; empty: as it is
	Width  int    // columns
	Colour bool
}

const (
	levelWidth = 9  // column of the level, with two blanks
	least      = 30 // narrowest column of details
)

// colours of the levels (ECMA-48).
var colours = map[Level]string{OK: "\x1b[32m", Info: "\x1b[2m", Warning: "\x1b[33m", Failed: "\x1b[31m"}

const plain = "\x1b[0m"

// Text renders findings for a person: level, name and detail in columns,
// remedies below.
func (v View) Text(findings []Finding) string {
	var b strings.Builder
	name := 0
	for _, f := range findings {
		name = max(name, layout.Width(f.Name)+2)
	}
	for _, f := range findings {
		v.write(&b, f, name)
	}
	return b.String()
}

func (v View) write(b *strings.Builder, f Finding, nameWidth int) {
	const margin = 2
	blank := strings.Repeat(" ", margin+levelWidth+nameWidth)
	width := max(v.Width-len(blank), least)
	for i, line := range layout.Wrap(v.short(f.Detail), width) {
		head := blank
		if i == 0 {
			head = strings.Repeat(" ", margin) + v.paint(f.Level) + fmt.Sprintf("%-*s", nameWidth, f.Name)
		}
		b.WriteString(strings.TrimRight(head+line, " ") + "\n")
	}
	if f.Remedy == "" {
		return
	}
	for i, line := range layout.Wrap(diag.Visible(f.Remedy), width-2) {
		mark := "  "
		if i == 0 {
			mark = "→ "
		}
		b.WriteString(blank + mark + line + "\n")
	}
}

// paint is the level's column.
func (v View) paint(level Level) string {
	text := fmt.Sprintf("%-*s", levelWidth, level)
	if !v.Colour {
		return text
	}
	return colours[level] + text + plain
}

// short makes the paths in a detail readable. Remedies stay whole: they are
// copied.
func (v View) short(text string) string {
	list := strings.Split(diag.Visible(text), " ")
	for i, word := range list {
		list[i] = layout.Path(v.Home, word)
	}
	return strings.Join(list, " ")
}
