package nixdaemon

import "strings"

// Plain is s without escape sequences and control characters: the daemon
// colours its messages, and a build's output may hold anything.
func Plain(s string) string {
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	var b strings.Builder
	for s != "" {
		if s[0] == '\x1b' {
			s = afterEscape(s[1:])
			continue
		}
		end := strings.IndexByte(s[1:], '\x1b') + 1
		if end == 0 {
			end = len(s)
		}
		b.WriteString(strings.Map(visible, s[:end]))
		s = s[end:]
	}
	return b.String()
}

// afterEscape skips one sequence whose ESC has been read. ECMA-48: CSI ends
// at 0x40–0x7e, OSC and its kind at BEL or ESC \.
func afterEscape(s string) string {
	if s == "" {
		return ""
	}
	switch s[0] {
	case '[':
		return after(s[1:], strings.IndexFunc(s[1:], func(r rune) bool { return r >= 0x40 && r <= 0x7e }))
	case ']', 'P', 'X', '^', '_':
		return after(s[1:], strings.IndexAny(s[1:], "\a\x1b"))
	}
	return s[1:]
}

// after is s behind its i-th byte, or nothing for a sequence without an end.
func after(s string, i int) string {
	if i < 0 {
		return ""
	}
	if s[i] == '\x1b' { // leave "ESC \" to be read as a sequence of its own
		return s[i:]
	}
	return s[i+1:]
}

func control(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }

func visible(r rune) rune {
	if control(r) {
		return -1
	}
	return r
}
