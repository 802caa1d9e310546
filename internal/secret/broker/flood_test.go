package broker

import (
	"context"
	"encoding/json"
	"net"
	"sync/atomic"
	"testing"

	"claudebox/checks/kit/must"
)

// slowKeeper renews nothing until it is released.
type slowKeeper struct {
	release chan struct{}
	asked   *atomic.Int64
}

func (k slowKeeper) Renew(context.Context, string) error     { k.asked.Add(1); <-k.release; return nil }
func (k slowKeeper) Keep(Grant) error                        { return nil }
func (k slowKeeper) Forget()                                 {}
func (k slowKeeper) Report(Refusal)                          {}
func (k slowKeeper) Used(Use)                                {}
func (k slowKeeper) Judge(context.Context, Connection) error { return nil }

// Each request of an agent can ask for a renewal: they do not add up in claudebox.
func TestRenewalsAreNotAskedForWithoutBound(t *testing.T) {
	ours, theirs := net.Pipe()
	k := slowKeeper{make(chan struct{}), new(atomic.Int64)}
	ended := make(chan struct{})
	NewLine(ours, k, func() { close(ended) })
	out := json.NewEncoder(theirs)
	for i := range 5000 {
		must.Do(t, out.Encode(event{ID: i + 1, Renew: "x"}))
	}
	theirs.Close()
	<-ended
	if n := k.asked.Load(); n > 100 {
		t.Errorf("%d renewals wait at the same time", n)
	}
	close(k.release)
}
