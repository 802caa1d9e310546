package swap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// websocket reads the messages that a server sends through a websocket (RFC 6455), and replaces each needle. It passes
// a message on when all of it has come, as one frame: what it keeps back is no matter of what is in it. The other
// direction is not looked at.
type websocket struct {
	from   io.ReadWriteCloser
	in     *bufio.Reader
	finder *finder
	kept   *atomic.Int64 // bytes of unfinished messages, of all connections
	mine   atomic.Int64  // of this one
	refuse func(why string)

	kind    byte   // of the unfinished message; 0: there is none
	message []byte // what has come of it
	ready   []byte // Read returns it next
	err     error  // Read returns it after the rest
}

const (
	mostMessage  = 4 << 20  // bytes of a message
	mostMessages = 32 << 20 // bytes of all unfinished messages
	mostControl  = 125      // bytes of a control frame
)

// Bits of the first two bytes of a frame, its kinds, and why a connection is closed.
const (
	lastFrame, maskedFrame = 0x80, 0x80
	goingOn, closingFrame  = 0, 8
	faulty, tooBig         = 1002, 1009
)

func newWebsocket(from io.ReadWriteCloser, f *finder, kept *atomic.Int64, refuse func(why string)) *websocket {
	return &websocket{from: from, in: bufio.NewReader(from), finder: f, kept: kept, refuse: refuse}
}

func (w *websocket) Read(p []byte) (int, error) {
	for len(w.ready) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		w.frame()
	}
	n := copy(p, w.ready)
	if w.ready = w.ready[n:]; len(w.ready) == 0 {
		w.ready = nil // an idle connection keeps no memory
	}
	return n, nil
}

// frame reads a frame.
func (w *websocket) frame() {
	kind, last, size, err := w.head()
	switch {
	case err != nil:
	case kind >= closingFrame:
		w.err = w.control(kind, size)
		return
	default:
		err = w.more(kind, size)
	}
	if w.err = err; err == nil && last {
		w.pass(w.kind, w.message)
	}
	if err != nil || last {
		w.kind, w.message = 0, nil
		w.forget()
	}
}

// head reads the head of a frame. It refuses what no server may send without an extension.
func (w *websocket) head() (kind byte, last bool, size uint64, err error) {
	var b [8]byte
	if _, err := io.ReadFull(w.in, b[:2]); err != nil {
		return 0, false, 0, err
	}
	kind, last, size = b[0]&0x0f, b[0]&lastFrame != 0, uint64(b[1]&^maskedFrame)
	control := kind >= closingFrame
	if b[0]&0x70 != 0 || b[1]&maskedFrame != 0 || kind&7 > 2 || control && (!last || size > mostControl) ||
		!control && (kind == goingOn) != (w.kind != 0) {
		return 0, false, 0, w.end(faulty, "a frame of a websocket that could not be searched")
	}
	switch size {
	case 126:
		_, err = io.ReadFull(w.in, b[:2])
		size = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		_, err = io.ReadFull(w.in, b[:8])
		size = binary.BigEndian.Uint64(b[:])
	}
	return kind, last, size, err
}

// control passes a control frame on, which may stand amid a message.
func (w *websocket) control(kind byte, size uint64) error {
	text := make([]byte, size)
	if _, err := io.ReadFull(w.in, text); err != nil {
		return err
	}
	w.pass(kind, text)
	return nil
}

// more reads the content of a frame. Memory grows as it comes, not as it is announced.
func (w *websocket) more(kind byte, size uint64) error {
	if kind != goingOn {
		w.kind = kind
	}
	if size > mostMessage-uint64(len(w.message)) {
		return w.end(tooBig, fmt.Sprintf("a message of a websocket with more than %d MiB", mostMessage>>20))
	}
	for size > 0 {
		n := min(size, chunk)
		w.mine.Add(int64(n))
		if w.kept.Add(int64(n)) > mostMessages {
			return w.end(tooBig, fmt.Sprintf("messages of websockets with more than %d MiB at once", mostMessages>>20))
		}
		at := len(w.message)
		w.message = append(w.message, make([]byte, n)...)
		if _, err := io.ReadFull(w.in, w.message[at:]); err != nil {
			return err
		}
		size -= n
	}
	return nil
}

var errEnded = errors.New("a websocket was ended")

// end tells both sides why the connection ends.
func (w *websocket) end(status uint16, why string) error {
	w.refuse(why)
	w.pass(closingFrame, append(binary.BigEndian.AppendUint16(nil, status), "claudebox: "+why...))
	return errEnded
}

// pass gives a whole message to Read, searched.
func (w *websocket) pass(kind byte, text []byte) {
	w.finder.clean(text)
	w.ready = append(w.ready[:0], lastFrame|kind)
	switch n := len(text); {
	case n <= mostControl:
		w.ready = append(w.ready, byte(n))
	case n < 1<<16:
		w.ready = binary.BigEndian.AppendUint16(append(w.ready, 126), uint16(n))
	default:
		w.ready = binary.BigEndian.AppendUint64(append(w.ready, 127), uint64(n))
	}
	w.ready = append(w.ready, text...)
}

// forget gives back the room for what is not kept any more.
func (w *websocket) forget() { w.kept.Add(-w.mine.Swap(0)) }

// Write writes to the server.
func (w *websocket) Write(p []byte) (int, error) { return w.from.Write(p) }

func (w *websocket) Close() error {
	w.forget() // Read may not be called again
	return w.from.Close()
}
