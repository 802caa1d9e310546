package swap

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/secret/broker"
)

// needle is a text that must not get into the sandbox, and its replacement, which has the
// same length: so the length of an answer and the frames of a websocket do
// not change.
type needle struct{ text, instead []byte }

// needlesOf returns the forms in which a secret can come back: unchanged, as it was
// sent, as usual text formats escape it, and in base64 at each of the three offsets
// that it can have there.
func needlesOf(secrets []known, sent []swap) []needle {
	var list []needle
	add := func(text, instead string) {
		if len(text) < broker.Shortest {
			return // so short a text occurs by chance, and can be guessed
		}
		if len(instead) != len(text) {
			instead = strings.Repeat("*", len(text))
		}
		list = append(list, needle{[]byte(text), []byte(instead)})
	}
	for _, s := range secrets {
		if s.Value == "" {
			continue
		}
		add(s.Value, s.key.Placeholder(s.Name, s.Value))
		for _, text := range slices.Concat(inBase64(s.Value), inTexts(s.Value)) {
			add(text, "")
		}
	}
	for _, swap := range sent {
		if _, word, two := strings.Cut(swap.value, " "); two && word != swap.secret {
			add(word, "")
		}
	}
	return list
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
	return slices.Compact(list)
}

// inTexts returns a secret as escaped in addresses, JSON (with and without "/" and HTML's signs
// escaped), HTML, quoted strings and hex, without forms that equal the secret.
func inTexts(secret string) []string {
	inJSON, _ := json.Marshal(secret) // marshalling a string never fails
	inHex := hex.EncodeToString([]byte(secret))
	inAddress := url.QueryEscape(secret)
	quoted := strconv.Quote(secret)
	list := []string{
		inHex, strings.ToUpper(inHex), inAddress, url.PathEscape(secret), strings.ReplaceAll(inAddress, "+", "%20"),
		html.EscapeString(secret), string(inJSON[1 : len(inJSON)-1]), quoted[1 : len(quoted)-1],
		strings.ReplaceAll(secret, "/", `\/`),
	}
	return slices.DeleteFunc(list, func(text string) bool { return text == secret })
}

// scanner reads from a server and replaces each needle. It returns bytes as soon as
// they cannot be the beginning of a needle.
type scanner struct {
	from    io.ReadCloser
	needles []needle
	answer  *http.Response // its trailer is complete when its body has been read
	buffer  []byte         // the memory of ready and held
	ready   []byte         // searched; Read returns it next
	held    []byte         // not yet decided: it may be the beginning of a needle
	given   int            // bytes of held that Read has returned all the same
	err     error          // from's error; Read returns it after the rest
}

const chunk = 32 << 10

func (s *scanner) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

func (s *scanner) fill() {
	if s.buffer == nil {
		s.buffer = make([]byte, s.longest()+chunk)
	}
	kept := copy(s.buffer, s.held)
	n, err := s.from.Read(s.buffer[kept:])
	text := s.buffer[:kept+n]
	replaceAll(text, s.needles)
	cut, given := len(text), s.given
	if s.err = err; err == nil {
		cut -= s.undecided(text)
	} else if s.answer != nil {
		scanHeader(s.answer.Trailer, s.needles)
	}
	s.held, s.given = text[cut:], max(0, given-cut)
	if len(s.held) <= byChance {
		cut, s.given = len(text), len(s.held)
	}
	s.ready = text[min(given, cut):cut]
}

// byChance is up to how many undecided bytes at the end of a text are passed on at once: so few match a
// needle's beginning by chance, and the server may send nothing more until they have been read,
// as in a websocket. They reveal nothing about a secret.
const byChance = 3

func (s *scanner) longest() int {
	longest := 0
	for _, needle := range s.needles {
		longest = max(longest, len(needle.text))
	}
	return longest
}

// replaceAll replaces the needles within text, in place.
func replaceAll(text []byte, needles []needle) {
	for _, needle := range needles {
		for rest := text; ; {
			at := index(rest, needle.text)
			if at < 0 {
				break
			}
			copy(rest[at:], needle.instead)
			rest = rest[at+len(needle.text):]
		}
	}
}

// index is bytes.Index, but also fast for long needles.
func index(text, needle []byte) int {
	const quick = 24
	if len(needle) <= quick {
		return bytes.Index(text, needle)
	}
	for start := 0; ; {
		at := bytes.Index(text[start:], needle[:quick])
		if at < 0 {
			return -1
		}
		if at += start; bytes.HasPrefix(text[at:], needle) {
			return at
		}
		start = at + 1
	}
}

// undecided returns how many bytes at the end of text may be the beginning of a
// needle.
func (s *scanner) undecided(text []byte) int {
	longest := 0
	for _, needle := range s.needles {
		for n := min(len(needle.text)-1, len(text)); n > longest; n-- {
			if bytes.HasSuffix(text, needle.text[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// Write writes to the server, if the connection was upgraded to another protocol.
func (s *scanner) Write(p []byte) (int, error) {
	to, ok := s.from.(io.Writer)
	if !ok {
		return 0, io.ErrClosedPipe
	}
	return to.Write(p)
}

func (s *scanner) Close() error { return s.from.Close() }

// scanHeader replaces the needles in a header of an answer.
func scanHeader(h http.Header, needles []needle) {
	for _, values := range h {
		for i, value := range values {
			text := []byte(value)
			replaceAll(text, needles)
			values[i] = string(text)
		}
	}
}
