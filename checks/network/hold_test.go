//go:build lab

package network_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"claudebox/checks/network/target"
	"claudebox/checks/network/world"
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
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
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
		for _, l := range w.ListenOnHost(t, fmt.Sprint(target.ListenPort), "127.0.0.1") {
			l.Close()
		}
	}
}

// most is what claudebox may take for a thousand connections, in KiB.
const most = 64 << 10

func TestAThousandConnectionsAreHeld(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	u.trusting(t, site(t, w, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { io.WriteString(out, "hello") })))
	const script = `
import socket, ssl, sys
context = ssl.create_default_context()
def connect():
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(b"CONNECT good.test:443 HTTP/1.1\r\n\r\n")
    if not s.recv(100).startswith(b"HTTP/1.1 200"): raise Exception("refused")
    return context.wrap_socket(s, server_hostname="good.test")
held = [connect() for _ in range(1000)]
print("held", flush=True)
sys.stdin.readline()
for s in held: s.sendall(b"GET / HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n")
print(sum(s.recv(1000).endswith(b"hello") for s in held), flush=True)
`
	flags := u.allowing(t, "good.test", "packages: [python3]")
	talk := converse(t, u.session(t, "ulimit -n 2048; exec python3 -c '"+script+"'", flags...))
	talk.wait(t, "held")
	if kib := resident(t, talk.cmd.Process.Pid); kib > most {
		t.Errorf("claudebox has %d KiB; want %d at most", kib, most)
	} else {
		t.Logf("claudebox has %d KiB", kib)
	}
	talk.say(t, "")
	talk.wait(t, "1000")
	talk.end(t)
}

// resident is the memory of a process, in KiB.
func resident(t *testing.T, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
