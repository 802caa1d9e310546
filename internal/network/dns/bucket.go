package dns

import (
	"sync"
	"time"
)

// bucket limits a rate by tokens, which come back by the second. It starts full.
type bucket struct {
	mu        *sync.Mutex
	perSecond float64 // tokens that come back
	most      float64 // tokens of a full bucket
	left      float64 // tokens in it at the time at
	at        time.Time
}

func newBucket(perSecond, most float64) bucket {
	return bucket{mu: new(sync.Mutex), perSecond: perSecond, most: most, left: most}
}

// take takes one token, and reports whether there was one.
func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.at.IsZero() {
		b.left = min(b.most, b.left+now.Sub(b.at).Seconds()*b.perSecond)
	}
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
