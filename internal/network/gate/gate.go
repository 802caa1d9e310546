package gate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"claudebox/internal/network/hostpattern"
)

// Refused says why the gate refused what a client sent.
type Refused struct {
	why  string
	host string // canonical: the other host that it was for; empty: it was for none
}

func (r *Refused) Error() string { return r.why }

func refusef(format string, args ...any) error { return &Refused{why: fmt.Sprintf(format, args...)} }

// Answer is what a client that speaks HTTP reads when it was refused before anything reached the host; nil for other
// clients. opens is the command by which the user lets the sandbox reach another host; empty: none does.
// [Gate.Client] has returned.
func (g *Gate) Answer(no *Refused, opens func(host string) string) []byte {
	if !g.speaksHTTP {
		return nil
	}
	text := "claudebox refused " + no.why + ".\n"
	if no.host != "" {
		text += "This connection is to " + g.name + ". Inside, `claudebox-why " + no.host + "` says more.\n"
		if command := opens(no.host); command != "" {
			text += "The user can let it in, outside: " + command + "\n"
		}
	}
	return fmt.Appendf(nil, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s", len(text), text)
}

// The ports of the web. Only their usual protocol is allowed there.
const (
	portHTTP  = 80
	portHTTPS = 443
)

// firstRead is the size of the first read from a client, in bytes.
const firstRead = 2 << 10

// Gate inspects one connection to a port of a host.
type Gate struct {
	name string
	port uint16

	begun chan struct{} // closed when first is set
	once  sync.Once
	first answer

	speaksHTTP bool // the client does
}

// answer is how a server's answer begins.
type answer int

const (
	other     answer = iota
	retry            // it wants a second client hello (RFC 8446, 4.1.4)
	switching        // it changes to the protocol that the client asked for
)

// New makes the gate of a connection. The name must be canonical.
func New(name string, port uint16) *Gate {
	return &Gate{name: name, port: port, begun: make(chan struct{})}
}

// Client inspects what the client sends and passes it on to the host. It returns nil when the rest
// needs no inspection, io.EOF when the client has ended, and a [Refused] for what is not allowed:
// nothing of that reaches the host, except perhaps the beginning of a line without an HTTP version.
func (g *Gate) Client(ctx context.Context, client io.Reader, host io.Writer) error {
	// Nearly all is TLS, which needs a small buffer; only HTTP has long lines.
	c := &inspector{gate: g, ctx: ctx, from: bufio.NewReaderSize(client, firstRead), to: host}
	first, err := c.from.Peek(1)
	if err != nil {
		return err
	}
	if c.beginsTLS(first[0]) {
		if g.port == portHTTP { // a server there could find requests in it
			return refusef("TLS at port %d", portHTTP)
		}
		return c.tls()
	}
	if c.beginsSSL2(first[0]) {
		return refusef("a client hello of SSL 2, which names no host")
	}
	c.from = bufio.NewReaderSize(c.from, longestLine)
	isHTTP := c.speaksHTTP()
	switch {
	case g.port == portHTTPS:
		return refusef("what is no TLS")
	case isHTTP:
		c.gate.speaksHTTP = true
		return c.http()
	case g.port == portHTTP:
		return refusef("what is no HTTP")
	}
	return c.firstLine()
}

// Server passes what the server sends on to the client until it is known how the answer begins.
// Then it returns nil. Its error is one of reading or writing.
func (g *Gate) Server(host io.Reader, client io.Writer) error {
	defer g.settle(other)
	var begin []byte
	buffer := make([]byte, 2<<10)
	for {
		n, err := host.Read(buffer)
		if n > 0 {
			begin = withoutOtherRecords(append(begin, buffer[:n]...))
			if a, known := beginning(begin); known {
				g.settle(a)
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err != nil || g.settled() {
			return err
		}
	}
}

func (g *Gate) settle(a answer) { g.once.Do(func() { g.first = a; close(g.begun) }) }

func (g *Gate) settled() bool {
	select {
	case <-g.begun:
		return true
	default:
		return false
	}
}

// answered waits until it is known how the server's answer begins.
func (g *Gate) answered(ctx context.Context) (answer, error) {
	select {
	case <-g.begun:
		return g.first, nil
	case <-ctx.Done():
		return other, ctx.Err()
	}
}

// retryRandom is the random of a server hello that asks for
// another client hello (RFC 8446, 4.1.3).
var retryRandom = []byte{
	0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
	0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
}

// withoutOtherRecords removes the complete TLS records that contain no handshake:
// a server may send a warning before its hello.
func withoutOtherRecords(begin []byte) []byte {
	const header = 5
	for len(begin) >= header && isRecord(begin[0]) && begin[0] != recordHandshake && begin[1] == 3 {
		size := header + int(begin[3])<<8 + int(begin[4])
		if len(begin) < size {
			break
		}
		begin = begin[size:]
	}
	return begin
}

// beginning returns how a server's answer begins; known is false while more bytes are needed. begin
// comes from [withoutOtherRecords]. A server may split its hello into records of any size, and may
// send another message first: then the answer counts as retry, so that whatever follows is inspected.
func beginning(begin []byte) (a answer, known bool) {
	const switches, record, randomAt, serverHello = "HTTP/1.1 101 ", 5, 5 + 4 + 2, 2
	if len(begin) == 0 {
		return other, false
	}
	if begin[0] != recordHandshake && isRecord(begin[0]) && (len(begin) == 1 || begin[1] == 3) {
		return other, false
	}
	if begin[0] != recordHandshake {
		n := min(len(begin), len(switches))
		if string(begin[:n]) != switches[:n] {
			return other, true
		}
		return switching, n == len(switches)
	}
	if len(begin) < record {
		return other, false
	}
	if size := int(begin[3])<<8 | int(begin[4]); size < randomAt-record+len(retryRandom) {
		return retry, true
	}
	if len(begin) < randomAt+len(retryRandom) {
		return other, false
	}
	if begin[record] != serverHello || bytes.Equal(begin[randomAt:randomAt+len(retryRandom)], retryRandom) {
		return retry, true
	}
	return other, true
}

// inspector inspects what a client sends.
type inspector struct {
	gate *Gate
	ctx  context.Context
	from *bufio.Reader
	to   io.Writer
}

// flush passes on the bytes that are already in the buffer.
func (c *inspector) flush() error {
	text, _ := c.from.Peek(c.from.Buffered())
	_, err := c.to.Write(text)
	_, _ = c.from.Discard(len(text))
	return err
}

// tls judges the name of each client hello in clear text. Between the first one and
// the server's answer, records that contain no handshake pass.
func (c *inspector) tls() error {
	if err := c.hello(); err != nil {
		return err
	}
	for {
		kind, err := c.from.Peek(1)
		if err != nil {
			return err
		}
		if kind[0] == recordHandshake {
			break
		}
		if c.gate.settled() && c.gate.first != retry {
			return c.flush()
		}
		if err := c.record(); err != nil {
			return err
		}
	}
	begun, err := c.gate.answered(c.ctx)
	if err == nil && begun == retry {
		err = c.hello()
	}
	if err != nil {
		return err
	}
	return c.flush()
}

// record passes on one TLS record.
func (c *inspector) record() error {
	const header = 5
	begin, err := c.from.Peek(header)
	if err != nil {
		return err
	}
	size := int(begin[3])<<8 | int(begin[4])
	if size > longestRecord+256 {
		return refusef("what is no TLS")
	}
	_, err = io.CopyN(c.to, c.from, int64(header+size))
	return err
}

// hello reads a client hello and passes it on if it names the host.
func (c *inspector) hello() error {
	var begin []byte
	for {
		said, err := serverName(begin)
		switch {
		case err == nil:
			return c.pass(begin, said)
		case !errors.Is(err, errShort):
			return refusef("%s", err)
		}
		if _, err := c.from.Peek(1); err != nil {
			return err
		}
		n := min(c.from.Buffered(), nextPiece(begin))
		text, _ := c.from.Peek(n)
		begin = append(begin, text...)
		_, _ = c.from.Discard(n)
	}
}

// nextPiece returns how many bytes of a hello may be read without reading past its end: its
// records are read one header and one body at a time.
func nextPiece(begin []byte) int {
	const header = 5
	for at := 0; ; {
		if len(begin)-at < header {
			return header - (len(begin) - at)
		}
		size := header + int(begin[at+3])<<8 + int(begin[at+4])
		if len(begin)-at < size {
			return size - (len(begin) - at)
		}
		at += size
	}
}

func (c *inspector) pass(hello []byte, said string) error {
	if name, err := hostpattern.Canonical(said); err != nil || name != c.gate.name {
		return refusef("TLS for another host: %s", hostpattern.Shown(said))
	}
	_, err := c.to.Write(hello)
	return err
}

// beginsTLS reports whether a client begins with a TLS record of any
// type: servers skip a warning before the hello, Go's skip one of any version.
func (c *inspector) beginsTLS(first byte) bool {
	const header = 5
	if !isRecord(first) || first == recordHandshake {
		return first == recordHandshake
	}
	begin, err := c.from.Peek(2)
	if err != nil || begin[1] == 3 {
		return err == nil
	}
	if first != recordAlert {
		return false
	}
	begin, err = c.from.Peek(header)
	return err == nil && begin[3] == 0 && begin[4] == 2
}

// speaksHTTP reports whether the first line is HTTP, or could be mistaken for it by some server. It
// waits for the end of the line only while the line is text; [inspector.firstLine] judges any other.
func (c *inspector) speaksHTTP() bool {
	for n := 1; n < longestLine; n++ {
		text, err := c.from.Peek(n)
		if err != nil {
			return false // a client that sends so little and ends does not speak HTTP
		}
		switch last := text[n-1]; {
		case n == 1 && (last == '\r' || last == '\n' || last == ' '):
			return true
		case last == '\n':
			return hasVersion(text) || isSimple(text)
		case n == 1 && !isTokenByte(last), last < ' ' && last != '\t' && last != '\r':
			return false
		}
	}
	return true
}

// firstLine passes on the first line of a connection that does not begin like HTTP, as its bytes
// arrive: the line may have no end, and the client may wait for an answer. Some servers accept
// any byte in a request line, and many kinds of space, so the line is refused as soon as
// it contains a version of HTTP. After the end of this line nothing can be a first request.
func (c *inspector) firstLine() error {
	const kept = 1 << 10 // bytes kept of the line's beginning; its last bytes are kept, too
	var line []byte
	for {
		if _, err := c.from.Peek(1); err != nil {
			return err
		}
		text, _ := c.from.Peek(c.from.Buffered())
		piece, _, ended := bytes.Cut(text, []byte("\n"))
		line = bytes.TrimLeft(spaced(append(line, piece...)), " ")
		if hasVersion(line) || isSimple(line) || ended && len(line) == 0 {
			return refusef("its request line is not one of HTTP/1")
		}
		if bytes.HasPrefix(line, []byte("PROXY ")) {
			return refusef("a PROXY header, as a load balancer sends it")
		}
		if ended {
			return c.flush()
		}
		if err := c.flush(); err != nil {
			return err
		}
		if len(line) > kept {
			line = append(line[:kept-len(version)], line[len(line)-len(version):]...)
		}
	}
}

// spaced replaces each byte that a server may take for a space by a plain space: Python's
// servers take those of Latin-1.
func spaced(line []byte) []byte {
	line = bytes.Clone(line)
	for i, c := range line {
		if strings.IndexByte("\t\v\f\r\x1c\x1d\x1e\x1f\x85\xa0", c) >= 0 {
			line[i] = ' '
		}
	}
	return line
}

// version is in every request line from HTTP/1.0 on, in upper or lower case.
const version = "HTTP/"

func hasVersion(line []byte) bool { return bytes.Contains(bytes.ToUpper(line), []byte(version)) }

// isSimple reports whether a line is a request of HTTP/0.9, which has no version
// and no host: what follows it could be taken for HTTP/1, or for its fields.
func isSimple(line []byte) bool {
	words := bytes.Fields(spaced(line))
	if len(words) < 2 {
		return false
	}
	method, target := string(words[0]), string(words[1])
	return isToken(method) && method == strings.ToUpper(method) &&
		(strings.HasPrefix(target, "/") || strings.Contains(target, "://"))
}

// beginsSSL2 reports whether a client begins with a client hello of SSL 2 (RFC 5246, E.2).
// Today's servers still accept one for TLS.
func (c *inspector) beginsSSL2(first byte) bool {
	const longLength, kindAt, versionAt = 0x80, 2, 3
	if first&longLength == 0 {
		return false
	}
	begin, err := c.from.Peek(kindAt + 1)
	if err != nil || begin[kindAt] != clientHello {
		return false
	}
	begin, err = c.from.Peek(versionAt + 2)
	return err == nil && (begin[versionAt] == 3 || begin[versionAt] == 0 && begin[versionAt+1] == 2)
}

// http passes on requests, each of which must be for the host. It returns nil when
// the server has changed to a protocol that the first request asked for.
func (c *inspector) http() error {
	for first := true; ; first = false {
		text, err := c.head()
		if err != nil {
			return err
		}
		h, err := parseHead(text)
		if err == nil {
			err = h.judge(c.gate.name)
		}
		if err != nil {
			return err
		}
		content, err := h.framing()
		if err != nil {
			return err
		}
		if content.chunked || content.length > 0 {
			if err := h.allowContent(); err != nil {
				return err
			}
		}
		upgrade := h.upgrade() != "" && !strings.Contains(h.upgrade(), "h2c")
		if upgrade && !first {
			return refusef("a change of protocol in the middle of a connection")
		}
		if _, err := c.to.Write(h.bytes()); err != nil {
			return err
		}
		if err := c.content(content); err != nil {
			return err
		}
		if !upgrade {
			continue
		}
		if begun, err := c.gate.answered(c.ctx); err != nil {
			return err
		} else if begun == switching {
			return c.flush()
		}
	}
}

// head reads a request's head up to the empty line, which is read but not returned.
func (c *inspector) head() (string, error) {
	var text strings.Builder
	for {
		line, err := c.from.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) || text.Len()+len(line) > longestHead {
			return "", refusef("a request whose head is longer than 32 KiB")
		}
		if err != nil {
			if text.Len()+len(line) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return "", err
		}
		if !bytes.HasSuffix(line, []byte("\r\n")) {
			return "", refusef("a request whose lines do not end as HTTP has it")
		}
		if len(line) == 2 && text.Len() > 0 {
			return strings.TrimSuffix(text.String(), "\r\n"), nil
		}
		text.Write(line)
	}
}

// content passes on a request's body.
func (c *inspector) content(b body) error {
	if b.chunked {
		return c.chunks()
	}
	_, err := io.CopyN(c.to, c.from, b.length)
	return err
}

// chunks passes on a chunked body (RFC 9112, 7.1), and writes each size anew. It refuses
// extensions and trailers: nobody needs them, and servers read them differently.
func (c *inspector) chunks() error {
	for {
		line, err := c.from.ReadSlice('\n')
		if err != nil {
			return err
		}
		digits, ended := strings.CutSuffix(string(line), "\r\n")
		n, ok := hexadecimal(digits)
		if !ended || !ok {
			return refusef("a chunk of a request without a plain size")
		}
		if _, err := fmt.Fprintf(c.to, "%x\r\n", n); err != nil {
			return err
		}
		if _, err := io.CopyN(c.to, c.from, n); err != nil {
			return err
		}
		var end [2]byte
		if _, err := io.ReadFull(c.from, end[:]); err != nil {
			return err
		}
		if string(end[:]) != "\r\n" {
			return refusef("a chunk that is longer than it says, or trailers")
		}
		if _, err := c.to.Write(end[:]); err != nil || n == 0 {
			return err
		}
	}
}

// hexadecimal returns the size of a chunk; it must consist of digits only.
func hexadecimal(digits string) (n int64, ok bool) {
	if digits == "" || len(digits) > 15 {
		return 0, false
	}
	for _, c := range []byte(strings.ToLower(digits)) {
		i := strings.IndexByte("0123456789abcdef", c)
		if i < 0 {
			return 0, false
		}
		n = n<<4 | int64(i)
	}
	return n, true
}
