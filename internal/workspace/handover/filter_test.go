package handover

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// Where no file can be opened any more, no box starts: it would have no filter of system calls. Other tests wait.
func TestABoxWithoutItsFilterDoesNotStart(t *testing.T) {
	var before unix.Rlimit
	must.Do(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	must.Do(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}))
	args, files := Tools{Seccomp: make([]byte, 8)}.box()
	must.Do(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	if i := slices.Index(args, "--seccomp"); i < 0 || args[i+1] != "-1" || len(files) > 0 {
		t.Errorf("%q, with %d files", args, len(files))
	}
}
