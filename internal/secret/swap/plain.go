package swap

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// plain is a text in which each escape is replaced by what it stands for: `\u002B`, `\/`, `%2f`, `&#43;`, `&plus;`.
// So is an escape in an escape, of any depth and kind: `%252F`, `\\u002B`, `&amp;#43;`. A sign has one spelling here,
// however formats mix. What it does depends on the text alone.
type plain struct {
	text []byte
	from []int32 // for each byte of text, where its spelling begins
	open int     // from here on no escape begins in text
}

const (
	escapes = `\%&` // what an escape begins with
	// longestEscape is how many bytes an escape has, at most: `\\u0026#x2F;`.
	longestEscape = 12
)

// escapesOfDigits have so many hexadecimal digits behind them.
var escapesOfDigits = []struct {
	begin  string
	digits int
}{{"%", 2}, {`\x`, 2}, {`\u`, 4}}

// plainOf returns a secret as it is found in a plain text.
func plainOf(secret string) string {
	var p plain
	for i := range len(secret) {
		p.add(secret[i], i)
	}
	return strings.TrimRight(string(p.text), `\`) // in a text what comes next takes its place
}

// add appends a byte whose spelling begins at from, and replaces the escape that it completes. A backslash without
// a meaning of its own goes. So do `\n` and its like become a letter: no secret has such a character.
func (p *plain) add(c byte, from int) {
	n := len(p.text)
	if n > 0 && n == p.open && p.text[n-1] == '\\' && c != 'u' && c != 'x' {
		p.text[n-1] = c
	} else {
		p.text, p.from = append(p.text, c), append(p.from, int32(from))
		n++
	}
	switch {
	case isEscape(c):
		p.open = n
	case p.open == 0 || n-p.open > longestEscape:
	case c == ';':
		p.closeName()
	case c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
		p.closeDigits()
	}
}

func isEscape(c byte) bool { return c == '\\' || c == '%' || c == '&' }

// closeName replaces the escape of HTML in which the text ends.
func (p *plain) closeName() {
	end := p.text[max(0, len(p.text)-longestEscape):]
	if i := bytes.LastIndexByte(end, '&'); i >= 0 {
		if sign := html.UnescapeString(string(end[i:])); utf8.RuneCountInString(sign) == 1 {
			p.put(len(p.text)-len(end)+i, sign)
		}
	}
}

// closeDigits replaces the escape by a number in which the text ends.
func (p *plain) closeDigits() {
	for _, e := range escapesOfDigits {
		digits := len(p.text) - e.digits
		at := digits - len(e.begin)
		if at < 0 || string(p.text[at:digits]) != e.begin {
			continue
		}
		code, err := strconv.ParseUint(string(p.text[digits:]), 16, 16)
		switch {
		case err != nil:
		case e.digits == 2:
			p.put(at, string([]byte{byte(code)}))
			return
		default:
			p.put(at, string(rune(code)))
			return
		}
	}
}

// put replaces the text from at on by a sign.
func (p *plain) put(at int, sign string) {
	from := int(p.from[at])
	p.text, p.from, p.open = p.text[:at], p.from[:at], min(p.open, at)
	for i := range len(sign) {
		p.add(sign[i], from)
	}
}

// findEscaped calls found with where in text each needle is that has an escape.
func (f *finder) findEscaped(text []byte, found func(from, to int)) {
	for at := 0; f.signs; {
		next := bytes.IndexAny(text[at:], escapes)
		if next < 0 {
			return
		}
		at += next
		p := plain{f.scratch.text[:0], f.scratch.from[:0], 0}
		i := at - undecided(text[:at], f.longest)
		for ; i < min(len(text), at+longestEscape+f.longest) && isOnLines(text[i]); i++ {
			if isEscape(text[i]) {
				at = i
			}
			p.add(text[i], i)
		}
		p.from = append(p.from, int32(i))
		f.find(p.text, func(n needle, end int) { found(int(p.from[end-len(n.text)]), int(p.from[end])) })
		f.scratch, at = p, i
	}
}
