package serve

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"claudebox/internal/network/policy"
)

func TestTheHostIsUnsureUntilAResolverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := netip.MustParsePrefix("2001:db8:64::/96"), netip.MustParsePrefix("2001:db8:65::/96")
		var told []policy.Host
		failures, answer := 2, first
		s := surroundings{tell: func(h policy.Host) { told = append(told, h) }, cancel: func() {}}
		s.ask = func(context.Context) ([]netip.Prefix, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if failures--; failures >= 0 {
				return nil, errors.New("nobody is there")
			}
			return []netip.Prefix{answer}, nil
		}
		fail := func(times int, then netip.Prefix) {
			s.mu.Lock()
			defer s.mu.Unlock()
			failures, answer = times, then
		}
		want := func(when string, unsure bool, prefixes ...netip.Prefix) {
			t.Helper()
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if h := told[len(told)-1]; h.Unsure != unsure || !slices.Equal(h.NAT64, prefixes) {
				t.Errorf("%s: %+v", when, h)
			}
		}
		s.setHost(policy.Host{})
		want("at first", true)
		time.Sleep(firstPause)
		want("after another failure", true)
		time.Sleep(2 * firstPause)
		want("after an answer", false, first)
		fail(2, second)
		s.setHost(policy.Host{})
		want("in another network", true, first)
		fail(1, second)
		s.setHost(policy.Host{})
		want("in a third one", true, first)
		time.Sleep(firstPause)
		want("when it answers", false, second)
		time.Sleep(2 * longestPause)
		want("long afterwards", false, second)
		if s.mu.Lock(); len(told) != 5 {
			t.Errorf("it asks for a network of before: %+v", told)
		}
		s.mu.Unlock()
	})
}
