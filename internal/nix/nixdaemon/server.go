package nixdaemon

import (
	"bufio"
	"net"
	"time"

	"claudebox/internal/nix/storepath"
)

// Bounds of what a client may send. A store path has at most 255 characters; an option may be longer than that.
const (
	maxRequestText = 4 << 10  // bytes of one string
	maxRequestList = 1 << 14  // elements of one list
	maxRequest     = 4 << 20  // bytes of one request
	maxDropped     = 16 << 20 // bytes that Leave drops
)

// chunk is how many bytes of an answer are collected before they are sent.
const chunk = 64 << 10

// idleBuffer is the size in bytes of the buffers that a waiting client keeps: there may be hundreds of clients.
const idleBuffer = 512

// How long the handshake, and how long reading or writing one message, may take.
// Between two requests a client may be silent for as long as it likes.
const (
	handshakeTime = 10 * time.Second
	messageTime   = 30 * time.Second
)

// Server is the daemon's end of a connection, for a process that answers in place of the daemon. It
// knows the format of requests and answers, not what they mean: its methods
// read the parts of a request and write those of an answer, in the order of the
// protocol. It keeps the first error, see [Server.Err].
//
// It serves clients from Nix 2.8 on. What a client may send is bounded. Memory is taken for bytes that arrived, not for
// lengths that the client announces.
type Server struct {
	conn net.Conn
	dec  *decoder
	enc  encoder
	err  error     // of writing
	till time.Time // when what is read or written has to be through; zero: there is no limit
}

// NewServer returns the server for a connection, which the caller closes. Call Handshake first.
func NewServer(conn net.Conn) *Server {
	dec := &decoder{
		r:    bufio.NewReaderSize(conn, idleBuffer),
		most: limits{text: maxRequestText, count: maxRequestList, total: maxRequest},
	}
	return &Server{conn: conn, dec: dec}
}

// Err returns what ended the connection, or a breach of the protocol in the request;
// nil if there is neither.
func (s *Server) Err() error {
	if s.dec.err != nil {
		return s.dec.err
	}
	return s.err
}

// Handshake greets the client as a daemon of the given version, which does
// not trust the client.
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
	if protocol >= sinceFeatures { // each side sends its own features before it waits for the other's
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
	s.enc.uint(tagLast) // as after a request
	s.flush()
	return s.Err()
}

// Next waits for a request, and returns the number of its operation. After an error
// the connection cannot be used.
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

// Number reads a number.
func (s *Server) Number() uint64 { return s.dec.uint() }

// Text reads a string of at most 4 KiB.
func (s *Server) Text() string { return s.dec.text() }

// Count reads the length of a list, at most 16,384; its elements follow.
func (s *Server) Count() uint64 { return s.dec.count() }

// Path reads a store path; an invalid one is a breach of the protocol.
func (s *Server) Path() string {
	path := s.dec.text()
	if err := storepath.Check(path); err != nil {
		s.dec.protocolf("%v", err)
	}
	return path
}

// Meanwhile does what a client has to wait for in the middle of its request. How long that takes does not count as the
// time that the client has for the request.
func (s *Server) Meanwhile(do func()) {
	began := time.Now()
	do()
	if !s.till.IsZero() {
		s.limit(s.till.Add(time.Since(began)))
	}
}

// Succeed answers that a request succeeded. What is written next is the result.
func (s *Server) Succeed() {
	s.within(messageTime)
	s.enc.uint(tagLast)
}

// Refuse answers that a request failed.
func (s *Server) Refuse(message string) {
	s.within(messageTime)
	s.enc.uint(tagError)
	s.enc.text("Error")
	s.enc.uint(0) // level: error
	s.enc.text("Error")
	s.enc.text(message)
	s.enc.uint(0) // no position
	s.enc.uint(0) // no traces
}

// PutNumber writes a number as the next part of an answer.
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

// PutInfo writes the record of a path; nil means that the path is not valid.
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
	if s.enc.buf.Cap() > idleBuffer { // do not keep the buffer of a long answer
		s.enc = encoder{}
	}
	return s.Err()
}

// Leave is called after the last Send. It closes the writing side, and drops up to 16 MiB of what the client still
// sends until the time limit of Send: if the caller closed the connection at once, the client could lose the answer.
func (s *Server) Leave() {
	if half, can := s.conn.(interface{ CloseWrite() error }); can && half.CloseWrite() == nil {
		_, _ = s.dec.r.Discard(maxDropped)
	}
}

func (s *Server) flush() {
	defer s.enc.buf.Reset()
	if s.err == nil {
		_, s.err = s.conn.Write(s.enc.buf.Bytes())
	}
}

// within limits the time for all reads and writes from now on; 0 means no limit.
func (s *Server) within(limit time.Duration) {
	var at time.Time
	if limit > 0 {
		at = time.Now().Add(limit)
	}
	s.limit(at)
}

func (s *Server) limit(till time.Time) {
	s.till = till
	_ = s.conn.SetDeadline(till)
}
