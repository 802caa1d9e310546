//go:build lab

package swap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/alone"
	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/linux/accept"
	"claudebox/internal/secret/broker"
)

// This program is the broker's process, too.
func TestMain(m *testing.M) {
	if os.Args[0] == broker.Name {
		_ = Run()
		return
	}
	if alone.LinkedWithC() {
		os.Exit(alone.WithoutC())
	}
	os.Exit(m.Run())
}

// company is a proxy that leads to the upstream, whatever host is asked for.
func (w *world) company() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(w.t, err)
	w.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				r := bufio.NewReader(c)
				asked, err := http.ReadRequest(r)
				if err != nil || asked.Method != http.MethodConnect {
					c.Close()
					return
				}
				server, err := net.Dial("tcp", w.upstream.Listener.Addr().String())
				if err != nil {
					c.Close()
					return
				}
				fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
				accept.Join(early{c, r}, server)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// process is a broker in a process of its own, and a client of its proxy.
func (w *world) process() (*broker.Process, *http.Client) {
	w.t.Helper()
	listener, port, err := broker.Listen()
	must.Do(w.t, err)
	hello := broker.Hello{Config: w.config, Password: "password", Proxies: broker.Proxies{HTTPS: w.company()}}
	p, err := broker.Start("/proc/self/exe", listener, hello, w.keeper)
	must.Do(w.t, err)
	w.t.Cleanup(p.Close)
	return p, w.clientThrough(w.t, fmt.Sprintf("http://claudebox:password@127.0.0.1:%d", port))
}

func TestAProcessOfItsOwnServes(t *testing.T) {
	w := newWorld(t)
	p, client := w.process()
	get := func(secret string) string {
		r, err := http.NewRequest("GET", api+"/v1/models", nil)
		must.Do(t, err)
		r.Header.Set("Authorization", "Bearer "+secret)
		in, err := client.Do(r)
		must.Do(t, err)
		defer in.Body.Close()
		body, err := io.ReadAll(in.Body)
		must.Do(t, err)
		if canaryIn(string(body)) {
			t.Errorf("a secret came back: %s", body)
		}
		return w.last().Header.Get("Authorization")
	}
	login := w.placeholder(broker.ClaudeLogin)
	if got := get(login); got != "Bearer "+trueAccess {
		t.Errorf("upstream got %q", got)
	}
	p.SetLogin("sk-ant-oat01-CANARYnext", "")
	must.Await(t, "the new login is used", func() bool { return get(login) == "Bearer sk-ant-oat01-CANARYnext" })
	// A running client trusts no new authority: the next process has the old one.
	first := p.Running()
	must.Do(t, first.Kill())
	client.CloseIdleConnections()
	must.Await(t, "its end is noticed", func() bool { return p.Running() != first })
	if got := get(login); got != "Bearer sk-ant-oat01-CANARYnext" {
		t.Errorf("upstream got %q", got)
	}
	get(w.placeholder("GH_TOKEN"))
	must.Await(t, "a refusal is told", func() bool { return strings.Contains(w.keeper.said(), "GH_TOKEN") })
}

// Whoever takes the process over has the network, and nothing else of the host.
func TestTheProcessIsConfined(t *testing.T) {
	w := newWorld(t)
	p, client := w.process()
	in, err := client.Get(api + "/echo")
	must.Do(t, err)
	in.Body.Close()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Running().Pid))
	must.Do(t, err)
	expect.Contains(t, string(status), "NoNewPrivs:\t1", "Seccomp:\t2")
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.Running().Pid))
	if !errors.Is(err, fs.ErrPermission) && (err != nil || len(environ) > 0) {
		t.Errorf("environment %q, %v", environ, err)
	}
}
