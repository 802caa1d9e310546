package stack

import (
	"sync"
	"sync/atomic"

	"claudebox/internal/network/flow"
)

// openFlow is a connection that is being dialled or copied. Its flow has the dialled address as soon
// as that is known. The flow is zero if the connection does not lead outside: a DNS query, or a
// connection to a published port.
type openFlow struct {
	flow           flow.Flow
	sent, received atomic.Int64
	end            func() // resets the connection; may be called more than once
}

// flows is a set of open flows.
type flows struct {
	mu   *sync.Mutex
	open map[*openFlow]struct{}
}

func newFlows() flows { return flows{mu: new(sync.Mutex), open: map[*openFlow]struct{}{}} }

// add adds a flow. It returns false, and adds nothing, if there are too many.
func (f flows) add(o *openFlow) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) >= mostTCP {
		return false
	}
	f.open[o] = struct{}{}
	return true
}

// replace puts a flow that has been dialled in the place of the flow that was pending.
func (f flows) replace(pending, dialled *openFlow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, pending)
	f.open[dialled] = struct{}{}
}

func (f flows) remove(o *openFlow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, o)
}

func (f flows) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open)
}

func (f flows) all() []*openFlow {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*openFlow, 0, len(f.open))
	for o := range f.open {
		list = append(list, o)
	}
	return list
}

// journalled is the set of flows whose beginning is in the journal, and whose end is not yet.
type journalled struct {
	mu       sync.Mutex
	list     map[*openFlow]struct{}
	finished bool // no more flows are added, see [Stack.Finish]
}

// noteOpened tells the journal that a flow has been dialled.
func (s *Stack) noteOpened(o *openFlow) {
	s.journalled.mu.Lock()
	defer s.journalled.mu.Unlock()
	if s.journalled.finished {
		return
	}
	s.journalled.list[o] = struct{}{}
	s.Journal.Opened(o.flow)
}

// noteClosed tells the journal of a flow's end, once.
func (s *Stack) noteClosed(o *openFlow) {
	s.journalled.mu.Lock()
	defer s.journalled.mu.Unlock()
	if _, known := s.journalled.list[o]; known {
		s.noteEnd(o)
	}
}

// noteEnd is noteClosed for a flow in s.journalled, which must be locked.
func (s *Stack) noteEnd(o *openFlow) {
	delete(s.journalled.list, o)
	s.Journal.Closed(o.flow, o.sent.Load(), o.received.Load())
}

// Finish tells the journal that all open flows have ended, as the session is over. It is told of no flow
// after that.
func (s *Stack) Finish() {
	s.journalled.mu.Lock()
	defer s.journalled.mu.Unlock()
	s.journalled.finished = true
	for o := range s.journalled.list {
		s.noteEnd(o)
	}
}
