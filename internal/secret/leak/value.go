package leak

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

// Value returns what secret a variable's value probably is or contains ("a GitHub
// token"), or "".
func Value(value string) string {
	if what := Text(value); what != "" {
		return what
	}
	if isRandom(value) {
		return "a random key"
	}
	return ""
}

// Text returns what secret a text of any length contains, or "": a token of a known
// shape, or an address with a password.
func Text(text string) string {
	if what := Token(text); what != "" {
		return what
	}
	if hasPassword(text) {
		return Address
	}
	return ""
}

// Address is what [Text] returns for an address with a password. Many manuals have one.
const Address = "an address with a password"

// Token returns what token of a known shape a text of any length contains, or "".
func Token(text string) string {
	for i := 0; i+shortest <= len(text); {
		if what := at(text[i:]); what != "" {
			return what
		}
		i = nextWord(text, i)
	}
	return ""
}

// shortest is the length of the shortest token that any rule knows.
const shortest = 16

// nextWord returns where the next word after i begins: a token begins only at the start of a word.
func nextWord(text string, i int) int {
	if text[i] == '-' { // five dashes begin a private key
		for i < len(text) && text[i] == '-' {
			i++
		}
		return i
	}
	for i < len(text) && isAlnum(text[i]) {
		i++
	}
	for i < len(text) && !isAlnum(text[i]) && text[i] != '-' {
		i++
	}
	return i
}

// at returns what token text begins with, or "". It tries the rules for the first byte.
func at(text string) string {
	for i := first[lower(text[0])]; int(i) < len(rules) && rules[i].begin[0] == lower(text[0]); i++ {
		if beginsFold(text, rules[i].begin) && matches(int(i), text) {
			return rules[i].what
		}
	}
	return ""
}

// longest bounds the text that an expression is tried on, in bytes. The longest token of the
// rules and a private key fit into it.
const longest = 8 << 10

// compiled holds the expression of each rule that was asked for once.
var compiled [len(rules)]atomic.Pointer[regexp.Regexp]

// expression returns what a token of rules[i] looks like from its first byte on.
func expression(i int) *regexp.Regexp {
	expr := compiled[i].Load()
	if expr == nil {
		expr = regexp.MustCompile("^(?:" + rules[i].expr + ")")
		compiled[i].Store(expr)
	}
	return expr
}

// matches reports whether the expression of rules[i] matches at the start of text, other than on a manual's example. It
// tries the text, and the run of token characters at its start alone: many expressions want the token to end there.
func matches(i int, text string) bool {
	r, run := &rules[i], text[:runLength(text)]
	if len(run) < shortest && len(run) != len(r.begin) { // a blank may follow the beginning: not one run
		return false
	}
	for _, candidate := range []string{text[:min(len(text), longest)], run} {
		token := expression(i).FindString(candidate)
		if token != "" && (r.entropy == 0 || entropy(token) >= r.entropy) &&
			!isExample(token, token[len(r.begin):]) {
			return true
		}
	}
	return false
}

// isExample reports whether a token, or what of it comes after its beginning, stands in a text for one that the reader
// has: EXAMPLE or dots are in it, or it is words ("your_access_token", "sk-hardcoded-token").
func isExample(token, rest string) bool {
	if strings.Contains(token, "EXAMPLE") || strings.Contains(token, "...") {
		return true
	}
	return areWords(rest)
}

// areWords reports whether all letters and digits of a text are words. Those beyond ASCII are.
func areWords(text string) bool {
	for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return r > '~' || !isAlnum(byte(r)) }) {
		if !isWords(piece) {
			return false
		}
	}
	return text != ""
}

// roots are the folders at the top of a system.
var roots = strings.Fields("Library Users Volumes bin boot dev etc home lib lib64 media mnt nix opt private proc " +
	"root run sbin snap srv sys tmp usr var")

// IsPath reports whether a value is the path of a file, and no secret that begins with a slash, as one in base64 may:
// it goes on with a folder that systems have, or is words.
func IsPath(value string) bool {
	if strings.HasPrefix(value, "~/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../") {
		return true
	}
	rest, isPath := strings.CutPrefix(value, "/")
	first, _, below := strings.Cut(rest, "/")
	return isPath && (rest == "" || below && slices.Contains(roots, first) || areWords(rest))
}

// shortPiece is how long a piece of words may be that has digits in it, as "sha256" and "k8s".
const shortPiece = 6

// isWords reports whether letters and digits are one or more words, as "optimizationWithGA": capitals are few, and the
// case changes seldom.
func isWords(piece string) bool {
	changes, capitals := 0, 0
	for i := range len(piece) {
		if isDigit(piece[i]) {
			return len(piece) <= shortPiece
		}
		if piece[i]&0x20 == 0 {
			capitals++
		}
		if i > 0 && (piece[i]^piece[i-1])&0x20 != 0 {
			changes++
		}
	}
	const least = 3 // letters to each
	return len(piece) <= shortPiece || changes <= 1 || len(piece) >= least*max(changes, capitals)
}

func runLength(text string) int {
	for i := range len(text) {
		if !isAlnum(text[i]) && strings.IndexByte("_-.~+/=|:%", text[i]) < 0 {
			return i
		}
	}
	return len(text)
}

// entropy is Shannon's entropy of a text, in bits per byte.
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	var bits float64
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// How long and mixed a value must be to look random. Words of people,
// paths, versions and identifiers that are not secret (UUIDs, short SHA-1 sums of
// commits) stay below.
const (
	leastRandom   = 24
	mostRandom    = 512
	mixedEntropy  = 4.2 // letters of both cases, and digits
	leastHex      = 32
	hexEntropy    = 3.2
	leastOfAClass = 2
)

// isRandom reports whether a value as a whole looks random.
func isRandom(value string) bool {
	if len(value) < leastRandom || len(value) > mostRandom || IsPath(value) {
		return false
	}
	var upper, low, digits, hex int
	for i := range len(value) {
		c := value[i]
		switch {
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			low++
		case isDigit(c):
			digits++
		case strings.IndexByte("+/_-=", c) < 0:
			return false
		}
		if isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' {
			hex++
		}
	}
	if hex == len(value) {
		return hex >= leastHex && upper+low >= leastOfAClass && entropy(value) >= hexEntropy
	}
	return min(upper, low, digits) >= leastOfAClass && entropy(value) >= mixedEntropy
}

// hasPassword reports whether a text contains scheme://user:password@. A variable in
// place of the password ("$PASS", "${PASS}", "***") does not count.
func hasPassword(text string) bool {
	for {
		_, rest, found := strings.Cut(text, "://")
		if !found {
			return false
		}
		text = rest
		authority := rest[:authorityLength(rest)]
		at := strings.LastIndexByte(authority, '@')
		if at < 0 {
			continue
		}
		if _, password, _ := strings.Cut(authority[:at], ":"); password != "" &&
			strings.IndexByte("$*<{%", password[0]) < 0 {
			return true
		}
	}
}

// authorityLength returns the length of the authority that an address begins with (RFC 3986, 3.2).
func authorityLength(text string) int {
	if end := strings.IndexAny(text, "/?# \t\r\n\"'"); end >= 0 {
		return end
	}
	return len(text)
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// beginsFold is strings.HasPrefix without regard to case; prefix is in lower case.
func beginsFold(text, prefix string) bool {
	if len(text) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(text[i]) != prefix[i] {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }
