package nixdaemon

import (
	"bufio"
	"net"
	"time"
)

// Limits of what a client may send. The longest store path has 255 characters;
// options may be longer.
const (
	maxAskedText  = 4 << 10
	maxAskedCount = 1 << 14
	maxAsked      = 4 << 20 // bytes of one request
	maxIgnored    = 16 << 20
)

// chunk is how many bytes of an answer are collected before they are sent.
const chunk = 64 << 10

// little is the room, in bytes, that a client takes which has asked for nothing
// yet: there may be hundreds of them.
const little = 512

// A client shakes hands, and sends or takes a message, in this time. Between
// two requests it may be silent for as long as it likes.
const (
	handshakeTime = 10 * time.Second
	messageTime   = 30 * time.Second
)

// Server is the daemon's end of a connection, for who answers in its place. It
// knows how requests and answers are written, not what they mean: its methods
// read the parts of a request and write those of an answer, in the order of the
// protocol. The first fault sticks, see [Server.Err].
//
// It speaks with Nix 2.8 and later ones. What a client sends is bounded, and
// memory grows with what arrives.
type Server struct {
	conn net.Conn
	dec  *decoder
	enc  encoder
	err  error // of writing
}

// NewServer begins a connection. The caller closes it.
func NewServer(conn net.Conn) *Server {
	dec := &decoder{
		r:    bufio.NewReaderSize(conn, little),
		most: limits{text: maxAskedText, count: maxAskedCount, total: maxAsked},
	}
	return &Server{conn: conn, dec: dec}
}

// Err is what ended the connection, or a breach of the protocol in the request;
// nil while all is well.
func (s *Server) Err() error {
	if s.dec.err != nil {
		return s.dec.err
	}
	return s.err
}

// Handshake greets the client as a daemon of that name and version, which does
// not trust it.
func (s *Server) Handshake(version string) error {
	s.within(handshakeTime)
	defer s.within(0)
	s.dec.refill()
	if magic := s.dec.uint(); s.dec.err == nil && magic != clientMagic {
		s.dec.protocolf("a client greets with %#x", magic)
	}
	s.enc.uint(daemonMagic)
	s.enc.uint(uint64(Newest))
	s.flush()
	client := Protocol(s.dec.uint())
	if s.dec.err == nil && (client>>8 != Newest>>8 || client < Oldest) {
		s.dec.protocolf("a client speaks version %s", client)
	}
	protocol := min(client, Newest)
	if protocol >= sinceFeatures { // each side sends its own before it waits for the other's
		s.enc.texts(nil)
		s.flush()
		s.dec.texts()
	}
	if s.dec.uint() != 0 { // CPU affinity follows, obsolete
		s.dec.uint()
	}
	s.dec.uint() // reserve space, obsolete
	s.enc.text(version)
	if protocol >= sinceTrust {
		s.enc.uint(uint64(NotTrusted))
	}
	s.Done()
	s.flush()
	return s.Err()
}

// Next waits for a request, and gives the number of its operation. An error is
// the end of the connection.
func (s *Server) Next() (operation uint64, err error) {
	s.within(0)
	s.dec.refill()
	if _, err := s.dec.r.Peek(1); err != nil {
		s.dec.fail(err)
		return 0, s.Err()
	}
	s.within(messageTime)
	operation = s.dec.uint()
	return operation, s.Err()
}

// Number reads the next part of a request, as Text and Count do. A list is its
// Count and then the elements.
func (s *Server) Number() uint64 { return s.dec.uint() }

// Text reads a string of at most 4 KiB.
func (s *Server) Text() string { return s.dec.text() }

// Count reads how many elements follow, at most 16,384.
func (s *Server) Count() uint64 { return s.dec.count() }

// Breach notes that the request is against the protocol.
func (s *Server) Breach(err error) { s.dec.protocolf("%v", err) }

// Done begins the answer to a request: it was done, and what follows is the
// result.
func (s *Server) Done() { s.enc.uint(tagLast) }

// Refuse answers that a request failed.
func (s *Server) Refuse(message string) {
	s.enc.uint(tagError)
	s.enc.text("Error")
	s.enc.uint(0) // level: error
	s.enc.text("Error")
	s.enc.text(message)
	s.enc.uint(0) // no position
	s.enc.uint(0) // no traces
}

// PutNumber writes a part of an answer.
func (s *Server) PutNumber(n uint64) { s.enc.uint(n) }

// PutTexts writes a list, however long.
func (s *Server) PutTexts(list []string) {
	s.enc.uint(uint64(len(list)))
	for _, text := range list {
		s.enc.text(text)
		if s.enc.buf.Len() > chunk {
			s.flush()
		}
	}
}

// PutInfo writes what is known of a path; nil: it is not valid.
func (s *Server) PutInfo(info *PathInfo) {
	s.enc.bool(info != nil)
	if info == nil {
		return
	}
	s.enc.text(info.Deriver)
	s.enc.text(info.NARHash)
	s.PutTexts(info.References)
	s.enc.uint(uint64(info.Registered.Unix()))
	s.enc.uint(info.NARSize)
	s.enc.bool(info.Ultimate)
	s.PutTexts(info.Signatures)
	s.enc.text(info.CA)
}

// Send sends the answer.
func (s *Server) Send() error {
	s.within(messageTime)
	s.flush()
	if s.enc.buf.Cap() > little { // a long answer is not kept room for
		s.enc = encoder{}
	}
	return s.Err()
}

// Leave ends the connection so that the last answer still arrives: closing it
// while the client sends would take that back. So what the client still sends is
// dropped, up to 16 MiB, within the time that a message has.
func (s *Server) Leave() {
	if half, can := s.conn.(interface{ CloseWrite() error }); can && half.CloseWrite() == nil {
		_, _ = s.dec.r.Discard(maxIgnored)
	}
}

func (s *Server) flush() {
	defer s.enc.buf.Reset()
	if s.err == nil {
		_, s.err = s.conn.Write(s.enc.buf.Bytes())
	}
}

// within bounds what is read and written from now on; 0: nothing does.
func (s *Server) within(limit time.Duration) {
	var at time.Time
	if limit > 0 {
		at = time.Now().Add(limit)
	}
	_ = s.conn.SetDeadline(at)
}
