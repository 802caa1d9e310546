package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"
)

// headTime bounds how long a client may take to say what it wants.
const headTime = 30 * time.Second

// client is a connection from inside, with what was read of it and not used.
type client struct {
	*net.TCPConn
	pending []byte
	refuse  func(error) // says no in the client's protocol; nil: it is too late for that
}

var (
	errSilent  = errors.New("the connection ended early")
	errTooLong = errors.New("too long")
)

// more reads on; at most limit bytes may be pending.
func (c *client) more(limit int) error {
	if len(c.pending) >= limit {
		return errTooLong
	}
	const piece = 4 << 10
	if cap(c.pending)-len(c.pending) < piece {
		c.pending = append(make([]byte, 0, len(c.pending)+2*piece), c.pending...)
	}
	n, err := c.Read(c.pending[len(c.pending):min(cap(c.pending), limit)])
	c.pending = c.pending[:len(c.pending)+n]
	if n == 0 && err != nil {
		return errSilent
	}
	return nil
}

// take reads exactly n bytes. They are valid until the next read.
func (c *client) take(n int) ([]byte, error) {
	for len(c.pending) < n {
		if err := c.more(longestHead); err != nil {
			return nil, err
		}
	}
	piece := c.pending[:n:n]
	c.pending = c.pending[n:]
	return piece, nil
}

// until reads up to a mark, and returns what stands before it.
func (c *client) until(mark string, limit int) (string, error) {
	for {
		if before, after, found := bytes.Cut(c.pending, []byte(mark)); found {
			c.pending = after
			return string(before), nil
		}
		if err := c.more(limit); err != nil {
			return "", err
		}
	}
}

// copyBody passes the next n bytes on.
func (c *client) copyBody(to io.Writer, n int64) error {
	known := min(n, int64(len(c.pending)))
	if _, err := to.Write(c.pending[:known]); err != nil {
		return err
	}
	c.pending = c.pending[known:]
	_, err := io.CopyN(to, c.TCPConn, n-known)
	return err
}

// flush passes everything on that is pending.
func (c *client) flush(to io.Writer) error {
	_, err := to.Write(c.pending)
	c.pending = nil
	return err
}

// lingerTime bounds how long what is still being sent is read, so that an
// answer arrives: a reset, which the kernel sends otherwise, can overtake it.
const lingerTime = time.Second

func (c *client) linger() {
	const most = 1 << 20
	if c.CloseWrite() == nil {
		c.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, c.TCPConn, most)
	}
}
