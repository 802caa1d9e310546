package doctor

import (
	"fmt"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
)

const (
	margin     = 2  // blanks before a line
	levelWidth = 9  // column of the level, with two blanks
	least      = 30 // narrowest column of details
)

var colours = map[Level]string{OK: layout.Green, Info: layout.Dim, Warning: layout.Yellow, Failed: layout.Red}

// Text renders findings for a person: level, name and detail in columns,
// remedies below.
func Text(v layout.View, findings []Finding) string {
	var b strings.Builder
	name := 0
	for _, f := range findings {
		name = max(name, layout.Width(f.Name)+2)
	}
	blank := strings.Repeat(" ", margin+levelWidth+name)
	width := max(v.Width-len(blank), least)
	for _, f := range findings {
		level := v.Paint(colours[f.Level], fmt.Sprintf("%-*s", levelWidth, f.Level))
		head := fmt.Sprintf("%*s%s%-*s", margin, "", level, name, f.Name)
		for _, line := range layout.Wrap(short(v.Home, f.Detail), width) {
			b.WriteString(strings.TrimRight(head+line, " ") + "\n")
			head = blank
		}
		if f.Remedy == "" {
			continue
		}
		mark := "→ "
		for _, line := range layout.Wrap(diag.Visible(f.Remedy), width-2) {
			b.WriteString(blank + mark + line + "\n")
			mark = "  "
		}
	}
	return b.String()
}

// short makes the paths in a detail readable. Remedies stay whole: they are
// copied.
func short(home, text string) string {
	list := strings.Split(diag.Visible(text), " ")
	for i, word := range list {
		list[i] = layout.Path(home, word)
	}
	return strings.Join(list, " ")
}
