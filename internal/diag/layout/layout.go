// Package layout fits text for people into columns: it wraps, shortens, and makes paths readable. It imports the
// standard library only and does no I/O.
package layout

import (
	"strings"
	"unicode/utf8"
)

// View is how text is shown to a person.
type View struct {
	Home   string // the user's home, shown as "~" in paths; empty: paths are shown in full
	Width  int    // columns
	Colour bool
}

// Escape sequences for colours and styles (ECMA-48), for [View.Paint].
const (
	Bold   = "\x1b[1m"
	Dim    = "\x1b[2m"
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Plain  = "\x1b[0m" // resets all of them
)

// Paint returns text in a colour, or unchanged if v shows no colours.
func (v View) Paint(colour, text string) string {
	if !v.Colour || text == "" || colour == "" {
		return text
	}
	return colour + text + Plain
}

// Wrap breaks text at blanks into lines of at most width characters. It breaks no word, and no command between
// backticks, so that they can be copied: one that is longer than width gets a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range words(text) {
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// words splits text at the blanks outside of backticks.
func words(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '`' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}

// Width is how many columns s takes: its characters, each counted as one.
func Width(s string) int { return utf8.RuneCountInString(s) }

// Shorten cuts s to width characters by replacing its middle with "…": the ends of a path or a value say more than
// its middle. It returns s as it is if width is below 3.
func Shorten(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width || width < 3 {
		return s
	}
	head := (width - 1) / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

// Path makes a path readable: it writes home, unless that is empty, as "~", and only the first characters of the hash
// in a store path, which suffice to tell paths apart.
func Path(home, path string) string {
	const store, hash, shown = "/nix/store/", 32, 4
	if rest, ok := strings.CutPrefix(path, home); ok && home != "" && (rest == "" || rest[0] == '/') {
		path = "~" + rest
	}
	if rest, ok := strings.CutPrefix(path, store); ok && len(rest) > hash && rest[hash] == '-' {
		return store + rest[:shown] + "…" + rest[hash:]
	}
	return path
}
