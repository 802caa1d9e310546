//go:build lab

package network_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// A private host is reached by its name, and its neighbours are not; this
// machine and the metadata services stay closed, whatever a profile says.
func TestAPrivateHostOfTheList(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	var hosts []string
	for _, name := range []string{"rebind.test", "rebind6.test", "house.test", "meta.test", "loopback.test", "here.test"} {
		hosts = append(hosts, "{host: "+name+", private: true}")
	}
	script := `for to in rebind.test rebind6.test house.test meta.test loopback.test loopback.test:8080 here.test here.test:8080 192.168.77.2; do
		echo $to: $(curl -sS --max-time 20 http://$to/ 2>&1)
	done`
	flags := u.allowing(t, strings.Join(append(hosts, "{host: \"loopback.test:8080\", private: true}", "{host: \"here.test:8080\", private: true}"), ", "))
	got := run(t, u.session(t, script, flags...)).stdout
	for _, want := range []string{
		"rebind.test: LAN\n", "rebind6.test: ULA\n", "house.test: second VLAN\n", "meta.test: curl: (7)", "loopback.test: curl: (7)",
		"loopback.test:8080: curl: (7)", "here.test: curl: (7)", "here.test:8080: curl: (7)", "192.168.77.2: curl: (7)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	shown := run(t, u.claudebox(t, append([]string{"shell", "--dry-run"}, flags...)...)).stdout
	if !strings.Contains(strings.Join(strings.Fields(shown), " "), "rebind.test (may be in your own network)") {
		t.Errorf("the dry run does not say that a host is private:\n%s", shown)
	}
}

// proxy notes whom it was asked for. It answers in the place of all hosts but
// those that it refuses.
type proxy struct {
	mu    sync.Mutex
	asked []string
}

func (p *proxy) note(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, to)
}

func (p *proxy) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(p.asked)))
}

// serve speaks HTTP or SOCKS to one client.
func (p *proxy) serve(conn net.Conn) {
	defer conn.Close()
	from := bufio.NewReader(conn)
	first, err := from.Peek(1)
	if err != nil {
		return
	}
	to, refuse, agree := "", "", ""
	if first[0] == 5 {
		head := make([]byte, 3+4)
		io.ReadFull(from, head[:3])
		conn.Write([]byte{5, 0})
		io.ReadFull(from, head)
		size := int(head[4])
		rest := make([]byte, size)
		if head[3] != 3 {
			return
		}
		copy(rest, head[5:])
		io.ReadFull(from, rest[2:])
		port := make([]byte, 2)
		io.ReadFull(from, port)
		to = fmt.Sprintf("%s:%d", rest, int(port[0])<<8|int(port[1]))
		refuse, agree = "\x05\x02\x00\x01", "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	} else {
		request, err := http.ReadRequest(from)
		if err != nil || request.Method != http.MethodConnect {
			return
		}
		to, refuse, agree = request.Host, "HTTP/1.1 403 Forbidden by \x1b[31m policy\r\n\r\n", "HTTP/1.1 200 Connection established\r\n\r\n"
	}
	p.note(to)
	if strings.HasPrefix(to, "rebind.test") {
		io.WriteString(conn, refuse)
		return
	}
	if strings.HasSuffix(to, ":22") { // who speaks first is a server
		io.WriteString(conn, agree+"SSH-2.0-proxied\r\n")
		return
	}
	io.WriteString(conn, agree)
	if request, err := http.ReadRequest(from); err == nil {
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s by the proxy\n", request.Host)
	}
}

// The hosts of the list are reached by the user's proxy, by their names; nothing
// is dialled directly, and no other name comes to the proxy.
func TestAProxyConnectsToTheHostsOfTheList(t *testing.T) {
	t.Parallel()
	for scheme, at := range map[string]string{"http": "127.0.0.1", "socks5": target.LANPeer} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			u, p := newUser(t, w), &proxy{}
			listen := w.ListenOnHost
			if at == target.LANPeer {
				listen = w.ListenOutside
			}
			for _, l := range listen(t, "3128", at) {
				go func() {
					for {
						conn, err := l.Accept()
						if err != nil {
							return
						}
						go p.serve(conn)
					}
				}()
			}
			hosts := `nowhere.test, "nowhere.test:22", rebind.test, "proxy.test:3128"`
			flags := u.profile(t, "network: {tier: allow, allow: ["+hosts+"], via: \""+scheme+"://"+at+":3128\"}")
			script := `try() { curl -sS --max-time 20 "$@" 2>&1 || true; }
				try http://nowhere.test/; try telnet://nowhere.test:22 </dev/null; try http://rebind.test/; try http://other.test/; try http://` + at + `:3128/; try http://203.0.113.10/`
			words := append(append([]string{"shell", "--yes"}, flags...), "--", "bash", "-c", script)
			got := run(t, u.claudebox(t, words...))
			for _, want := range []string{"nowhere.test by the proxy\n", "SSH-2.0-proxied", "curl: (7) ", "curl: (6) Could not resolve host: other.test"} {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("there is no %q in\n%s\n%s", want, got.stdout, got.stderr)
				}
			}
			if strings.Count(got.stdout, "curl: (7)") != 3 {
				t.Errorf("three are refused:\n%s", got.stdout)
			}
			if want := "2 × rebind.test:80 (the proxy refused: "; !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "\x1b") {
				t.Errorf("the user is told %q; want %q", got.stderr, want)
			}
			if got, want := p.heard(), []string{"nowhere.test:22", "nowhere.test:80", "rebind.test:80"}; !slices.Equal(got, want) {
				t.Errorf("the proxy was asked for %q; want %q", got, want)
			}
			for _, packet := range arrived(t, w) {
				if packet.To.String() != at {
					t.Errorf("sent to %s", packet)
				}
			}
			shown := run(t, u.claudebox(t, append([]string{"shell", "--dry-run"}, flags...)...)).stdout
			if want := "the proxy " + scheme + "://" + at + ":3128 connect"; !strings.Contains(strings.Join(strings.Fields(shown), " "), want) {
				t.Errorf("there is no %q in the dry run:\n%s", want, shown)
			}
		})
	}
}

// A proxy that is not there, or is none, is no reason to wait, nor to go
// around it.
func TestAProxyThatIsNone(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	for _, l := range w.ListenOnHost(t, "3129", "127.0.0.1") {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				io.WriteString(conn, "220 mail.corp ESMTP\r\n\r\n")
				conn.Close()
			}
		}()
	}
	for _, via := range []string{"http://127.0.0.1:3127", "http://127.0.0.1:3129", "socks5://127.0.0.1:3129", "http://nowhere.test:3128"} {
		flags := u.profile(t, "network: {tier: allow, allow: [good.test], via: \""+via+"\"}")
		got := run(t, u.session(t, "curl -sS --max-time 20 http://good.test/ || echo $?", flags...))
		if got.stdout != "7\n" && got.stdout != "56\n" {
			t.Errorf("%s: %q, %s", via, got.stdout, got.stderr)
		}
	}
	for _, packet := range arrived(t, w) {
		if packet.To.String() == target.Internet {
			t.Errorf("sent to %s", packet)
		}
	}
}

// From a refusal to a host that is listed.
func TestARefusedHostIsAddedToTheProfile(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	flags := u.allowing(t, "good.test")
	words := append(append([]string{"shell", "--yes"}, flags...), "--", "bash", "-c",
		"for to in other.test good.test:8080 'e[31mvil.test' 203.0.113.10 intranet; do curl -s http://$to/; done; true")
	got := run(t, u.claudebox(t, words...))
	if !strings.Contains(got.stderr, "`claudebox allow-host --refused -P ") {
		t.Errorf("the way to add hosts is not told: %s", got.stderr)
	}
	added := run(t, u.claudebox(t, append([]string{"allow-host", "--refused", "--yes"}, flags...)...))
	if !strings.HasSuffix(added.stdout, ": good.test:8080 other.test\n") && !strings.HasSuffix(added.stdout, ": other.test good.test:8080\n") {
		t.Errorf("added %q, %s", added.stdout, added.stderr)
	}
	wantEqual(t, succeed(t, u.session(t, "curl -sS http://other.test/", flags...)), "internet resolver\n")
	if text, err := os.ReadFile(filepath.Join(u.home, "profile.yaml")); err != nil || strings.Contains(string(text), "vil") {
		t.Errorf("the profile: %s, %v", text, err)
	}
}
