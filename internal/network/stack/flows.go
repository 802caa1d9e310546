package stack

import (
	"sync"
	"sync/atomic"
	"time"

	"claudebox/internal/network/flow"
)

// open is a connection that is being dialled or copied. Its flow has the address
// that was dialled, as soon as that is known. The zero flow is of what leads to
// nobody outside: a question for names, or what comes in by a published port.
type open struct {
	flow           flow.Flow
	sent, received atomic.Int64
	end            func() // breaks it off; may be called more than once

	seen int64 // bytes at the last sweep
	idle int   // sweeps since it changed
}

// flows are those that are open.
type flows struct {
	mu   *sync.Mutex
	open map[*open]struct{}
}

func newFlows() flows { return flows{mu: new(sync.Mutex), open: map[*open]struct{}{}} }

// add takes a flow in. It is false when there are too many.
func (f flows) add(o *open) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) >= mostTCP {
		return false
	}
	f.open[o] = struct{}{}
	return true
}

// replace counts a flow that has been dialled in the place of what was pending.
func (f flows) replace(pending, dialled *open) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, pending)
	f.open[dialled] = struct{}{}
}

func (f flows) remove(o *open) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, o)
}

func (f flows) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open)
}

func (f flows) all() []*open {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*open, 0, len(f.open))
	for o := range f.open {
		list = append(list, o)
	}
	return list
}

// noted are the flows whose beginning the journal knows of, and not their end.
type noted struct {
	mu   sync.Mutex
	list map[*open]struct{}
	over bool // nothing is noted any more
}

// begun notes that a flow has been dialled.
func (s *Stack) begun(o *open) {
	s.noted.mu.Lock()
	defer s.noted.mu.Unlock()
	if s.noted.over {
		return
	}
	s.noted.list[o] = struct{}{}
	s.Journal.Opened(o.flow)
}

// over notes a flow's end, once.
func (s *Stack) over(o *open) {
	s.noted.mu.Lock()
	defer s.noted.mu.Unlock()
	if _, known := s.noted.list[o]; known {
		s.end(o)
	}
}

func (s *Stack) end(o *open) {
	delete(s.noted.list, o)
	s.Journal.Closed(o.flow, o.sent.Load(), o.received.Load())
}

// Finish notes the end of all that is still open: the session is over. What is
// dialled by then and not yet noted never is.
func (s *Stack) Finish() {
	s.noted.mu.Lock()
	defer s.noted.mu.Unlock()
	s.noted.over = true
	for o := range s.noted.list {
		s.end(o)
	}
}

// Sweeps end what nothing was heard of for long: a connection is kept for two
// hours, as Linux keeps one before it asks whether somebody is there.
const (
	sweepEvery = 10 * time.Minute
	sweepsKept = 12
)

// sweep ends the connections that were idle for so many sweeps.
func (f flows) sweep(kept int) {
	for _, o := range f.all() {
		if now := o.sent.Load() + o.received.Load(); now != o.seen {
			o.seen, o.idle = now, 0
			continue
		}
		if o.idle++; o.idle > kept {
			o.end()
		}
	}
}

// Sweep ends idle connections from time to time, as long as the stack lives.
func (s *Stack) Sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.flows.sweep(sweepsKept)
		case <-s.ctx.Done():
			return
		}
	}
}
