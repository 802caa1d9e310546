package launch

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/spawn"
)

// The limit counts what is in the namespace, not what else this user runs.
func TestProcessesAreLimitedInTheNamespace(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("NOT RUN: needs a user who is not root")
	}
	const limit, tries = 20, 40
	if last := howMany(t, limit, tries); last < limit/2 || last >= limit {
		t.Errorf("with a limit of %d, %d were started", limit, last)
	}
	if last := howMany(t, 0, tries); last != tries {
		t.Errorf("without one, %d were started", last)
	}
}

// howMany is how many processes one can start, of so many that it tries, when
// it and its first child are limited while they wait.
func howMany(t *testing.T, limit uint64, tries int) (last int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	hold, let, err := os.Pipe()
	must.Do(t, err)
	said, say, err := os.Pipe()
	must.Do(t, err)
	defer said.Close()
	script := fmt.Sprintf(`PATH='%s'; (echo 0; read x; for n in $(seq %d); do sleep 60 >&2 & echo $n; done) 2>/dev/null; true`, os.Getenv("PATH"), tries)
	pid, err := spawn.Start(spawn.Program{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Files: []int{int(hold.Fd()), int(say.Fd()), 2}, PIDs: true,
	})
	hold.Close()
	say.Close()
	must.Do(t, err)
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Fatal(err)
		}
		if last == 0 {
			if err := setLimit(proctree.All(pid), unix.RLIMIT_NPROC, limit); err != nil {
				t.Error(err)
			}
			let.Close()
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	return last
}
