package swap

import (
	"encoding/binary"
	"io"
	"net/http"
	"strings"
)

// scanner reads the body of an answer and replaces each needle.
//
// What it keeps back, and how long, depends on the text and on where its messages end, and on nothing else: who has a
// server send guesses of a secret, in pieces, would otherwise see which of them is right. A secret is of characters
// that can stand on a line, and so are its other forms. So text is passed on when its line has ended, or its message,
// or when so much has come behind it that a needle which begins in it would be complete.
type scanner struct {
	from     io.ReadCloser
	finder   *finder
	answer   *http.Response // its trailer is complete when its body has been read
	messages *messages      // nil: the answer is one message
	text     []byte         // as it came: first what has not been decided
	clean    []byte         // the same with the needles replaced
	all, cut int            // how much has come, and how much of it is decided
	ready    []byte         // the decided part of clean that Read has not returned
	err      error          // from's error; Read returns it after the rest
}

const (
	chunk     = 32 << 10
	scanChunk = chunk / 2 // there are two buffers of it
)

func newScanner(in *http.Response, f *finder) *scanner {
	s := &scanner{from: in.Body, finder: f, answer: in}
	if kind := strings.ToLower(in.Header.Get("Content-Type")); inMessages(kind) {
		s.messages = new(messages)
	}
	return s
}

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
	if s.text == nil {
		s.text, s.clean = make([]byte, s.finder.window+scanChunk), make([]byte, s.finder.window+scanChunk)
	}
	held := copy(s.text, s.text[s.cut:s.all])
	copy(s.clean, s.clean[s.cut:s.all])
	n, err := s.from.Read(s.text[held:])
	s.all = held + n
	text, clean := s.text[:s.all], s.clean[:s.all]
	copy(clean[held:], text[held:])
	s.finder.replace(text, clean)
	if s.err = err; err == nil {
		s.cut = max(s.all-undecided(text, s.finder.window), s.messages.end(text, n))
	} else {
		s.cut = s.all
		s.finder.cleanHeader(s.answer.Trailer)
	}
	s.ready = clean[:s.cut]
}

// undecided returns how many bytes at the end of a text may be the beginning of a needle of less than most bytes,
// whatever the needle.
func undecided(text []byte, most int) int {
	at := len(text)
	for at > max(0, len(text)-most+1) && isOnLines(text[at-1]) {
		at--
	}
	return len(text) - at
}

// isOnLines reports whether a header, and so a secret, can have a byte in it (RFC 9110, 5.5).
func isOnLines(c byte) bool { return c >= ' ' || c == '\t' }

func (s *scanner) Close() error { return s.from.Close() }

// inMessages reports whether answers of a content type consist of messages that tell their length. Between two of
// them the server may wait for what the client says next.
func inMessages(kind string) bool {
	return strings.HasPrefix(kind, "application/grpc") && !strings.HasPrefix(kind, "application/grpc-web-text") ||
		strings.HasPrefix(kind, "application/connect+")
}

// messages finds the ends of the messages of gRPC and Connect: each has a byte of flags and its length in front.
type messages struct {
	head []byte // of the current message, as far as it has come
	left uint64 // bytes of its content that have not come
}

const messageHead = 5

// end notes that the last n bytes of text have come, and returns where in text the last message ends; 0: nowhere.
func (m *messages) end(text []byte, n int) (at int) {
	if m == nil {
		return 0
	}
	for i := len(text) - n; i < len(text); {
		if len(m.head) < messageHead {
			m.head = append(m.head, text[i])
			i++
			if len(m.head) < messageHead {
				continue
			}
			m.left = uint64(binary.BigEndian.Uint32(m.head[1:]))
		}
		skip := min(m.left, uint64(len(text)-i))
		m.left -= skip
		i += int(skip)
		if m.left == 0 {
			m.head, at = m.head[:0], i
		}
	}
	return at
}
