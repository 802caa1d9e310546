package gitconfig

import (
	"strings"
	"unicode"
)

// Wildmatch reports whether text matches pattern by the rules of git's
// wildmatch with WM_PATHNAME: "*" and "?" stop at a slash, "**" between
// slashes crosses them. With fold, upper and lower case are one.
func Wildmatch(pattern, text string, fold bool) bool {
	m := matcher{fold: fold, budget: 1 << 20}
	return m.match(pattern, text, true)
}

// matcher carries what every step needs. The budget bounds the work that a
// pattern of many stars can make; a pattern that exhausts it does not match.
type matcher struct {
	fold   bool
	budget int
}

// match compares from here on; start says that pattern begins a path
// component, so that "**" may cross slashes.
func (m *matcher) match(pattern, text string, start bool) bool {
	for pattern != "" {
		if m.budget--; m.budget < 0 {
			return false
		}
		if pattern[0] == '*' {
			return m.star(pattern, text, start)
		}
		if text == "" {
			return false
		}
		rest, ok := m.one(pattern, text[0])
		if !ok {
			return false
		}
		start = pattern[0] == '/'
		pattern, text = rest, text[1:]
	}
	return text == ""
}

// star handles a pattern that begins with stars. Two or more between slashes
// (or ends) match any depth, "**/" none as well; else they match within one
// component.
func (m *matcher) star(pattern, text string, start bool) bool {
	rest := strings.TrimLeft(pattern, "*")
	deep := len(pattern)-len(rest) >= 2 && start && (rest == "" || rest[0] == '/')
	if deep && rest != "" && m.match(rest[1:], text, true) {
		return true
	}
	for {
		if m.match(rest, text, false) {
			return true
		}
		if text == "" || text[0] == '/' && !deep || m.budget < 0 {
			return false
		}
		text = text[1:]
	}
}

// one matches a single byte against the head of pattern and gives the rest.
func (m *matcher) one(pattern string, c byte) (rest string, ok bool) {
	switch pattern[0] {
	case '?':
		return pattern[1:], c != '/'
	case '[':
		return m.class(pattern[1:], c)
	case '\\':
		if len(pattern) == 1 {
			return "", false
		}
		pattern = pattern[1:]
	}
	return pattern[1:], m.equal(pattern[0], c)
}

func (m *matcher) equal(a, b byte) bool {
	return a == b || m.fold && lower(a) == lower(b)
}

// class matches c against what follows "[". An unclosed class matches
// nothing; a class never matches a slash.
func (m *matcher) class(pattern string, c byte) (rest string, ok bool) {
	negated := pattern != "" && (pattern[0] == '!' || pattern[0] == '^')
	if negated {
		pattern = pattern[1:]
	}
	matched := false
	for first := true; ; first = false {
		if pattern == "" {
			return "", false
		}
		if pattern[0] == ']' && !first {
			return pattern[1:], matched != negated && c != '/'
		}
		var hit, valid bool
		pattern, hit, valid = m.member(pattern, c)
		if !valid {
			return "", false
		}
		matched = matched || hit
	}
}

// member reads one character, range or named class of a bracket expression.
func (m *matcher) member(pattern string, c byte) (rest string, hit, valid bool) {
	if name, after, found := strings.Cut(strings.TrimPrefix(pattern, "[:"), ":]"); found &&
		strings.HasPrefix(pattern, "[:") && !strings.Contains(name, "]") {
		is, known := inClass(name, rune(c))
		return after, known && (is || m.fold && name == "upper" && unicode.IsLower(rune(c))), known
	}
	low, pattern, ok := literal(pattern)
	if !ok {
		return "", false, false
	}
	if len(pattern) < 2 || pattern[0] != '-' || pattern[1] == ']' {
		return pattern, m.equal(low, c), true
	}
	high, pattern, ok := literal(pattern[1:])
	return pattern, m.equal(low, c) || m.within(low, high, c), ok // git takes "z-a" for "z"
}

func (m *matcher) within(low, high, c byte) bool {
	if low <= c && c <= high {
		return true
	}
	upper := byte(unicode.ToUpper(rune(c)))
	return m.fold && lower(c) == c && low <= upper && upper <= high
}

// literal reads one character of a bracket expression, maybe escaped.
func literal(pattern string) (c byte, rest string, ok bool) {
	if pattern[0] == '\\' {
		pattern = pattern[1:]
	}
	if pattern == "" {
		return 0, "", false
	}
	return pattern[0], pattern[1:], true
}

// inClass judges by a POSIX name that git knows, for ASCII.
func inClass(name string, r rune) (is, known bool) {
	switch name {
	case "alnum":
		return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)), true
	case "alpha":
		return r < 0x80 && unicode.IsLetter(r), true
	case "blank":
		return r == ' ' || r == '\t', true
	case "cntrl":
		return r < 0x20 || r == 0x7f, true
	case "digit":
		return r >= '0' && r <= '9', true
	case "graph":
		return r > 0x20 && r < 0x7f, true
	case "lower":
		return r >= 'a' && r <= 'z', true
	case "print":
		return r >= 0x20 && r < 0x7f, true
	case "punct":
		return r < 0x80 && (unicode.IsPunct(r) || unicode.IsSymbol(r)), true
	case "space":
		return r == ' ' || r >= 9 && r <= 13, true
	case "upper":
		return r >= 'A' && r <= 'Z', true
	case "xdigit":
		return strings.ContainsRune("0123456789abcdefABCDEF", r), true
	}
	return false, false
}
