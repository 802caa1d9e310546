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
type needle struct {
	text, instead []byte
	free          int // up to how many bytes of its beginning are passed on before it is known what follows
}

// needlesOf returns the forms in which a secret can come back: unchanged, as it was
// sent, as usual text formats escape it, and in base64 at each of the three offsets
// that it can have there.
func needlesOf(secrets []known, sent []swap) []needle {
	var list []needle
	have := map[string]bool{}
	// alike is the same form of the secret's placeholder.
	add := func(text, instead, alike string) {
		if len(text) < broker.Shortest || have[text] {
			return // so short a text occurs by chance, and can be guessed
		}
		have[text] = true
		if len(instead) != len(text) {
			instead = strings.Repeat("*", len(text))
		}
		list = append(list, needle{[]byte(text), []byte(instead), freeOf(text, alike)})
	}
	for _, s := range secrets {
		if s.Value == "" {
			continue
		}
		placeholder := s.key.Placeholder(s.Name, s.Value)
		add(s.Value, placeholder, placeholder)
		alike := formsOf(placeholder)
		for i, text := range formsOf(s.Value) {
			add(text, "", alike[i])
		}
		for _, swap := range sent {
			if _, word, two := strings.Cut(swap.value, " "); two && swap.secret == s.Value {
				add(word, "", inWord(word, s.Value, placeholder))
			}
		}
	}
	return list
}

// freeOf returns [needle.free]: what everybody knows, and of the rest half, but no more than cannot be guessed at once.
func freeOf(text, alike string) int {
	const most = 16
	public := 0
	for public < min(len(text), len(alike)) && text[public] == alike[public] {
		public++
	}
	return public + min(most, (len(text)-public)/2)
}

// inWord returns a word of a header with a secret replaced by its placeholder, in base64, too (RFC 7617).
func inWord(word, secret, placeholder string) string {
	if decoded, err := base64.StdEncoding.DecodeString(word); err == nil {
		return base64.StdEncoding.EncodeToString(bytes.ReplaceAll(decoded, []byte(secret), []byte(placeholder)))
	}
	return strings.ReplaceAll(word, secret, placeholder)
}

// formsOf returns the forms of a secret beside itself; as many for each secret.
func formsOf(secret string) []string { return slices.Concat(inBase64(secret), inTexts(secret)) }

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

// inTexts returns a secret as escaped in addresses, JSON (with and without "/" and HTML's signs
// escaped), HTML, quoted strings and hex.
func inTexts(secret string) []string {
	inJSON, _ := json.Marshal(secret) // marshalling a string never fails
	inHex := hex.EncodeToString([]byte(secret))
	inAddress := url.QueryEscape(secret)
	quoted := strconv.Quote(secret)
	return []string{
		inHex, strings.ToUpper(inHex), inAddress, url.PathEscape(secret), strings.ReplaceAll(inAddress, "+", "%20"),
		html.EscapeString(secret), string(inJSON[1 : len(inJSON)-1]), quoted[1 : len(quoted)-1],
		strings.ReplaceAll(secret, "/", `\/`),
	}
}

// scanner reads from a server and replaces each needle. It returns bytes as soon as they
// cannot be the beginning of a needle.
//
// What it keeps back must not depend on a guess being such a beginning: who has the server end a piece of its answer in
// guesses would get the secret byte by byte. So in an answer it keeps back whatever looks like the end of a word, see
// [isOfWords]. Where both sides talk in turns, as in a websocket, the server may wait for an answer to what
// is kept back; so there the beginning of a needle is kept back only when it is too long to be guessed, [needle.free].
type scanner struct {
	from    io.ReadCloser
	needles []needle
	answer  *http.Response // its trailer is complete when its body has been read
	inTurns bool           // the connection was upgraded to another protocol
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
	cut, free := len(text), len(text)
	if s.err = err; err == nil {
		undecided, back := s.undecided(text)
		cut, free = cut-undecided, free-back
	} else if s.answer != nil {
		scanHeader(s.answer.Trailer, s.needles)
	}
	free = max(free, s.given)
	s.ready, s.held, s.given = text[s.given:free], text[cut:], max(0, free-cut)
}

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
		at += start
		if bytes.HasPrefix(text[at:], needle) {
			return at
		}
		start = at + 1
	}
}

// undecided returns how many bytes at the end of text may be the beginning of a needle, and how many of
// them are to be kept back.
func (s *scanner) undecided(text []byte) (undecided, back int) {
	for _, needle := range s.needles {
		for n := min(len(needle.text)-1, len(text)); n > undecided || n > max(back, needle.free); n-- {
			if bytes.HasSuffix(text, needle.text[:n]) {
				undecided = max(undecided, n)
				if n > needle.free {
					back = max(back, n)
				}
				break
			}
		}
	}
	if !s.inTurns {
		back = max(back, len(lastWord(text, s.longest()-1)))
	}
	return max(undecided, back), back
}

// lastWord returns the end of a text that may belong to a secret in any of its forms, at most most bytes.
func lastWord(text []byte, most int) []byte {
	at := len(text)
	for at > max(0, len(text)-most) && isOfWords(text[at-1]) {
		at--
	}
	return text[at:]
}

// isOfWords reports whether tokens, and what escapes them, are made of a byte.
func isOfWords(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte("+/=-_.~:%&#;\\", c) >= 0
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
