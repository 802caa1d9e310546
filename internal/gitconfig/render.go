package gitconfig

import "strings"

// Render writes entries as a configuration file that git reads back to the
// same entries, in the same order. Comments are gone.
func Render(entries []Entry) []byte {
	var b strings.Builder
	header := ""
	for _, e := range entries {
		if h := renderHeader(e); h != header {
			b.WriteString(h)
			header = h
		}
		b.WriteString("\t" + e.Name)
		if !e.Bare {
			b.WriteString(" = \"" + valueEscapes.Replace(e.Value) + `"`)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

var (
	valueEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)
	nameEscapes  = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
)

func renderHeader(e Entry) string {
	if e.Sub {
		return "[" + e.Section + ` "` + nameEscapes.Replace(e.Subsection) + "\"]\n"
	}
	return "[" + e.Section + "]\n"
}
