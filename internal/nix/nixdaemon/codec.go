package nixdaemon

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/nix-community/go-nix/pkg/wire"
)

const (
	// maxText bounds one string. Nix itself sets no bound; the longest seen
	// is a build's log line.
	maxText = 64 << 20
	// maxCount bounds a list: a store of sixteen million paths is beyond
	// what a daemon can list in memory.
	maxCount = 1 << 24
)

// encoder collects one request or answer, so that it is sent with one write.
type encoder struct{ buf bytes.Buffer }

// Writing to a bytes.Buffer cannot fail, so wire returns no error.
func (e *encoder) uint(n uint64) { _ = wire.WriteUint64(&e.buf, n) }
func (e *encoder) bool(v bool)   { _ = wire.WriteBool(&e.buf, v) }
func (e *encoder) text(s string) { _ = wire.WriteString(&e.buf, s) }

func (e *encoder) texts(list []string) {
	e.uint(uint64(len(list)))
	for _, s := range list {
		e.text(s)
	}
}

// decoder reads the protocol's primitives. It keeps the first error, and later
// reads return zero values, so a message is decoded straight through and
// the error is checked once.
//
// Lengths and counts are claims of the other side: memory grows with the
// bytes that arrive, never with a claim. This is why wire.ReadString, which
// trusts the length and ignores an error in the padding, is not used.
type decoder struct {
	r    *bufio.Reader
	err  error
	most limits
	left uint64 // bytes that may still be read, if limits.total is set
	cut  bool   // a list was longer than limits.kept
}

// limits bound what a decoder takes from the other side.
type limits struct {
	text  uint64 // bytes of a string
	count uint64 // elements of a list
	total uint64 // bytes between two calls of [decoder.refill]; 0: any number
	kept  int    // elements of a list; further ones are read and dropped. 0: any number
}

func newDecoder(r io.Reader) *decoder {
	return &decoder{r: bufio.NewReaderSize(r, 32<<10), most: limits{text: maxText, count: maxCount}}
}

// refill starts the count of bytes for a new message, up to limits.total.
func (d *decoder) refill() { d.left = d.most.total }

// take counts n bytes that are about to be read, and reports whether they may be read.
func (d *decoder) take(n uint64) bool {
	switch {
	case d.err != nil:
		return false
	case d.most.total == 0:
		return true
	case n > d.left:
		d.protocolf("a message is over the limit of %d bytes", d.most.total)
		return false
	}
	d.left -= n
	return true
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// protocolf notes a breach of the protocol.
func (d *decoder) protocolf(format string, args ...any) {
	d.fail(fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...)))
}

func (d *decoder) uint() uint64 {
	if !d.take(8) {
		return 0
	}
	n, err := wire.ReadUint64(d.r)
	if err != nil {
		d.fail(err)
		return 0
	}
	return n
}

func (d *decoder) bool() bool {
	n := d.uint()
	if n > 1 {
		d.protocolf("%d is not a truth value", n)
	}
	return n == 1
}

// text reads a string, which may be as long as the limits allow.
func (d *decoder) text() string {
	n := d.uint()
	if n > d.most.text {
		d.protocolf("a string of %d bytes is over the limit of %d", n, d.most.text)
	}
	padded := (n + 7) &^ 7
	if d.err != nil || n == 0 || !d.take(padded) {
		return ""
	}
	body, err := io.ReadAll(io.LimitReader(d.r, int64(padded)))
	switch {
	case err != nil:
		d.fail(err)
	case len(body) < int(padded):
		d.fail(io.ErrUnexpectedEOF)
	case slices.ContainsFunc(body[n:], func(b byte) bool { return b != 0 }):
		d.protocolf("padding is not zero")
	default:
		return string(body[:n])
	}
	return ""
}

// count reads the number of elements that follow.
func (d *decoder) count() uint64 {
	n := d.uint()
	if n > d.most.count {
		d.protocolf("a list of %d elements is over the limit of %d", n, d.most.count)
		return 0
	}
	return n
}

// list reads a counted list, element by element.
func list[T any](d *decoder, element func(*decoder) T) []T {
	var all []T
	for n := d.count(); n > 0 && d.err == nil; n-- {
		if next := element(d); d.most.kept == 0 || len(all) < d.most.kept {
			all = append(all, next)
		} else {
			d.cut = true
		}
	}
	if d.err != nil {
		return nil
	}
	return all
}

func (d *decoder) texts() []string { return list(d, (*decoder).text) }
