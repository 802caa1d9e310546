package serve

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"claudebox/internal/network/policy"
)

// surroundings are what the machine is connected to, with the NAT64 prefixes of
// its network, which only its resolvers know.
type surroundings struct {
	moved func(policy.Host)
	ask   func(context.Context) ([]netip.Prefix, error)

	mu     sync.Mutex
	nat64  []netip.Prefix // as last answered
	cancel func()         // ends the asking for the host of before
}

// changed tells moved of a host at once, which is [policy.Host.Unsure] with the
// prefixes of before, and again when the resolvers have answered. It does not
// wait for them.
func (s *surroundings) changed(h policy.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	h.NAT64, h.Unsure = s.nat64, true
	s.moved(h)
	go s.discover(ctx, h)
}

// Pauses between questions that nobody has answered.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// discover asks until there is an answer, or another host.
func (s *surroundings) discover(ctx context.Context, h policy.Host) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		prefixes, err := s.ask(ctx)
		if err == nil {
			s.answered(ctx, h, prefixes)
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (s *surroundings) answered(ctx context.Context, h policy.Host, prefixes []netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	s.nat64, h.NAT64, h.Unsure = prefixes, prefixes, false
	s.moved(h)
}
