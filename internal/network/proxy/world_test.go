package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"claudebox/internal/network/hostpattern"
)

// patience bounds what must come; no test measures time.
const patience = 10 * time.Second

// world is a proxy with servers behind it. Names lead to them without being
// resolved.
type world struct {
	t       *testing.T
	address string
	journal *Journal
	log     *strings.Builder

	mu      sync.Mutex
	servers map[string]string // target → address
	reached []string          // targets, in order
}

func newWorld(t *testing.T, allow ...string) *world {
	t.Helper()
	list, err := hostpattern.ParseList(allow)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, log: &strings.Builder{}, servers: map[string]string{}}
	w.journal = NewJournal(w.log, func() time.Time { return time.Unix(0, 0) })
	p := New(list, w.journal)
	p.dial = w.dial
	l := listen(t)
	w.address = l.Addr().String()
	go p.Serve(l)
	return w
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (w *world) dial(_ context.Context, to target) (*net.TCPConn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reached = append(w.reached, to.String())
	address, known := w.servers[to.String()]
	if !known {
		return nil, &failure{to, errors.New("nobody is there")}
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// serve gives a target a server that says hello and what it was asked for.
func (w *world) serve(to string) *http.Server {
	return w.handle(to, func(out http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		fmt.Fprintf(out, "%s %s of %s with %q, close %t", r.Method, r.URL, r.Host, content, r.Close)
	})
}

func (w *world) handle(to string, f http.HandlerFunc) *http.Server {
	l := listen(w.t)
	s := &http.Server{Handler: f}
	go s.Serve(l)
	w.lead(to, l.Addr().String())
	return s
}

func (w *world) lead(to, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[to] = address
}

// record leads a target to a server that keeps all that it is sent, and
// answers nothing.
func (w *world) record(to string) (sent func() string) {
	l := listen(w.t)
	w.lead(to, l.Addr().String())
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		got <- string(text)
	}()
	return func() string {
		select {
		case text := <-got:
			return text
		case <-time.After(patience):
			w.t.Error("the server waits for the end")
			return ""
		}
	}
}

// open connects to the proxy and sends.
func (w *world) open(text string) *net.TCPConn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// say sends, and returns all that is answered. The client says that it is
// done, as some do.
func (w *world) say(text string) string {
	w.t.Helper()
	conn := w.open(text)
	got, err := io.ReadAll(conn)
	if err != nil && len(got) == 0 {
		return err.Error()
	}
	return string(got)
}

// tunnel opens one and returns it when it stands.
func (w *world) tunnel(to string) (*net.TCPConn, *bufio.Reader) {
	w.t.Helper()
	conn := w.open("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
	if err != nil || resp.StatusCode != 200 {
		w.t.Fatalf("tunnel to %s: %v, %v", to, resp, err)
	}
	return conn, r
}

// wantRefused is the fate of what must not pass: the status, nobody reached,
// and the user told.
func (w *world) wantRefused(answer, status, told string) {
	w.t.Helper()
	if !strings.HasPrefix(answer, "HTTP/1.1 "+status) {
		w.t.Errorf("answered %q, want status %s", answer, status)
	}
	w.wantTold(told)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.reached) > 0 {
		w.t.Errorf("it reached %q", w.reached)
	}
}

func (w *world) wantTold(told string) {
	w.t.Helper()
	if got := w.journal.Summary(); !strings.Contains(got, told) || got == "" {
		w.t.Errorf("the user is told %q, want %q", got, told)
	}
}
