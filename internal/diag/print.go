package diag

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Print writes err as a person reads it: one line a problem with its place,
// else the operation and its cause; then the remedy when one is known. It is
// the only place that renders errors. Control characters are made visible,
// so that a hostile file name cannot drive the terminal.
func Print(w io.Writer, err error) {
	var problems Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			printLine(w, "", p.String()+": "+p.Message)
			printRemedy(w, p.Remedy)
		}
		return
	}
	printLine(w, "", err.Error())
	printRemedy(w, Remedy(err))
}

// Warn writes problems that do not stop the run.
func Warn(w io.Writer, problems ...Problem) {
	for _, p := range problems {
		message := p.Message
		if p.File != "" {
			message = p.String() + ": " + message
		}
		printLine(w, "warning: ", message)
		printRemedy(w, p.Remedy)
	}
}

// Note writes what a person should know, and nothing is wrong with.
func Note(w io.Writer, text string) { printLine(w, "", text) }

func printRemedy(w io.Writer, remedy string) {
	if remedy != "" {
		printLine(w, "remedy: ", remedy)
	}
}

// printLine sets further lines of a text off, so that none can pass for a
// line of claudebox's own.
func printLine(w io.Writer, kind, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(w, "claudebox: %s%s\n", kind, Visible(line))
		kind = "  "
	}
}

// Visible returns s with those characters escaped that a terminal would obey
// or hide, so that text from files and other programs can be printed: control
// characters, those that turn text around, blanks of no or unusual width, and
// bytes that are no text.
func Visible(s string) string {
	if strings.IndexFunc(s, isUnseen) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(r)):
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case !isUnseen(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, "\\x%02x", r)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

func isUnseen(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }
