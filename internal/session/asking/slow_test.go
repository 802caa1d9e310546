package asking

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// The asker was told to ask more slowly where the answer was slow in the making.
func TestHowLongAnAnswerIsInTheMakingDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		s := &Server{Answers: Answers{Answer: func(string) string { time.Sleep(2 * askTime); return "yes" }}}
		done := make(chan bool)
		go func() { s.serve(theirs); close(done) }()
		if _, err := ours.Write([]byte("why\n")); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 8)
		if n, err := ours.Read(text); string(text[:n]) != "yes" {
			t.Errorf("it was answered %q, %v", text[:n], err)
		}
		<-done
	})
}
