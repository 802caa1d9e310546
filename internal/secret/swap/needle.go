package swap

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"claudebox/internal/secret/broker"
)

// needle is a text that must not get into the sandbox, and its replacement, which has the
// same length: so the length of an answer and the frames of a websocket do
// not change.
type needle struct {
	text, instead []byte
}

// finder finds needles in what a server sends.
//
// The time that it takes depends on the text, not on how much of a needle is in it: it compares a hash of each
// part of the text with the hashes of the needles' ends. Who had a server send guesses of a needle's beginning would
// otherwise see by the time when one is right.
type finder struct {
	needles []needle // shorter ones first
	names   []string // the needles in lower case, which the names of headers are searched for
	window  int      // as long as the longest needle can be, which depends on the lengths of secrets alone
	longest int      // the length of the longest needle
	signs   bool     // whether a needle has a character that formats escape
	scratch plain    // memory of findEscaped
	block   int      // the length of the ends that are hashed
	ends    [1 << hashBits / 64]uint64
}

const hashBits = 16

// multiplier makes the hashes of this process different from any other's, so that no text takes longer on purpose.
var multiplier = rand.Uint64()<<3 | 5

// newFinder returns a finder of the forms in which secrets can come back: unchanged, as they were
// sent, in hex, and in base64 at each of the three offsets that they can have there; each of them also with
// escapes, see [plain].
func newFinder(secrets []known, sent []swap) *finder {
	f := &finder{block: 24}
	have := map[string]bool{}
	add := func(text, instead string) {
		if len(text) < broker.Shortest || have[text] {
			return // so short a text occurs by chance, and can be guessed
		}
		have[text] = true
		f.longest = max(f.longest, len(text))
		f.signs = f.signs || strings.ContainsFunc(text, isSign)
		if len(instead) != len(text) {
			instead = strings.Repeat("*", len(text))
		}
		f.needles = append(f.needles, needle{[]byte(text), []byte(instead)})
	}
	for _, s := range secrets {
		if s.Value == "" {
			continue
		}
		f.window = max(f.window, longestEscape*len(s.Value))
		add(s.Value, s.key.Placeholder(s.Name, s.Value))
		inHex, inPlain := hex.EncodeToString([]byte(s.Value)), plainOf(s.Value)
		inQuery := strings.ReplaceAll(inPlain, " ", "+")
		for _, text := range append(inBase64(s.Value), inHex, strings.ToUpper(inHex), inPlain, inQuery) {
			add(text, "")
		}
		for _, swap := range sent {
			if _, word, two := strings.Cut(swap.value, " "); two && swap.secret == s.Value {
				f.window = max(f.window, len(word))
				add(word, "")
			}
		}
	}
	slices.SortStableFunc(f.needles, func(a, b needle) int { return cmp.Compare(len(a.text), len(b.text)) })
	if len(f.needles) > 0 {
		f.block = min(f.block, len(f.needles[0].text))
	}
	for _, n := range f.needles {
		f.names = append(f.names, strings.ToLower(string(n.text)))
		at := hashOf(n.text[len(n.text)-f.block:]) >> (64 - hashBits)
		f.ends[at/64] |= 1 << (at % 64)
	}
	return f
}

// inBase64 returns the part of a secret's base64 that does not depend on the
// text before and after it, for each number of bytes before it (modulo 3).
func inBase64(secret string) []string {
	var list []string
	for before := range 3 {
		text := strings.Repeat("\x00", before) + secret
		text = text[:len(text)/3*3]
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := alphabet.EncodeToString([]byte(text))
			list = append(list, encoded[min(len(encoded), []int{0, 2, 3}[before]):])
		}
	}
	return list
}

// isSign reports whether a format may escape a character.
func isSign(c rune) bool {
	return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z')
}

func hashOf(block []byte) (hash uint64) {
	for _, c := range block {
		hash = hash*multiplier + uint64(c)
	}
	return hash
}

// find calls found with each needle in text and where it ends. Needles may overlap.
func (f *finder) find(text []byte, found func(n needle, end int)) {
	if len(f.needles) == 0 || len(text) < f.block {
		return
	}
	by, leaving := multiplier, uint64(1) // leaving is the factor of the byte that leaves the block
	for range f.block {
		leaving *= by
	}
	hash := hashOf(text[:f.block])
	old := text[:len(text)-f.block]
	for i, c := range text[f.block:] {
		if f.endsIn(hash) {
			f.compare(text[:f.block+i], found)
		}
		come := uint64(c) - leaving*uint64(old[i])
		hash = hash*by + come
	}
	if f.endsIn(hash) {
		f.compare(text, found)
	}
}

// endsIn reports whether a needle may end in a block with a hash.
func (f *finder) endsIn(hash uint64) bool {
	at := hash >> (64 - hashBits)
	return f.ends[at/64]>>(at%64)&1 != 0
}

// compare calls found with each needle that text ends in.
func (f *finder) compare(text []byte, found func(n needle, end int)) {
	for _, n := range f.needles {
		if bytes.HasSuffix(text, n.text) {
			found(n, len(text))
		}
	}
}

// clean replaces the needles in a text that is whole.
func (f *finder) clean(text []byte) { f.replace(bytes.Clone(text), text) }

// replace writes to out, a copy of text in which some may be replaced already, the replacement of each needle in text.
func (f *finder) replace(text, out []byte) {
	f.findEscaped(text, func(from, to int) { copy(out[from:to], strings.Repeat("*", to-from)) })
	f.find(text, func(n needle, end int) { copy(out[end-len(n.text):end], n.instead) })
}

// cleanHeader replaces the needles in a header of an answer, and drops a field in whose name one is.
func (f *finder) cleanHeader(h http.Header) {
	for name, values := range h {
		lower := strings.ToLower(name) // a name comes in any case, and is passed on in another
		lower += "\n" + plainOf(lower)
		if slices.ContainsFunc(f.names, func(text string) bool { return strings.Contains(lower, text) }) {
			delete(h, name)
			continue
		}
		for i, value := range values {
			text := []byte(value)
			f.clean(text)
			values[i] = string(text)
		}
	}
}
