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
			b.WriteString(" = \"" + escaped(e.Value, valueEscapes) + `"`)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// valueEscapes and nameEscapes are what git's syntax cannot have as it is
// (git-config(1), "Syntax"), each before how it is written.
var (
	valueEscapes = []string{`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`}
	nameEscapes  = []string{`\`, `\\`, `"`, `\"`}
)

// escaped leaves alone what has nothing to escape, which is nearly everything.
func escaped(text string, escapes []string) string {
	if !strings.ContainsAny(text, "\\\"\n\t\b") {
		return text
	}
	return strings.NewReplacer(escapes...).Replace(text)
}

func renderHeader(e Entry) string {
	if e.Sub {
		return "[" + e.Section + ` "` + escaped(e.Subsection, nameEscapes) + "\"]\n"
	}
	return "[" + e.Section + "]\n"
}
