//go:build lab

package network_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// A port that is published is the host's alone, on its loopback.
func TestAPublishedPortLeadsInsideFromTheHostOnly(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"inet", "allow", "none"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			u := newUser(t, w)
			flags := append(u.in(t, tier, ""), "--publish", fmt.Sprint(target.ListenPort))
			talk := converse(t, u.probing(t, []string{"listen"}, flags...))
			talk.wait(t, "listening")
			want := []string{"host tcp 127.0.0.1", "host tcp ::1"}
			if got := reachable(w); !slices.Equal(got, want) {
				t.Errorf("reached %q; want %q", got, want)
			}
			talk.end(t)
		})
	}
}

func TestAServiceOfTheHostThatTheProfileNames(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"inet", "allow"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, world.New(t))
			script := `curl -sS http://127.0.0.1:8080/; curl -sS --noproxy '*' --max-time 5 http://192.168.77.10:8080/ 2>/dev/null || echo no other`
			wantEqual(t, succeed(t, u.session(t, script, u.in(t, tier, fmt.Sprintf("ports: {out: [%d]}", target.HostPort))...)),
				"host loopback\nno other\n")
		})
	}
}

// What the user's profile excepts is reached, and nothing beside it.
func TestAnExceptionOpensOneHostOfTheLAN(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	script := `for at in 192.168.77.2:80 192.168.77.1:80 192.168.77.10:8080 10.1.2.3:80; do curl -sS --max-time 5 http://$at/ 2>/dev/null || echo no $at; done`
	profile := u.profile(t, "network: {tier: inet, except: [\"192.168.77.2:80\", \"192.168.77.10\"]}")
	wantEqual(t, succeed(t, u.session(t, script, profile...)), "LAN\nno 192.168.77.1:80\nno 192.168.77.10:8080\nno 10.1.2.3:80\n")
}

// Whoever excepts a whole network of theirs gives away no credentials of a cloud's machine in it.
func TestAnExceptionOpensNoMetadataService(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	script := `for at in fd00:77::5 fd00:ec2::254 fd00:c1::a9fe:a9fe; do curl -sS --max-time 5 http://[$at]/ 2>/dev/null || echo no $at; done`
	wantEqual(t, succeed(t, u.session(t, script, u.profile(t, "network: {tier: inet, except: [\"fd00::/8\"]}")...)),
		"ULA\nno fd00:ec2::254\nno fd00:c1::a9fe:a9fe\n")
}

// Many development servers listen on [::1] alone. More connections than there
// are sockets for them come one after the other, a reset one harms no other, and
// nothing else inside is reached.
func TestAServerThatListensOnIPv6LoopbackAlone(t *testing.T) {
	t.Parallel()
	for name, layout := range map[string]world.Layout{"tun": world.Systemd, "veth": withoutTun()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			u := newUser(t, w)
			u.layout = layout
			const script = `
import socket, socketserver, sys, threading
class Server(socketserver.ThreadingTCPServer):
    address_family, allow_reuse_address, daemon_threads, request_queue_size = socket.AF_INET6, True, True, 200
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline()
        if line.startswith(b"GET"): self.wfile.write(b"inside " + b"x" * 200000)
at = Server(("::1", int(sys.argv[1])), Handler)
threading.Thread(target=at.serve_forever, daemon=True).start()
print("listening", flush=True)
sys.stdin.readline()
`
			port := fmt.Sprint(target.ListenPort)
			flags := append(u.in(t, "none", "packages: [python3]"), "--publish", port)
			talk := converse(t, u.session(t, "exec python3 -c '"+script+"' "+port, flags...))
			talk.wait(t, "listening")
			for range 40 { // they end in the middle of an answer
				_, _ = w.DialFromHost("tcp", "127.0.0.1", target.ListenPort)
			}
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if answer, err := w.DialFromHost("tcp", "::1", target.ListenPort); err != nil || !strings.HasPrefix(answer, "inside") {
						t.Errorf("%q, %v", answer, err)
					}
				})
			}
			all.Wait()
			talk.end(t)
		})
	}
}
