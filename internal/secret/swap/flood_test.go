package swap

import (
	"net/http"
	"strings"
	"testing"
)

// An agent that sends requests without end, or with heads without end, cannot fill the broker's memory.
func TestRequestsBeyondTheRoomAreRefused(t *testing.T) {
	w := newWorld(t)
	get := func(more ...string) int {
		headers := append([]string{"Authorization", "Bearer " + w.placeholder("GH_TOKEN")}, more...)
		status, _, _ := w.send("GET", "https://api.github.com/repos", "", headers...)
		return status
	}
	if status := get("X-Long", strings.Repeat("x", 2*maxHeader)); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long head: status %d", status)
	}
	for range together {
		w.broker.room <- struct{}{}
	}
	if status := get(); status != http.StatusServiceUnavailable {
		t.Errorf("one request too many: status %d", status)
	}
	if said := w.keeper.said(); !strings.Contains(said, "beside more than 256") {
		t.Errorf("told %s", said)
	}
	<-w.broker.room
	if status := get(); status != http.StatusOK {
		t.Errorf("with room: status %d", status)
	}
}
