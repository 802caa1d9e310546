package git

import "strings"

// Ignoring returns the rules in a file by which git ignores others, as git reads them (gitignore(5); dir.c,
// add_patterns_from_buffer).
func Ignoring(content []byte) (rules []string) {
	text := strings.TrimPrefix(string(content), "\xef\xbb\xbf")
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSuffix(line, "\r"); line != "" && line[0] != '#' {
			rules = append(rules, line)
		}
	}
	return rules
}

// Unignores reports whether git may ignore less by the rules after than by those before: one of them is gone or moved,
// or one is new that takes files out. Other new rules only add files.
func Unignores(before, after []string) bool {
	for _, rule := range after {
		switch {
		case len(before) > 0 && rule == before[0]:
			before = before[1:]
		case rule[0] == '!':
			return true
		}
	}
	return len(before) > 0
}

// Unignored is what is said of a file with such rules.
const Unignored = "git may not ignore all that it did: see `git status` before you `git add`"
