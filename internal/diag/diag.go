package diag

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Position is a place in a file that a person wrote. Line and Column count
// from 1; zero means unknown. A column counts characters, as yaml.v3 reports it.
type Position struct {
	File   string
	Line   int
	Column int
}

// String renders the position as FILE:LINE:COLUMN, leaving out what is
// unknown.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one fault in a file, at its place.
type Problem struct {
	Position
	Message string
	Remedy  string // one imperative line; empty when none is known
}

// Problems is every fault of one run over a file, in the order of the file.
type Problems []Problem

// Error lists the problems, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String() + ": " + p.Message
	}
	return strings.Join(lines, "\n")
}

// Error says what was being done, why it stopped, and what to do next.
type Error struct {
	Op     string // what was being done: "connect to /nix/var/nix/daemon-socket/socket"
	Err    error  // the cause, kept for errors.Is and errors.As
	Remedy string // one imperative line; empty when none is known
}

// Error returns the operation and the cause, without the remedy, which [Print] adds. The operation, which names files,
// stays on its line.
func (e *Error) Error() string { return strings.ReplaceAll(e.Op, "\n", `\x0a`) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an [Error] whose cause is made from a format.
func Errorf(op, remedy, format string, args ...any) *Error {
	return &Error{Op: op, Err: fmt.Errorf(format, args...), Remedy: remedy}
}

// Wrap returns an [Error] with the [Cause] of err.
func Wrap(op string, err error, remedy string) *Error {
	return &Error{Op: op, Err: Cause(err), Remedy: remedy}
}

// Remedies that several rooms give.
const (
	Reinstall  = "install claudebox again"
	StartAgain = "start again: another program works there"
	MakeRoom   = "make room, and its folder writable for you"
	RaiseFiles = "raise the limit: `ulimit -n 1024`, or take it out of what sets it (limits.conf, LimitNOFILE)"
)

// IsFull reports whether an error comes from a disk that is full, or full for this user.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Remedy returns the remedy of the first [Error] in err's chain; empty: there is none.
func Remedy(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return known.Remedy
	}
	return ""
}

// Cause returns the error inside the first [fs.PathError] in err's chain, without the operation and the path, which
// an [Error]'s Op names already. If there is no such error it returns err.
func Cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Print writes err as a person reads it: each problem on a line with its place, else the operation and its cause;
// then the remedy if one is known. It is the only place that renders errors. Control characters are made visible, so
// that a hostile file name cannot control the terminal.
func Print(w io.Writer, err error) {
	var problems Problems
	if errors.As(err, &problems) {
		const most = 20 // a person reads no more, and the first are often the cause of the rest
		printProblems(w, "", problems[:min(most, len(problems))])
		if more := len(problems) - most; more > 0 {
			printLine(w, "", fmt.Sprintf("%d more faults", more))
		}
		return
	}
	printLine(w, "", err.Error())
	printRemedy(w, Remedy(err))
}

// Warn writes problems that do not stop the run.
func Warn(w io.Writer, problems ...Problem) { printProblems(w, "warning: ", problems) }

func printProblems(w io.Writer, kind string, problems []Problem) {
	for _, p := range problems {
		message := p.Message
		if p.File != "" {
			message = p.String() + ": " + message
		}
		printLine(w, kind, message)
		printRemedy(w, p.Remedy)
	}
}

// Note writes what a person should know though nothing is wrong.
func Note(w io.Writer, text string) { printLine(w, "", text) }

func printRemedy(w io.Writer, remedy string) {
	if remedy != "" {
		printLine(w, "remedy: ", remedy)
	}
}

// printLine writes text with every line after the first indented, so that none of these can pass for a line of
// claudebox's own.
func printLine(w io.Writer, kind, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(w, "claudebox: %s%s\n", kind, Visible(line))
		kind = "  "
	}
}

// Visible returns s with those characters escaped that a terminal would obey or hide, so that text from files and
// other programs can be printed: control characters, those that change the direction of text, what is shown as a blank
// or not at all, and bytes that are not UTF-8. A tab and a plain blank stay.
func Visible(s string) string {
	if !strings.ContainsFunc(s, isUnseen) && utf8.ValidString(s) {
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

// ASCII returns a text that a sandbox may have chosen in printable ASCII, cut after 200 characters.
func ASCII(text string) string {
	const longest = 200
	q := strconv.QuoteToASCII(text)
	q = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`) // backslash and quote: read by people
	if len(q) > longest {
		q = q[:longest] + "..."
	}
	return q
}

// Name returns the name of a file for messages, where an agent may have chosen it: as it is if it is plain, else in
// single quotes. What a terminal obeys or hides is escaped, and so are quotes of both kinds, so that no part of a name
// reads as words or commands of claudebox's own.
func Name(name string) string {
	const plain = "@%+=./_-~#[]"
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(plain, r) || isUnseen(r)
	}) && utf8.ValidString(name) {
		return name
	}
	return "'" + quotes.Replace(Visible(strings.ReplaceAll(name, "\t", "\\x09"))) + "'"
}

// Names returns the names of files for messages, with commas, see [Name].
func Names(list []string) string {
	names := make([]string, len(list))
	for i, name := range list {
		names[i] = Name(name)
	}
	return strings.Join(names, ", ")
}

// Some is [Names] for the first of many, and says how many more there are.
func Some(list []string, most int) string {
	text := Names(list[:min(most, len(list))])
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Command returns a command with the names of files, quoted for a shell, to be shown in backquotes; empty for names of
// which [Word] has no form.
func Command(words string, names ...string) string {
	for _, name := range names {
		word := Word(name)
		if word == "" {
			return ""
		}
		words += " " + word
	}
	return words
}

// Word returns the name of a file as one word for any shell, to be shown in backquotes; empty for one that cannot stand
// there, that a terminal does not show as it is, or with a backslash: within quotes that means more in fish.
func Word(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-"
	switch {
	case Visible(name) != name || strings.ContainsAny(name, "`\\"):
		return ""
	case name == "" || strings.Trim(name, plain) != "":
		return Quote(name)
	}
	return name
}

// Quote makes any text one word for a shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// IsVariable reports whether a shell can have a variable of this name. It must be checked before a name is put in a
// script: the shell would run other text.
func IsVariable(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') && strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

var quotes = strings.NewReplacer("'", `\x27`, "`", `\x60`)

// isUnseen reports whether a terminal obeys a character or shows nothing for it. Of letters, marks and signs some are
// blank: fillers, selectors, a Braille pattern without dots, a note without a head.
func isUnseen(r rune) bool {
	const blanks = "\u2800\U00016fe4\U0001d159"
	return r != '\t' && !unicode.IsPrint(r) || strings.ContainsRune(blanks, r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
