package launch

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"claudebox/checks/kit/alone"
	"claudebox/checks/kit/must"
)

// Go ends a program that writes to a standard stream that nobody reads.
func TestAReaderWhoIsGoneEndsNothing(t *testing.T) {
	if !alone.In(t, nil) {
		return
	}
	Listen(Heeded()).caughtAll.Wait()
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	must.Do(t, syscall.Dup3(int(w.Fd()), 1, 0))
	r.Close()
	w.Close()
	if _, err := os.Stdout.WriteString("unheard"); err == nil {
		t.Error("it was heard")
	}
	// What is started is ended by it, as ever.
	out, in, err := os.Pipe()
	must.Do(t, err)
	yes := exec.Command("yes")
	yes.Stdout = in
	must.Do(t, yes.Start())
	in.Close()
	out.Close()
	_ = yes.Wait()
	if got := yes.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGPIPE {
		t.Errorf("yes ended by %v", got)
	}
	if err := syscall.Dup3(2, 1, 0); err != nil { // go test waits for what comes there
		t.Fatal(err)
	}
}

func TestWhatASignalDidIsGivenBack(t *testing.T) {
	Listen(Heeded()).caughtAll.Wait()
	ours, err := setAction(syscall.SIGTSTP, action{})
	if err != nil || ours == (action{}) {
		t.Fatalf("it did %v, %v", ours, err)
	}
	if usual, err := setAction(syscall.SIGTSTP, ours); err != nil || usual != (action{}) {
		t.Errorf("it did %v, %v", usual, err)
	}
	if _, err := setAction(syscall.SIGKILL, ours); err == nil {
		t.Error("SIGKILL can be caught")
	}
}

// Ctrl-C while the session is prepared: bwrap is not started, and the status is the signal's.
func TestCtrlCBeforeTheStartEndsTheLaunch(t *testing.T) {
	sig := &Signals{signals: make(chan os.Signal, 2)}
	if err := sig.Interrupted(); err != nil {
		t.Errorf("without a signal: %v", err)
	}
	sig.signals <- syscall.SIGTSTP
	if err := sig.Interrupted(); err != nil || len(sig.signals) != 1 {
		t.Errorf("after Ctrl-Z: %v, %d signals left for the sandbox", err, len(sig.signals))
	}
	sig.signals <- syscall.SIGINT
	r := Runner{Signals: sig, Launch: Launch{Setting: Setting{Bwrap: "/nowhere/bwrap"}, Tier: "full"}}
	r.Before, r.Laid = func() error { return nil }, func(int) error { return nil }
	var status *ExitError
	if err := r.Run(); !errors.As(err, &status) || status.Code != 130 {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

// A launch that begins anew met signals that nothing caught: Ctrl-Z left its agent at work, unwatched.
func TestALaunchThatBeginsAnewCatchesItsSignals(t *testing.T) {
	if !alone.In(t, nil) {
		return
	}
	heeded := Heeded() // without what is ignored, as nohup has it
	first := Listen(heeded)
	first.caughtAll.Wait()
	first.forwardTo(0)
	first.stop()
	first.Release()
	again := Listen(heeded)
	again.caughtAll.Wait()
	for _, s := range slices.Concat(heeded, first.pauses) {
		syscall.Kill(os.Getpid(), s)
		if got := <-again.signals; got != s {
			t.Errorf("%v came, not %v", got, s)
		}
	}
}

// A question after the session could not be left by Ctrl-C.
func TestCtrlCEndsClaudeboxAfterTheSession(t *testing.T) {
	if os.Getenv("CLAUDEBOX_TEST_RELEASED") != "" {
		sig := Listen(Heeded())
		sig.Release()
		syscall.Kill(os.Getpid(), syscall.SIGINT)
		<-make(chan int)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.timeout=20s")
	cmd.Env = append(os.Environ(), "CLAUDEBOX_TEST_RELEASED=1")
	_ = cmd.Run()
	if got := cmd.ProcessState.Sys().(syscall.WaitStatus); got.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %d, by %v", got.ExitStatus(), got.Signal())
	}
}
