package doctor

import (
	"errors"
	"fmt"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
)

// Level is how much a finding matters.
type Level string

const (
	OK      Level = "ok"
	Info    Level = "info"    // good to know, nothing to do
	Warning Level = "warning" // to be read: something may not work, or is not as one may expect
	Failed  Level = "failed"  // a launch would not start, or an attack got something
)

// Finding is the result of one check. Programs read its JSON form, so that form
// must not change.
type Finding struct {
	Name   string `json:"name"` // what was checked: "user namespaces"
	Level  Level  `json:"level"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"` // one imperative line; empty when none is needed
}

// Findings of each level.
func ok(detail string) Finding   { return Finding{Level: OK, Detail: detail} }
func info(detail string) Finding { return Finding{Level: Info, Detail: detail} }
func warning(detail, remedy string) Finding {
	return Finding{Level: Warning, Detail: detail, Remedy: remedy}
}

func failed(detail, remedy string) Finding {
	return Finding{Level: Failed, Detail: detail, Remedy: remedy}
}

// Faults are the findings of an error: one for each problem of a file, else
// one. Without an error there are none.
func Faults(name string, err error) (list []Finding) {
	var problems diag.Problems
	switch {
	case err == nil:
	case errors.As(err, &problems):
		for _, p := range problems {
			list = append(list, Finding{name, Failed, p.String() + ": " + p.Message, p.Remedy})
		}
	default:
		list = []Finding{{name, Failed, err.Error(), diag.Remedy(err)}}
	}
	return list
}

func fault(err error) Finding { return failed(err.Error(), diag.Remedy(err)) }

// Count returns how many findings are of a level.
func Count(findings []Finding, level Level) int {
	n := 0
	for _, f := range findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

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

// short abbreviates the paths in a detail. Those in remedies stay whole: people
// paste them into a shell.
func short(home, text string) string {
	list := strings.Split(diag.Visible(text), " ")
	for i, word := range list {
		list[i] = layout.Path(home, word)
	}
	return strings.Join(list, " ")
}
