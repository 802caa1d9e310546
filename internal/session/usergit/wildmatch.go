package usergit

import (
	"fmt"
	"regexp"
	"strings"
)

// Wildmatch reports whether text matches pattern by the rules of git's
// wildmatch with WM_PATHNAME: "*" and "?" stop at a slash, "**" between
// slashes crosses them. With fold, upper and lower case are one. What git
// refuses as a pattern, and what is longer than a path, matches nothing.
func Wildmatch(pattern, text string, fold bool) bool {
	const longest = 4096
	expression, ok := translate(pattern)
	if !ok || len(pattern) > longest {
		return false
	}
	flags := "(?s)"
	if fold {
		flags = "(?si)"
	}
	re, err := regexp.Compile(flags + expression)
	if err != nil {
		return false
	}
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteRune(character(c))
	}
	return re.MatchString(b.String())
}

// A regular expression works on characters, and git on bytes. So each byte is mapped to
// a character: a slash to one that is in no range of others, and bytes beyond ASCII
// to characters without another case.
const slash = "\uf8ff"

func character(c byte) rune {
	switch {
	case c == '/':
		return []rune(slash)[0]
	case c >= 0x80:
		return 0xe000 + rune(c)
	}
	return rune(c)
}

// translate writes a pattern as a regular expression; ok is false if git refuses the pattern.
func translate(pattern string) (expression string, ok bool) {
	var b strings.Builder
	b.WriteString(`\A`)
	for start := true; pattern != ""; { // start: of a part between slashes
		c, rest := pattern[0], pattern[1:]
		part := "[^" + slash + "]"
		ok = true
		switch c {
		case '*':
			rest = strings.TrimLeft(rest, "*")
			deep := start && len(pattern)-len(rest) > 1
			switch {
			case deep && rest == "":
				part = ".*"
			case deep && rest[0] == '/':
				c, part, rest = '/', "(?:.*"+slash+")?", rest[1:]
			default:
				part += "*"
			}
		case '?':
		case '[':
			part, rest, ok = class(rest)
		default:
			c, rest, ok = literal(pattern)
			part = regexp.QuoteMeta(string(character(c)))
		}
		if !ok {
			return "", false
		}
		b.WriteString(part)
		start, pattern = c == '/', rest
	}
	return b.String() + `\z`, true
}

// classes are the names of character classes that git knows.
const classes = " alnum alpha blank cntrl digit graph lower print punct space upper xdigit "

// class translates a bracket expression, which never matches a slash. pattern is
// what follows "["; one that is not closed is no pattern.
func class(pattern string) (expression, rest string, ok bool) {
	expression = "["
	if pattern != "" && (pattern[0] == '!' || pattern[0] == '^') {
		expression, pattern = "[^"+slash, pattern[1:]
	}
	for first := true; pattern != ""; first = false {
		if pattern[0] == ']' && !first {
			return expression + "]", pattern[1:], true
		}
		if after, named := strings.CutPrefix(pattern, "[:"); named {
			name, after, closed := strings.Cut(after, ":]")
			if closed && !strings.Contains(name, "]") {
				if !strings.Contains(classes, " "+name+" ") {
					return "", "", false
				}
				expression, pattern = expression+"[:"+name+":]", after
				continue
			}
		}
		low, rest, ok := literal(pattern)
		high := low
		if ok && len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			high, rest, ok = literal(rest[1:])
		}
		if !ok {
			return "", "", false
		}
		high = max(low, high) // git takes "z-a" for "z"
		expression += fmt.Sprintf(`\x{%x}-\x{%x}`, inClass(low), inClass(high))
		pattern = rest
	}
	return "", "", false
}

// inClass is the character for a byte as the end of a range in a bracket expression.
func inClass(c byte) rune {
	if c == '/' {
		return '/' // which no text has
	}
	return character(c)
}

// literal reads one character, maybe escaped.
func literal(pattern string) (c byte, rest string, ok bool) {
	pattern = strings.TrimPrefix(pattern, `\`)
	if pattern == "" {
		return 0, "", false
	}
	return pattern[0], pattern[1:], true
}
