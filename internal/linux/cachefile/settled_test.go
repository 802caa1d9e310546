package cachefile

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// TestAnEditInTheSameTickIsNotMissed: a file is read, and written once more before the kernel's clock goes on.
func TestAnEditInTheSameTickIsNotMissed(t *testing.T) {
	var st unix.Stat_t
	must.Do(t, unix.Stat("/", &st))
	changed := time.Unix(st.Ctim.Unix())
	later := settled(&st, changed.Add(time.Hour))
	if later != textOf(&st) {
		t.Errorf("got %q, want %q", later, textOf(&st))
	}
	for _, since := range []time.Duration{0, 10 * time.Millisecond, -time.Hour} { // at last the clock was put back
		if settled(&st, changed.Add(since)) == later {
			t.Errorf("%v after the change: the state is that of later", since)
		}
	}
	st.Ctim.Nsec = 0
	if whole := time.Unix(st.Ctim.Unix()); settled(&st, whole.Add(time.Second)) == textOf(&st) {
		t.Error("a second after a change on a file system that counts seconds: the state is that of later")
	}
}
