//go:build lab

package network_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// Whoever kills claudebox, at whatever moment, leaves no process, and no port
// that is taken.
func TestAKilledClaudeboxLeavesNothing(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	flags := append(u.allowing(t, "good.test"), "--publish", fmt.Sprint(target.ListenPort))
	succeed(t, u.session(t, "true", flags...)) // what is made once is there
	for range 40 {
		cmd := u.session(t, "sleep 1000", flags...)
		stdout, err := cmd.StdoutPipe()
		must.Do(t, err)
		must.Do(t, cmd.Start())
		time.Sleep(rand.N(25 * time.Millisecond)) // any moment; none is better than another
		cmd.Process.Kill()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			io.Copy(io.Discard, stdout) // ends when nobody is left who could write
		}()
		select {
		case <-gone:
		case <-time.After(patience):
			t.Fatal("somebody is left")
		}
		cmd.Wait()
		// The network helper hears of the end a moment later than the sandbox does.
		must.Await(t, "the port is free", func() bool { return w.IsFreeOnHost(t, fmt.Sprint(target.ListenPort), "127.0.0.1") })
	}
}

const (
	most = 64 << 10 // KiB that the network helper may take for a thousand connections
	each = 80 << 10 // bytes that come by each of them: held for all, they are more than that
)

func TestAThousandConnectionsAreHeld(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	u.trusting(t, site(t, w, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { io.WriteString(out, strings.Repeat("hello", each/5)) })))
	const script = `
import socket, ssl, sys, threading
context = ssl.create_default_context()
def connect(i):
    if i % 50 == 0: print(i, flush=True)
    return context.wrap_socket(socket.create_connection(("good.test", 443)), server_hostname="good.test")
held = [connect(i) for i in range(1000)]
print("held", flush=True)
sys.stdin.readline()
for s in held: s.sendall(b"GET / HTTP/1.0\r\nHost: good.test\r\n\r\n")
for s in held[:200]: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"); s.close()
def whole(s):
    last = b""
    while True:
        b = s.recv(65536)
        if not b: return last.endswith(b"hello")
        last = b
print(sum(whole(s) for s in held[200:]), flush=True)
sys.stdin.readline()
`
	flags := u.allowing(t, "good.test", "packages: [python3]")
	talk := converse(t, u.session(t, "ulimit -n 2048; exec python3 -c '"+script+"'", flags...))
	talk.wait(t, "held")
	helper := helperOf(t, talk.cmd.Process.Pid)
	t.Logf("the helper has had %d KiB with all connections idle", resident(t, helper))
	talk.say(t, "")
	talk.wait(t, "800")
	if kib := resident(t, helper); kib > most {
		t.Errorf("the helper has had %d KiB; want %d at most", kib, most)
	} else {
		t.Logf("the helper has had %d KiB", kib)
	}
	talk.say(t, "")
	talk.end(t)
}

// helperOf is the network helper of a claudebox.
func helperOf(t *testing.T, claudebox int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", claudebox, claudebox))
	must.Do(t, err)
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", claudebox))
	for _, name := range all {
		more, _ := os.ReadFile(name)
		text = append(append(text, ' '), more...)
	}
	for _, word := range strings.Fields(string(text)) {
		name, _ := os.ReadFile("/proc/" + word + "/comm")
		if strings.HasPrefix(string(name), "claudebox-netwo") {
			pid, _ := strconv.Atoi(word)
			return pid
		}
	}
	t.Fatalf("%d has no helper among its children %s", claudebox, text)
	return 0
}

// resident is the most memory that a process has had, in KiB.
func resident(t *testing.T, pid int) (kib int) {
	t.Helper()
	text := must.Read(t, fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(text, "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
