package proctree_test

import (
	"os"
	"syscall"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/proctree"
)

// Where no file can be opened, nothing counts as gone: whoever waits until all have stopped waits on.
func TestWithoutFilesNothingCountsAsGone(t *testing.T) {
	if _, whole := proctree.Whole(os.Getpid()); !whole {
		t.Error("the list is not whole")
	}
	var limit syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, whole := proctree.Whole(os.Getpid())
	state, _ := proctree.State(os.Getpid())
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if whole || state != proctree.Unknown {
		t.Errorf("whole %t, state %c", whole, state)
	}
	const never = 1 << 30
	if _, whole := proctree.Whole(never); !whole {
		t.Error("nobody there: not whole")
	}
	if state, _ := proctree.State(never); state != proctree.Gone {
		t.Errorf("state %c", state)
	}
}
