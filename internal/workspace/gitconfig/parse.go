// Package gitconfig reads git's configuration files the way git does, without
// running git, and copies those of a project with the secrets taken out.
//
// Running git in a project executes what the project's configuration names
// (core.fsmonitor, hooks), so claudebox never does. The grammar is that of
// git's config.c; a differential test holds it against the real program.
//
// It has no effects, and trusts nothing that it reads: an agent may have written it.
package gitconfig

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Entry is one variable as git's own parser sees it.
type Entry struct {
	Section    string // lower case; may hold dots in the old form [a.b]
	Subsection string // as written; meaningful when Sub is true
	Sub        bool   // the header had a quoted subsection, maybe an empty one
	Name       string // lower case
	Value      string
	Bare       bool // a name without "=", which git takes for true
	Line       int  // where the name stands, from 1
}

// Key is the variable's full name: "remote.origin.url".
func (e Entry) Key() string {
	if e.Sub {
		return e.Section + "." + e.Subsection + "." + e.Name
	}
	return e.Section + "." + e.Name
}

// Of is the setting with a full name, in lower case, and a value.
func Of(key, value string) Entry {
	section, rest, _ := strings.Cut(key, ".")
	dot := strings.LastIndexByte(rest, '.')
	return Entry{
		Section: section, Subsection: rest[:max(dot, 0)], Sub: dot >= 0, Name: rest[dot+1:], Value: value,
	}
}

// Last returns the last value of a variable, which is the one that counts; empty: it is not set or has no value. key
// is its full name.
func Last(entries []Entry, key string) (value string) {
	for _, e := range entries {
		if e.Key() == key && !e.Bare {
			value = e.Value
		}
	}
	return value
}

// Top is the first component of the section. It says what the variable is about, in both forms of a header.
func (e Entry) Top() string {
	top, _, _ := strings.Cut(e.Section, ".")
	return top
}

// IsInclude reports whether a setting includes another file, under a condition or not.
func IsInclude(e Entry) bool {
	return e.Name == "path" && (e.Section == "include" || e.Section == "includeif")
}

// IsTrue reports whether git takes a value for true.
func IsTrue(s string) bool {
	return !slices.Contains([]string{"", "0", "no", "off", "false"}, strings.ToLower(s))
}

// Path returns the path that a name in a configuration stands for. Relative names begin in the folder from.
func Path(from, name, home string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return path.Join(home, rest)
	}
	if !path.IsAbs(name) {
		name = from + "/" + name
	}
	return path.Clean(name)
}

// Parse reads a configuration file. Like git it gives up at the first bad line; the entries before that are returned
// with the error. A variable above the first section means nothing to git and is left out.
func Parse(src []byte) ([]Entry, error) {
	p := parser{src: bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")), line: 1}
	for !p.done() {
		if !p.statement() {
			return p.entries, fmt.Errorf("bad config line %d", p.line)
		}
	}
	return p.entries, nil
}

// parser holds the place in the source and the header in force.
type parser struct {
	src     []byte
	pos     int
	line    int
	header  Entry // Section, Subsection, Sub of the section we are in
	inside  bool  // a section header was seen
	entries []Entry
}

func (p *parser) done() bool { return p.pos >= len(p.src) }

// next returns the next byte; CR LF counts as LF. The end of the file reads as one more line end, as in git.
func (p *parser) next() byte {
	if p.done() {
		p.pos++
		return '\n'
	}
	c := p.src[p.pos]
	p.pos++
	if c == '\r' && !p.done() && p.src[p.pos] == '\n' {
		p.pos++
		c = '\n'
	}
	return c
}

// statement reads a blank, a comment, a header or a variable. It reports whether git would accept it.
func (p *parser) statement() bool {
	switch c := p.next(); {
	case c == '\n':
		p.line++
	case isSpace(c):
	case c == '#' || c == ';':
		p.skipLine()
	case c == '[':
		return p.sectionHeader()
	case isAlpha(c):
		return p.variable(c)
	default:
		return false
	}
	return true
}

func (p *parser) skipLine() {
	for p.next() != '\n' {
	}
	p.line++
}

// sectionHeader reads what follows "[".
func (p *parser) sectionHeader() bool {
	var name []byte
	for !p.done() {
		switch c := p.next(); {
		case c == ']':
			p.header, p.inside = Entry{Section: string(name)}, true
			return len(name) > 0
		case isSpace(c):
			return p.subsection(string(name), c)
		case isKeyChar(c) || c == '.':
			name = append(name, lower(c))
		default:
			return false
		}
	}
	return false
}

// subsection reads the quoted part of a header, with backslash escapes, after the blank c. It refuses a NUL: git would
// end the full name of each variable in the section there, and take it for another variable.
func (p *parser) subsection(section string, c byte) bool {
	for isSpace(c) {
		if c == '\n' {
			return false
		}
		c = p.next()
	}
	if c != '"' {
		return false
	}
	var name []byte
	for c = p.next(); c != '"'; c = p.next() {
		if c == '\\' {
			c = p.next()
		}
		if c == '\n' || c == 0 {
			return false
		}
		name = append(name, c)
	}
	p.header, p.inside = Entry{Section: section, Subsection: string(name), Sub: true}, true
	return p.next() == ']'
}

// variable reads a name that begins with first, and its value.
func (p *parser) variable(first byte) bool {
	e := p.header
	e.Line = p.line
	name := []byte{lower(first)}
	c := p.next()
	for ; isKeyChar(c); c = p.next() {
		name = append(name, lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	e.Name, e.Bare = string(name), c == '\n'
	ok := e.Bare
	if c == '=' {
		e.Value, ok = p.value()
	}
	if !ok {
		return false
	}
	p.line++
	if p.inside {
		p.entries = append(p.entries, e)
	}
	return true
}

// value reads up to the end of the line: quotes, escapes, continued lines and a trailing comment. Blanks at both ends
// fall away; those between words stay as they are (git before 2.45 made each of them a space).
func (p *parser) value() (string, bool) {
	var out []byte
	keep := 0 // length of out without trailing blanks
	for quoted := false; ; {
		c := p.next()
		switch {
		case c == '\n':
			return cutNUL(out[:keep]), !quoted
		case isSpace(c) && !quoted:
			if len(out) > 0 {
				out = append(out, c)
			}
			continue
		case (c == '#' || c == ';') && !quoted:
			p.skipLine()
			p.line-- // variable counts the line
			return cutNUL(out[:keep]), true
		case c == '"':
			quoted = !quoted
		case c == '\\':
			escaped, ok := p.escape()
			if !ok {
				return "", false
			}
			out = append(out, escaped...)
		default:
			out = append(out, c)
		}
		keep = len(out)
	}
}

// escape reads what follows a backslash in a value. A line end there continues the line, and adds nothing to the value.
func (p *parser) escape() (string, bool) {
	c := p.next()
	if c == '\n' {
		p.line++
		return "", true
	}
	at := strings.IndexByte(`tbn\"`, c)
	if at < 0 {
		return "", false
	}
	return "\t\b\n\\\""[at : at+1], true
}

// cutNUL ends a value where git's C strings end.
func cutNUL(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isAlpha(c byte) bool { return lower(c) >= 'a' && lower(c) <= 'z' }

func isKeyChar(c byte) bool { return isAlpha(c) || c >= '0' && c <= '9' || c == '-' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// Render writes entries as a configuration file that git reads back to the
// same entries, in the same order. Comments are gone.
func Render(entries []Entry) []byte {
	var b strings.Builder
	header := ""
	for _, e := range entries {
		h := "[" + e.Section + "]\n"
		if e.Sub {
			h = "[" + e.Section + ` "` + nameEscapes.Replace(e.Subsection) + "\"]\n"
		}
		if h != header {
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

// valueEscapes and nameEscapes write what git's syntax cannot have as it is (git-config(1), "Syntax").
var (
	valueEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)
	nameEscapes  = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
)
