package serve

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"claudebox/internal/network/policy"
)

// surroundings adds the NAT64 prefixes to what this machine is connected to. Only the resolvers of the machine's
// network know these prefixes.
type surroundings struct {
	tell func(policy.Host)                             // is called for each change
	ask  func(context.Context) ([]netip.Prefix, error) // asks the resolvers

	mu     sync.Mutex
	nat64  []netip.Prefix // the last answer of the resolvers
	cancel func()         // ends the questions for the previous host
}

// setHost calls tell twice for a new host: at once, with the previous prefixes and [policy.Host.Unsure], and when the
// resolvers have answered. It does not wait for the resolvers.
func (s *surroundings) setHost(h policy.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	h.NAT64, h.Unsure = s.nat64, true
	s.tell(h)
	go s.discover(ctx, h)
}

// Pauses between questions to the resolvers. Each pause is twice as long as the one before.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// discover asks the resolvers until they answer, or until the host changes again.
func (s *surroundings) discover(ctx context.Context, h policy.Host) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		prefixes, err := s.ask(ctx)
		if err == nil {
			s.setPrefixes(ctx, h, prefixes)
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (s *surroundings) setPrefixes(ctx context.Context, h policy.Host, prefixes []netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	s.nat64, h.NAT64, h.Unsure = prefixes, prefixes, false
	s.tell(h)
}
