package nixdaemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// pipeline is how many requests go out before the first answer is read:
	// few enough that neither side ever blocks on a full socket.
	pipeline = 64
	// maxNotes and maxNote bound what is kept of the log of one operation.
	maxNotes = 16
	maxNote  = 2 << 10
)

// request is one operation with its arguments.
type request struct {
	op     operation
	slow   bool // builds or fetches: no time limit but the caller's
	encode func(*encoder)
	decode func(*decoder)
}

// do runs requests of one kind and gives the first error. The daemon works
// in order and goes on after an error, so every answer is read.
func (c *Client) do(ctx context.Context, requests ...request) error {
	if len(requests) == 0 {
		return nil
	}
	op := requests[0].op.does
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ready(); err != nil {
		return explain(op, err)
	}
	var refused *DaemonError
	err := c.guard(ctx, func() error {
		for batch := range slices.Chunk(requests, pipeline) {
			first, err := c.exchange(batch)
			if refused == nil {
				refused = first
			}
			if err == nil && first != nil {
				err = c.settle()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if refused != nil && ctx.Err() == nil {
		return explain(op, refused) // it says more than how the connection ended after it
	}
	return explain(op, err)
}

// exchange writes a batch and reads its answers. It gives the daemon's first
// error, and what broke the stream.
func (c *Client) exchange(batch []request) (first *DaemonError, err error) {
	if !batch[0].slow {
		_ = c.conn.SetDeadline(time.Now().Add(c.opts.AnswerTimeout))
		defer func() { _ = c.conn.SetDeadline(time.Time{}) }()
	}
	for _, r := range batch {
		c.enc.uint(r.op.number)
		r.encode(&c.enc)
	}
	if err := c.flush(); err != nil {
		return nil, err
	}
	for _, r := range batch {
		refused, err := c.answer(r)
		if first == nil {
			first = refused
		}
		if err != nil {
			return first, err
		}
	}
	return first, nil
}

// answer reads the answer to one request.
func (c *Client) answer(r request) (*DaemonError, error) {
	refused, err := c.drain()
	if err != nil || refused != nil {
		return refused, err
	}
	c.dec.cut = false
	r.decode(c.dec)
	if c.dec.cut && c.dec.err == nil {
		return &DaemonError{Message: fmt.Sprintf("the answer has more than %d parts", c.opts.List)}, nil
	}
	return nil, c.dec.err
}

// settle makes sure after an error that the stream is in step. An error that
// the daemon met while it was still reading the request is sent twice before
// it hangs up, and looks like any other: so ask for nothing, which only an
// intact connection answers with nothing.
func (c *Client) settle() error {
	again, err := c.exchange([]request{queryValid(nil, new([]string))})
	if again != nil {
		return errOutOfTurn
	}
	return err
}

// drain reads messages up to the end of an operation: nil when its reply
// follows, or the daemon's error.
func (c *Client) drain() (*DaemonError, error) {
	c.notes = nil
	for c.dec.err == nil {
		switch tag := c.dec.uint(); {
		case c.dec.err != nil:
		case tag == tagLast:
			return nil, nil
		case tag == tagError:
			if message := decodeError(c.dec); c.dec.err == nil {
				return &DaemonError{message, notesFor(message, "", c.notes)}, nil
			}
		default:
			event := decodeEvent(c.dec, tag)
			if c.dec.err == nil && c.opts.Log != nil {
				c.opts.Log(event)
			}
			if message, is := event.(Message); is && c.dec.err == nil {
				c.note(message.Text)
			}
		}
	}
	return nil, c.dec.err
}

// note keeps the last messages for an error to come.
func (c *Client) note(text string) {
	if len(c.notes) == maxNotes {
		c.notes = slices.Delete(c.notes, 0, 1)
	}
	c.notes = append(c.notes, Plain(strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), maxNote)], ""))))
}

// notesFor picks what helps to understand message: the notes that name path
// when there are such, without those that only repeat the message.
func notesFor(message, path string, notes []string) []string {
	names := func(n string) bool { return strings.Contains(n, path) }
	anyway := !slices.ContainsFunc(notes, names)
	var useful []string
	for _, n := range notes {
		if (anyway || names(n)) && !repeats(n, message) {
			useful = append(useful, n)
		}
	}
	return useful
}

// repeats compares words: daemons log a failure with an indentation, and
// "error:" before it, that the message itself lacks.
func repeats(note, message string) bool {
	note, message = strings.Join(strings.Fields(note), " "), strings.Join(strings.Fields(message), " ")
	return strings.Contains(message, note) || message != "" && strings.Contains(note, message)
}

// operation is one of the worker's.
type operation struct {
	number uint64
	does   string // for errors
}

var (
	isValidPath           = operation{1, "ask the Nix daemon for valid paths"}
	queryReferrers        = operation{6, "ask the Nix daemon for referrers"}
	addToStore            = operation{7, "add a file to the Nix store"}
	addTempRoot           = operation{11, "keep store paths from the garbage collector"}
	addIndirectRoot       = operation{12, "register a garbage collector root"}
	queryPathInfo         = operation{26, "ask the Nix daemon about store paths"}
	queryValidPaths       = operation{31, "ask the Nix daemon for valid paths"}
	queryValidDerivers    = operation{33, "ask the Nix daemon for derivers"}
	queryMissing          = operation{40, "ask the Nix daemon what is missing"}
	buildPathsWithResults = operation{46, "fetch or build store paths"}
)
