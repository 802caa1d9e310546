package nixdaemon

import (
	"cmp"
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
	// maxNotes and maxNote bound how many messages of one operation are kept, and how many bytes of each.
	maxNotes = 16
	maxNote  = 2 << 10
)

// request is one operation with its arguments.
type request struct {
	op     operation
	words  []string       // the arguments that the operation checks, see [operation]
	encode func(*encoder) // writes the arguments; nil: the arguments are the words, in order
	decode func(*decoder)
}

// do runs requests of one kind and returns the first error. The daemon works
// in order and goes on after an error, so every answer is read.
func (s *stream) do(ctx context.Context, requests []request) error {
	op := requests[0].op.does
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return explain(op, err)
	}
	var refused *DaemonError
	err := s.guard(ctx, func() error {
		for batch := range slices.Chunk(requests, pipeline) {
			first, err := s.exchange(batch)
			if refused == nil {
				refused = first
			}
			if err == nil && first != nil {
				err = s.settle()
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

// exchange writes a batch and reads its answers. It returns the daemon's first
// error, and separately what broke the stream.
func (s *stream) exchange(batch []request) (first *DaemonError, err error) {
	if !batch[0].op.slow {
		_ = s.conn.SetDeadline(time.Now().Add(cmp.Or(s.opts.AnswerTimeout, time.Minute)))
		defer func() { _ = s.conn.SetDeadline(time.Time{}) }()
	}
	for _, r := range batch {
		s.enc.uint(r.op.number)
		if r.encode != nil {
			r.encode(&s.enc)
			continue
		}
		for _, word := range r.words {
			s.enc.text(word)
		}
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	for _, r := range batch {
		refused, err := s.answer(r)
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
func (s *stream) answer(r request) (*DaemonError, error) {
	refused, err := s.drain()
	if err != nil || refused != nil {
		return refused, err
	}
	s.dec.cut = false
	r.decode(s.dec)
	if s.dec.cut && s.dec.err == nil {
		return &DaemonError{Message: fmt.Sprintf("the answer has more than %d parts", s.opts.List)}, nil
	}
	return nil, s.dec.err
}

// settle checks after an error that the stream is still in step. An error that
// the daemon met while it was still reading the request is sent twice before
// it hangs up, and looks like any other error. So settle sends a query for no paths:
// only an intact connection answers it with an empty list.
func (s *stream) settle() error {
	extra, err := s.exchange([]request{queryValid(nil, new([]string))})
	if extra != nil {
		return errOutOfTurn
	}
	return err
}

// drain reads messages up to the end of an operation. It returns nil, nil when the result
// follows, and otherwise the daemon's error or what broke the stream.
func (s *stream) drain() (*DaemonError, error) {
	s.notes = nil
	for s.dec.err == nil {
		switch tag := s.dec.uint(); {
		case s.dec.err != nil:
		case tag == tagLast:
			return nil, nil
		case tag == tagError:
			if message := decodeError(s.dec); s.dec.err == nil {
				return &DaemonError{message, notesFor(message, "", s.notes)}, nil
			}
		default:
			event := decodeEvent(s.dec, tag)
			if s.dec.err == nil && s.opts.Log != nil {
				s.opts.Log(event)
			}
			if message, ok := event.(Message); ok && s.dec.err == nil {
				s.note(message.Text)
			}
		}
	}
	return nil, s.dec.err
}

// note keeps a message, and drops the oldest beyond maxNotes: an error that follows shows them.
func (s *stream) note(text string) {
	if len(s.notes) == maxNotes {
		s.notes = slices.Delete(s.notes, 0, 1)
	}
	s.notes = append(s.notes, Plain(strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), maxNote)], ""))))
}

// notesFor returns the notes that help to understand message: those that name path, or all of them
// if none does; without those that only repeat the message.
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

// repeats reports whether note says nothing more than message. It compares words: daemons log
// a failure with an indentation, and with "error:" before it, which the message itself lacks.
func repeats(note, message string) bool {
	note, message = strings.Join(strings.Fields(note), " "), strings.Join(strings.Fields(message), " ")
	return strings.Contains(message, note) || message != "" && strings.Contains(note, message)
}
