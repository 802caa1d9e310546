package launch

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"claudebox/checks/alone"
)

// Go ends a program that writes to a standard stream that nobody reads.
func TestAReaderWhoIsGoneEndsNothing(t *testing.T) {
	if !alone.In(t, nil) {
		return
	}
	Listen(Heeded()).caughtAll.Wait()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := syscall.Dup3(int(w.Fd()), 1, 0); err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
	if _, err := os.Stdout.WriteString("unheard"); err == nil {
		t.Error("it was heard")
	}
	// What is started is ended by it, as ever.
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	yes := exec.Command("yes")
	yes.Stdout = in
	if err := yes.Start(); err != nil {
		t.Fatal(err)
	}
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
