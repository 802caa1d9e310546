package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"claudebox/internal/network/relay"
)

// readHead reads one request's head.
func (c *client) readHead() (head, error) {
	text, err := c.until("\r\n\r\n", longestHead)
	if errors.Is(err, errTooLong) {
		return head{}, &refusal{what: "a request", why: "its head is longer than 32 KiB", status: 431}
	}
	if err != nil {
		return head{}, err
	}
	return parseHead(text)
}

// http serves one request of HTTP: a tunnel, or one plain request.
func (p *Proxy) http(c *client) error {
	c.refuse = c.answer
	h, err := c.readHead()
	if err != nil {
		return err
	}
	if h.method == "CONNECT" {
		return p.connect(c, h)
	}
	t, path, err := h.absolute()
	if err != nil {
		return err
	}
	content, err := h.framing()
	if err != nil {
		return err
	}
	server, err := p.reach(t)
	if err != nil {
		return err
	}
	return c.exchange(server, h.origin(t, path), content)
}

func (p *Proxy) connect(c *client, h head) error {
	t, err := parseTarget(h.target, 0)
	if err == nil && len(h.values("content-length"))+len(h.values("transfer-encoding")) > 0 {
		err = malformed(h.target, "CONNECT with a body")
	}
	if err != nil {
		return err
	}
	server, err := p.reach(t)
	if err != nil {
		return err
	}
	c.refuse = nil
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		server.Close()
		return err
	}
	return p.tunnel(c, server, t)
}

// exchange carries one request, whose head is ready, and what the server
// answers until one of them closes. What the client sends behind the request
// is thrown away.
func (c *client) exchange(server *net.TCPConn, begin []byte, content body) error {
	c.refuse = nil
	c.SetReadDeadline(time.Time{})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		relay.OneWay(c.TCPConn, server)
		c.SetReadDeadline(time.Now().Add(lingerTime))
	}()
	to := &upload{to: server}
	err := c.send(to, begin, content)
	switch {
	case err == nil:
		_, _ = io.Copy(io.Discard, c.TCPConn)
	case to.failed:
		<-answered // the server has heard enough
	}
	c.Close()
	server.Close()
	<-answered
	return err
}

func (c *client) send(to *upload, begin []byte, content body) error {
	if _, err := to.Write(begin); err != nil {
		return err
	}
	if content.chunked {
		return c.copyChunks(to)
	}
	return c.copyBody(to, content.length)
}

// upload remembers that it was the server who would not take more.
type upload struct {
	to     *net.TCPConn
	failed bool
}

func (u *upload) Write(piece []byte) (int, error) {
	n, err := u.to.Write(piece)
	u.failed = u.failed || err != nil
	return n, err
}

// copyChunks passes a chunked body on (RFC 9112, 7.1), each size written anew.
// Extensions and trailers are refused: nobody needs them, and readers differ
// on them.
func (c *client) copyChunks(server io.Writer) error {
	for {
		digits, err := c.until("\r\n", longestHead)
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(digits, 16, 62)
		if err != nil {
			return malformed("a request", "chunk size %q", digits)
		}
		if _, err := fmt.Fprintf(server, "%x\r\n", n); err != nil {
			return err
		}
		if err := c.copyBody(server, int64(n)); err != nil {
			return err
		}
		end, err := c.take(2)
		if err != nil {
			return err
		}
		if string(end) != "\r\n" {
			return malformed("a request", "a chunk that is longer than it says, or trailers")
		}
		if _, err := server.Write(end); err != nil || n == 0 {
			return err
		}
	}
}

// answer tells an HTTP client why not, in the status line too: of a tunnel
// most clients show nothing else.
func (c *client) answer(err error) {
	status := 502
	var no *refusal
	var cannot *failure
	switch {
	case errors.As(err, &no):
		status = no.status
	case !errors.As(err, &cannot):
		return // the connection is broken
	}
	text := "claudebox: " + printable(err.Error())
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, text, len(text)+1, text)
	c.linger()
}

// printable keeps what a client sent from forging a head: it is answered, and
// later shown, in one line of ASCII.
func printable(text string) string {
	const longest = 200
	quoted := strconv.QuoteToASCII(text)
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	if len(quoted) > longest {
		quoted = quoted[:longest] + "..."
	}
	return quoted
}
