//go:build lab

package network_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/authority"
	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// allowing writes a profile of tier allow, and returns its flag.
func (u *user) allowing(t *testing.T, hosts string, lines ...string) []string {
	t.Helper()
	return u.profile(t, "network: {tier: allow, allow: ["+hosts+"]}\n"+strings.Join(lines, "\n"))
}

func (u *user) profile(t *testing.T, text string) []string {
	t.Helper()
	return u.profileIn(t, "profile.yaml", text)
}

// profileIn writes a profile, and returns its flag.
func (u *user) profileIn(t *testing.T, name, text string) []string {
	t.Helper()
	file := filepath.Join(u.home, name)
	must.Write(t, file, "name: test\nextends: default\n"+text+"\n")
	return []string{"--profile", file}
}

// Each line is a request from inside and how it ends: at once, whatever is asked.
func TestTierAllowReachesNamesOfItsList(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	const script = `
try() { curl -sS --max-time 20 "$@" 2>&1 || true; }
for words in \
	"http://good.test/" "-4 http://good.test/" "-6 http://good.test/" "http://GOOD.test./" "http://sub.good.test/" "http://other.test/" \
	"http://rebind.test/" "http://rebind6.test/" "http://meta.test/" "http://loopback.test/" "http://house.test/" \
	"http://203.0.113.10/" "http://[2001:db8:ffff::10]/" "http://3405803786/" "http://192.168.77.2/" "http://good.test:8080/" \
	"-H Host:other.test http://good.test/" "--connect-to other.test:80:good.test:80 http://other.test/" \
	"http://good.test/ --next http://good.test/ -H Host:other.test" "http://198.18.77.77/" "http://169.254.1.1/"
do
	set -f
	echo "$words: $(try $words | tr '\n' ' ')"
done`
	got := run(t, u.session(t, script, u.allowing(t, "good.test, rebind.test, rebind6.test, meta.test, loopback.test, house.test")...))
	for words, want := range map[string]string{
		"http://good.test/": "internet 6", "-4 http://good.test/": "internet", "-6 http://good.test/": "internet", "http://GOOD.test./": "internet",
		"http://sub.good.test/": "curl: (6)", "http://other.test/": "curl: (6)",
		"http://rebind.test/": "curl: (7)", "http://rebind6.test/": "curl: (7)", "http://meta.test/": "curl: (7)",
		"http://loopback.test/": "curl: (7)", "http://house.test/": "curl: (7)",
		"http://203.0.113.10/": "curl: (7)", "http://[2001:db8:ffff::10]/": "curl: (7)", "http://3405803786/": "curl: (7)",
		"http://192.168.77.2/": "curl: (7)", "http://good.test:8080/": "curl: (7)",
		"-H Host:other.test http://good.test/": "claudebox refused", "--connect-to other.test:80:good.test:80 http://other.test/": "claudebox refused",
		"http://good.test/ --next http://good.test/ -H Host:other.test": "internet 6 claudebox refused", // curl tries a second connection
		"http://198.18.77.77/": "curl: (7)", "http://169.254.1.1/": "curl: (7)",
	} {
		if !strings.Contains(got.stdout, words+": "+want) {
			t.Errorf("there is no %q in\n%s", words+": "+want, got.stdout)
		}
	}
}

// An error that a program shows its user names the command which says more, and what would help.
func TestARefusalNamesTheCommandThatSaysMore(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	const script = `curl -sS -w '%{http_code}\n' -H Host:Other.test. http://good.test/
		curl -sS -H Host:house.test http://good.test/
		curl -sS --data-binary @/etc/services -H Content-Length:+1 http://good.test/
		curl -s --http0.9 telnet://good.test:80 <<<"SSH-2.0" || echo "no HTTP: $?"
		python3 -c '
import re, socket, struct
server = re.search(r"nameserver (\S+)", open("/etc/resolv.conf").read())[1]
for additional in b"", b"\0" + struct.pack(">HHLH", 41, 1232, 0, 0):
    s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(struct.pack(">6H", 7, 256, 1, 0, 0, len(additional) and 1) + b"\5other\4test\0" + struct.pack(">2H", 1, 1) + additional, (server, 53))
    answer = s.recv(2000)
    print("DNS", answer[3] & 15, answer[28:])
'`
	got := run(t, u.session(t, script, u.allowing(t, "good.test, house.test")...))
	for _, want := range []string{
		"claudebox refused a request for another host: Other.test..\n" +
			"This connection is to good.test. Inside, `claudebox-why other.test` says more.\n" +
			"The user can let it in, outside: claudebox allow-host --session other.test\n403\n",
		"claudebox refused a request for another host: house.test.\n" +
			"This connection is to good.test. Inside, `claudebox-why house.test` says more.\n" +
			"claudebox refused a request whose length is no number.\n" +
			"no HTTP: 56\n",
		"DNS 3 b''\n",
		`DNS 3 b'\x00\x00)\x04\xd0\x00\x00\x00\x00`,
		"\\x00\\x0fclaudebox: not on the list of hosts; `claudebox-why HOST` says",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("there is no %q in\n%s%s", want, got.stdout, got.stderr)
		}
	}
}

// The user hears what was reached and refused, and the log has every decision.
func TestWhatIsReachedAndRefusedIsToldAtTheEnd(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	flags := u.allowing(t, "good.test, rebind.test")
	log := filepath.Join(u.home, "network.log")
	script := `for i in 1 2 3; do curl -s http://telemetry.test/; done; curl -4s http://rebind.test/; curl -s http://good.test/; curl -s 'http://e[31mvil.test/'`
	report := filepath.Join(u.home, "report.json")
	words := append(append([]string{"shell", "--yes", "--network-log", log, "--report-json", report}, flags...), "--", "bash", "-c", script+" >/dev/null")
	got := run(t, u.claudebox(t, words...))
	for _, want := range []string{
		"claudebox: network: good.test:80 (", "refused: 3 × telemetry.test (not on the list of hosts), 1 × rebind.test:80 (private)",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("there is no %q in stderr: %s", want, got.stderr)
		}
	}
	if strings.Contains(got.stderr, "\x1b") {
		t.Errorf("what the agent wrote is told as it is: %q", got.stderr)
	}
	text, err := os.ReadFile(log)
	must.Do(t, err)
	for line := range strings.Lines(string(text)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
	expect.Contains(t, string(text), `"event":"refused","proto":"dns","host":"telemetry.test"`, `"host":"rebind.test","address":"192.168.77.2","port":80,"why":"private"`, `"event":"closed","proto":"tcp","host":"good.test"`)
	content, err := os.ReadFile(report)
	if err != nil || !strings.Contains(string(content), `"what": "telemetry.test",`) {
		t.Errorf("the report: %s, %v", content, err)
	}
	if got := run(t, u.session(t, "curl -s http://telemetry.test/ >/dev/null", flags...)); got.stderr != "" {
		t.Errorf("with --no-report: %q", got.stderr)
	}
}

// A search domain of the host would make another name of one that is listed.
func TestNoSearchDomainOfTheHostCounts(t *testing.T) {
	u := newUser(t, world.New(t))
	u.layout = world.Layout{"/etc/resolv.conf": "nameserver 203.0.113.53\nsearch test\n"}
	got := succeed(t, u.session(t, "curl -sS http://good.test/; curl -sS http://sub.good/ 2>/dev/null || echo $?", u.allowing(t, "good.test, sub.good")...))
	wantEqual(t, got, "internet 6\n7\n")
}

// site is what answers for good.test on HTTPS, and for more names. It returns the
// certificates to trust.
func site(t *testing.T, w *world.World, handler http.Handler, more ...string) (bundle []byte) {
	t.Helper()
	certificate, bundle, err := authority.Certify(append(more, "good.test"))
	must.Do(t, err)
	server := &http.Server{
		Handler: handler, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	for _, l := range w.ListenOutside(t, "443", target.Internet, target.Internet6) {
		go server.ServeTLS(l, "", "")
	}
	return bundle
}

// trusting makes the user trust a site's certificate.
func (u *user) trusting(t *testing.T, bundle []byte) {
	t.Helper()
	file := filepath.Join(u.home, "roots.pem")
	must.Do(t, os.WriteFile(file, bundle, 0o600))
	u.env = append(u.env, "SSL_CERT_FILE="+file)
}

// Domain fronting as far as it can be seen: the connection is for a host that is
// listed, the TLS in it for another one at the same address, or for none.
//
// Promise: no more network than the tier.
func TestTLSForAnotherHost(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	asked := make(chan string, 10)
	u.trusting(t, site(t, w, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.TLS.ServerName })))
	got := run(t, u.session(t, `curl -sk --connect-to evil.test:443:good.test:443 https://evil.test/ || echo $?
		curl -sk --connect-to :443:good.test:443 https://203.0.113.10/ || echo $?`, u.allowing(t, "good.test")...))
	if got.stdout != "35\n35\n" { // curl: the TLS handshake failed
		t.Errorf("got %q, %s", got.stdout, got.stderr)
	}
	if len(asked) > 0 {
		t.Errorf("the server heard %q", <-asked)
	}
}

func TestTierAllowThatCannotBe(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	for name, tc := range map[string]struct {
		flags  func(*user) []string
		layout world.Layout
		said   string
	}{
		"no hosts":      {func(u *user) []string { return u.profile(t, "network: {tier: allow}\nagent: another") }, nil, "lists no hosts"},
		"an empty list": {func(u *user) []string { return u.allowing(t, "") }, nil, "profile.yaml:3:"},
		"a bad pattern": {func(u *user) []string { return u.allowing(t, `"*.com"`) }, nil, "profile.yaml:3:"},
		"an address":    {func(u *user) []string { return u.allowing(t, "203.0.113.10") }, nil, "profile.yaml:3:"},
		"a log in the project": {
			func(u *user) []string { return append(u.allowing(t, "good.test"), "--network-log", "x.log") }, nil, "outside of the project",
		},
		"a log that is a link": {func(u *user) []string {
			link := filepath.Join(u.home, "link.log")
			must.Do(t, os.Symlink("/dev/null", link))
			return append(u.allowing(t, "good.test"), "--network-log", link)
		}, nil, "write the network log"},
		"a log in another tier": {func(*user) []string { return []string{"--network", "none", "--network-log", "/tmp/x"} }, nil, "leave it out"},
		"a port of words":       {func(*user) []string { return []string{"--publish", "http"} }, nil, "not a port"},
		"port 0":                {func(*user) []string { return []string{"--publish", "0"} }, nil, "not a port"},
		"a privileged port":     {func(*user) []string { return []string{"--network", "none", "--publish", "80"} }, nil, "only root"},
		"a port that is taken": {func(*user) []string {
			return []string{"--network", "none", "--publish", fmt.Sprint(target.HostPort)}
		}, nil, "listens on 127.0.0.1:8080 already"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, w)
			if tc.layout != nil {
				u.layout = tc.layout
			}
			got := run(t, u.session(t, "echo ran", tc.flags(u)...))
			if got.status != 125 || got.stdout != "" || !strings.Contains(got.stderr, tc.said) || !strings.Contains(got.stderr, "remedy: ") && !strings.Contains(got.stderr, "expected") {
				t.Errorf("status %d, stdout %q, stderr:\n%s", got.status, got.stdout, got.stderr)
			}
		})
	}
}

// Who asked for a log reads that it is not complete, also without the report.
func TestALogOnAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	flags := append(u.allowing(t, "good.test"), "--network-log", "/dev/full")
	got := run(t, u.session(t, "curl -s http://good.test/ >/dev/null; curl -s http://telemetry.test/", flags...))
	if strings.Count(got.stderr, "write the network log /dev/full: no space left on device") != 1 {
		t.Errorf("the user reads %q", got.stderr)
	}
}

// F7: what a session carries out is told host by host, what is still on its way
// at the end included; each connection has an end in the log.
func TestWhatIsCarriedOutIsToldHostByHost(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	u.trusting(t, site(t, w, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })))
	w.ListenOutside(t, "8082", target.Internet, target.Internet6) // nobody takes or ends what comes
	log := filepath.Join(u.home, "network.log")
	for tier, want := range map[string]string{"allow": "good.test (5.", "inet": target.Internet6 + " (5."} {
		flags, curl := append(u.allowing(t, `good.test, "good.test:8082"`), "--network-log", log), "curl"
		if tier == "inet" {
			curl = "curl -6" // on a busy machine it takes the other address now and then
			flags = append(u.profile(t, "network: inet"), "--network-log", log)
		}
		// The second connection is open when all ends. What it carries takes a moment to leave the sandbox.
		script := `head -c 5000000 /dev/zero | ` + curl + ` -sS --data-binary @- https://good.test/up; exec 3<>/dev/tcp/good.test/8082; echo hello >&3; sleep 0.2`
		got := run(t, u.claudebox(t, append(append([]string{"shell", "--yes"}, flags...), "--", "bash", "-c", script)...))
		if !strings.Contains(got.stderr, want) || !strings.Contains(got.stderr, " MB sent, ") {
			t.Errorf("%s: the user is told %q; want %q", tier, got.stderr, want)
		}
		text, err := os.ReadFile(log)
		must.Do(t, err)
		os.Remove(log)
		if opened, closed := strings.Count(string(text), `"event":"opened"`), strings.Count(string(text), `"event":"closed"`); opened == 0 || opened != closed {
			t.Errorf("%s: %d connections were opened, and %d closed:\n%s", tier, opened, closed, text)
		}
		if !strings.Contains(string(text), `"port":8082,"sent":6,"received":0`) || !strings.Contains(string(text), `"sent":5`) {
			t.Errorf("%s: the log:\n%s", tier, text)
		}
	}
}

// F9: what goes wrong outside shows the agent no address of this machine's
// network: not those of a name that is refused, not those of a host that is gone.
func TestNothingInsideNamesAnAddressOfTheHost(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	site(t, w, http.NotFoundHandler())
	u.env = append(u.env, "FOO_TOKEN=foo-0123456789abcdef")
	secrets := "secrets: [{env: FOO_TOKEN, hosts: [rebind.test, house.test, nowhere.test, good.test]}]"
	// By the broker, which answers in words, and by the network itself.
	script := `for host in rebind.test house.test nowhere.test good.test loopback.test meta.test; do
		curl -svk --max-time 20 https://$host/ 2>&1; curl -sv --max-time 20 http://$host/ 2>&1; done
		cat /etc/resolv.conf /etc/hosts /proc/net/route /proc/net/tcp /proc/net/fib_trie; true`
	for tier, flags := range map[string][]string{
		"allow": u.allowing(t, "rebind.test, house.test, nowhere.test, good.test, loopback.test, meta.test", secrets),
	} {
		got := run(t, u.session(t, script, flags...)).stdout
		if !strings.Contains(got, "claudebox: ") {
			t.Errorf("%s: the broker has said nothing:\n%s", tier, got)
		}
		for _, secret := range []string{"192.168.", "fd00:77", "203.0.113.", "2001:db8:ffff", "169.254.169", "100.64.", "eth0"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s: %s is named inside:\n%s", tier, secret, got)
			}
		}
	}
}
