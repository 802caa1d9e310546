package diag

import (
	"errors"
	"fmt"
	"io"
	"strings"
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
	var e *Error
	if errors.As(err, &e) {
		printRemedy(w, e.Remedy)
	}
}

// Warn writes a problem that does not stop the run.
func Warn(w io.Writer, p Problem) {
	message := p.Message
	if p.File != "" {
		message = p.String() + ": " + message
	}
	printLine(w, "warning: ", message)
	printRemedy(w, p.Remedy)
}

func printRemedy(w io.Writer, remedy string) {
	if remedy != "" {
		printLine(w, "remedy: ", remedy)
	}
}

func printLine(w io.Writer, kind, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(w, "claudebox: %s%s\n", kind, Visible(line))
	}
}

// Visible returns s with control characters escaped, so that text from files
// and other programs can be printed on a terminal.
func Visible(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			fmt.Fprintf(&b, "\\x%02x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isControl(r rune) bool { return r < 0x20 && r != '\t' || r >= 0x7f && r < 0xa0 }
