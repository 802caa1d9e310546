package selfpipe_test

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/selfpipe"
)

func catch(t *testing.T, signals ...syscall.Signal) *selfpipe.Pipe {
	t.Helper()
	p, err := selfpipe.Catch(signals...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSignalsComeInTheirOrderAndOnlyOnce(t *testing.T) {
	p := catch(t, syscall.SIGUSR1, syscall.SIGUSR2)
	for p.Next() != 0 { // of another test
		continue
	}
	for range 1000 {
		for _, want := range []syscall.Signal{syscall.SIGUSR2, syscall.SIGUSR1} {
			if err := syscall.Kill(os.Getpid(), want); err != nil {
				t.Fatal(err)
			}
			if ready, err := p.Wait(-1, 0, -1); ready || err != nil {
				t.Fatal("no file was ready: ", ready, err)
			}
			if got := p.Next(); got != want {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	}
	if got := p.Next(); got != 0 {
		t.Errorf("there is one more: %v", got)
	}
}

// The handler runs on whatever thread the kernel picks, in the middle of
// whatever it does.
func TestBusyThreadsAreNotHurt(t *testing.T) {
	p := catch(t, syscall.SIGUSR1)
	var all sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if got := sum(make([]int, 100), 1000); got != 499500 {
					t.Errorf("1 to 1000 is %d", got)
					return
				}
				runtime.GC()
			}
		})
	}
	const sent = 2000
	for range sent {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
		for p.Next() != 0 {
			continue
		}
	}
	close(over)
	all.Wait()
}

// sum grows the stack while it counts.
func sum(_ []int, n int) int {
	if n == 0 {
		return 0
	}
	return n - 1 + sum(nil, n-1)
}

func TestAFileAndASignalEachEndTheWait(t *testing.T) {
	p := catch(t, syscall.SIGUSR1)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if ready, err := p.Wait(int(r.Fd()), unix.POLLIN, 1); ready || err != nil {
		t.Error("nothing came, but: ", ready, err)
	}
	w.Close()
	if ready, err := p.Wait(int(r.Fd()), unix.POLLIN, -1); !ready || err != nil {
		t.Error("the end of the file was not told of: ", ready, err)
	}
	var none *selfpipe.Pipe
	if ready, err := none.Wait(int(r.Fd()), unix.POLLIN, -1); !ready || err != nil || none.Next() != 0 {
		t.Error("no pipe: ", ready, err)
	}
}

// Go ends a program that writes to a standard stream that nobody reads.
func TestAReaderWhoIsGoneEndsNothing(t *testing.T) {
	if os.Getenv("SELFPIPE_CHILD") != "" {
		if _, err := selfpipe.Catch(syscall.SIGPIPE); err != nil {
			os.Exit(3)
		}
		_, err := os.Stdout.WriteString("unheard")
		if err == nil {
			os.Exit(4)
		}
		// What is started has its own: yes(1) is ended by it.
		out, in, _ := os.Pipe()
		yes := exec.Command("yes")
		yes.Stdout = in
		if yes.Start() != nil {
			os.Exit(5)
		}
		in.Close()
		out.Close()
		_ = yes.Wait()
		if yes.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
			os.Exit(6)
		}
		os.Exit(0)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	self := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	self.Env, self.Stdout = append(os.Environ(), "SELFPIPE_CHILD=1"), w
	if err := self.Run(); err != nil {
		t.Error(err)
	}
}

func TestWhatASignalDidIsGivenBack(t *testing.T) {
	catch(t, syscall.SIGUSR1)
	ours, err := selfpipe.Set(syscall.SIGUSR1, selfpipe.Action{})
	if err != nil || ours == (selfpipe.Action{}) {
		t.Fatalf("it did %v, %v", ours, err)
	}
	if usual, err := selfpipe.Set(syscall.SIGUSR1, ours); err != nil || usual != (selfpipe.Action{}) {
		t.Errorf("it did %v, %v", usual, err)
	}
	if _, err := selfpipe.Set(syscall.SIGKILL, ours); err == nil {
		t.Error("SIGKILL can be caught")
	}
}
