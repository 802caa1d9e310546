package login

import (
	"context"
	"errors"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/secret/broker"
)

// The token's server accepts and never answers: the end of the session would wait for it, and Claude Code's lock.
func TestARenewalDoesNotWaitForEver(t *testing.T) {
	w := newWorld(t, numbered(1))
	bounded := false
	g, err := NewGuard(w.path("a"), w.path(hostFile), broker.NewKey(),
		func(ctx context.Context, _ []byte) (int, []byte, error) {
			_, bounded = ctx.Deadline()
			return 0, nil, errors.New("no answer")
		})
	must.Do(t, err)
	defer g.Close()
	if err := g.Renew(context.Background(), "a1"); err == nil || !bounded {
		t.Errorf("renewed: %v, with a deadline: %t", err, bounded)
	}
}

// After its end the guard's folder has a descriptor's number only, and that may be another folder's.
func TestNothingIsKeptAfterTheEnd(t *testing.T) {
	w := newWorld(t, numbered(1))
	g, err := NewGuard(w.path("a"), w.path(hostFile), broker.NewKey(),
		func(context.Context, []byte) (int, []byte, error) { return 0, nil, errors.New("no answer") })
	must.Do(t, err)
	g.Close()
	folder := t.TempDir()
	for range 3 {
		other, err := beneath.Open(folder)
		must.Do(t, err)
		defer other.Close()
	}
	err = g.Keep(broker.Grant{Access: "TOKEN", Refresh: "REFRESH", Expires: time.Now().Add(time.Hour)})
	at, failed := beneath.Open(folder)
	must.Do(t, failed)
	defer at.Close()
	if what, _ := at.Look(MadeName); err == nil || what.Kind != beneath.Absent {
		t.Errorf("kept after the end: %v, %v", err, what.Kind)
	}
}
