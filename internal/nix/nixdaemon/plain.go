package nixdaemon

import (
	"regexp"
	"strings"
	"sync"
)

// escapes are sequences of ECMA-48: CSI ends at 0x40–0x7e, OSC and its kind at
// BEL or before the next ESC, and any other behind one character.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(?:\[[^@-~]*[@-~]?|[\]PX^_][^\a\x1b]*\a?|(?s:.))?`)
})

// Plain is s without escape sequences and control characters: the daemon
// colours its messages, and a build's output may hold anything.
func Plain(s string) string {
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, escapes().ReplaceAllLiteralString(s, ""))
}

func control(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }
