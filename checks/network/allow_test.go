//go:build lab

package network_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/authority"
	"claudebox/checks/network/target"
	"claudebox/checks/network/world"
)

// allowing writes a profile of tier allow, and returns its flag.
func (u *user) allowing(t *testing.T, hosts string, lines ...string) []string {
	t.Helper()
	return u.profile(t, "network: {tier: allow, allow: ["+hosts+"]}\n"+strings.Join(lines, "\n"))
}

func (u *user) profile(t *testing.T, text string) []string {
	t.Helper()
	file := filepath.Join(u.home, "profile.yaml")
	if err := os.WriteFile(file, []byte("name: test\nextends: default\n"+text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--profile", file}
}

// Each line is a request from inside and how it ends.
func TestTierAllowByItsProxy(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	const script = `
try() { curl -sS --max-time 20 "$@" 2>&1 || true; }
socks="-x socks5h://127.0.0.1:3128"
for words in \
	"http://good.test/" "http://GOOD.test./" "-p http://good.test/" "$socks http://good.test/" "http://sub.good.test/" \
	"http://rebind.test/" "http://rebind6.test/" "http://meta.test/" "http://loopback.test/" "http://house.test/" \
	"http://other.test/" "http://203.0.113.10/" "http://[2001:db8:ffff::10]/" "http://3405803786/" "-p http://203.0.113.10/" \
	"$socks http://rebind.test/" "$socks http://203.0.113.10/" "-x socks5://127.0.0.1:3128 http://good.test/" \
	"http://good.test:8080/" "--noproxy * http://good.test/" "--noproxy * http://203.0.113.10/" "--noproxy * http://192.168.77.2/"
do
	set -f
	echo "$words: $(try $words)"
done`
	got := run(t, u.session(t, script, u.allowing(t, "good.test, rebind.test, rebind6.test, meta.test, loopback.test, house.test")...))
	private := func(name, what string) string { return "claudebox: " + name + ": its address " + what }
	for _, want := range []string{
		"http://good.test/: internet", "http://GOOD.test./: internet", "-p http://good.test/: internet", "3128 http://good.test/: internet",
		"http://sub.good.test/: claudebox: sub.good.test:80 is not a host",
		private("rebind.test:80", "192.168.77.2 is private"), private("rebind6.test:80", "fd00:77::5 is unique local"),
		private("meta.test:80", "169.254.169.254 is link-local"), private("loopback.test:80", "::1 is unspecified, loopback"),
		private("house.test:80", "192.168.88.2 is private"),
		"claudebox: other.test:80 is not a host", "http://203.0.113.10/: claudebox: 203.0.113.10: an address",
		"[2001:db8:ffff::10]/: claudebox: [2001:db8:ffff::10]: an address", "http://3405803786/: claudebox: ",
		"-p http://203.0.113.10/: curl: (56)", "3128 http://rebind.test/: curl: (97)", "3128 http://203.0.113.10/: curl: (97)",
		"socks5://127.0.0.1:3128 http://good.test/: curl: (97)", // that one resolves inside
		"http://good.test:8080/: claudebox: good.test:8080 is not",
		"* http://good.test/: curl: (6)", "* http://203.0.113.10/: curl: (7)", "* http://192.168.77.2/: curl: (7)",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("there is no %q in\n%s", want, got.stdout)
		}
	}
	for line := range strings.Lines(got.stdout) {
		if _, answer, _ := strings.Cut(line, "/: "); !strings.HasPrefix(answer, "internet") && !strings.HasPrefix(answer, "claudebox: ") && !strings.HasPrefix(answer, "curl: ") {
			t.Errorf("somebody else answered: %s", line)
		}
	}
}

// The user hears what was refused, and the log has every decision.
func TestWhatIsRefusedIsToldAtTheEnd(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	flags := u.allowing(t, "good.test, rebind.test")
	log := filepath.Join(u.home, "network.log")
	script := `for i in 1 2 3; do curl -s http://telemetry.test/; done; curl -s http://rebind.test/; curl -s http://good.test/`
	report := filepath.Join(u.home, "report.json")
	words := append(append([]string{"shell", "--yes", "--network-log", log, "--report-json", report}, flags...), "--", "bash", "-c", script+" >/dev/null")
	got := run(t, u.claudebox(t, words...))
	const want = "claudebox: refused: 3 × telemetry.test:80, 1 × rebind.test:80 (its address 192.168.77.2 is private)\n"
	if !strings.Contains(got.stderr, want) {
		t.Errorf("stderr: %s", got.stderr)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"refused telemetry.test:80\n", "refused rebind.test:80 (its address", "reached good.test:80 by good.test\n"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("there is no %q in the log:\n%s", part, text)
		}
	}
	content, err := os.ReadFile(report)
	if err != nil || !strings.Contains(string(content), `"what": "telemetry.test:80",`) {
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
	got := succeed(t, u.session(t, "curl -sS http://good.test/; curl -sS http://sub.good/", u.allowing(t, "good.test, sub.good")...))
	wantEqual(t, got, "internet 6\nclaudebox: sub.good:80 cannot be reached: look up: no such host\n")
}

// site is what answers for good.test on HTTPS. It returns the certificates to
// trust.
func site(t *testing.T, w *world.World, handler http.Handler) (bundle []byte) {
	t.Helper()
	certificate, bundle, err := authority.Certify([]string{"good.test"})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(file, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	u.env = append(u.env, "SSL_CERT_FILE="+file)
}

// requestByNode asks in both of Node's ways, which learnt of proxies at
// different times. Node trusts certificates of its own.
const requestByNode = `NODE_EXTRA_CA_CERTS=$SSL_CERT_FILE NODE_NO_WARNINGS=1 /opt/node -e '
	const at = "https://good.test/hello"
	const got = new Promise((yes, no) => require("https").get(at, r => r.on("data", yes)).on("error", no))
	const fetched = fetch(at).then(r => r.text())
	Promise.all([got, fetched]).then(all => console.log(all.join(" ")))'`

// Every tool finds the proxy by itself, and reaches nobody who is not listed.
// Claude Code has a test of its own.
func TestToolsFindTheProxy(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(out http.ResponseWriter, _ *http.Request) { io.WriteString(out, "hello") })
	mux.HandleFunc("/nix/nix-cache-info", func(out http.ResponseWriter, _ *http.Request) {
		io.WriteString(out, "StoreDir: /nix/store\nPriority: 41\n")
	})
	mux.HandleFunc("/go/example.org/m/@v/list", func(out http.ResponseWriter, _ *http.Request) { io.WriteString(out, "v1.2.3\n") })
	mux.HandleFunc("/go/example.org/m/@v/v1.2.3.info", func(out http.ResponseWriter, _ *http.Request) { io.WriteString(out, `{"Version": "v1.2.3"}`) })
	mux.HandleFunc("/go/example.org/m/@v/v1.2.3.mod", func(out http.ResponseWriter, _ *http.Request) { io.WriteString(out, "module example.org/m\n") })
	mux.Handle("/git/", gitServer(t))
	bundle := site(t, w, mux)
	for name, tc := range map[string]struct{ packages, script, want string }{
		"curl": {"", "curl -sS https://good.test/hello", "hello"},
		"git": {"", `git clone -q https://good.test/git/repo.git /tmp/r && cat /tmp/r/file && cd /tmp/r && echo two >file &&
			git -c user.name=x -c user.email=x@x commit -qam two && git push -q && git ls-remote origin | grep -c refs/heads/main`, "one\n1\n"},
		"nix":    {"", "nix --extra-experimental-features nix-command store info --store https://good.test/nix 2>&1 | grep -o 'Store URL: .*'", "Store URL: https://good.test/nix\n"},
		"Python": {"python3", `python3 -c 'import urllib.request; print(urllib.request.urlopen("https://good.test/hello").read().decode())'`, "hello\n"},
		"Go":     {"go", "cd /tmp && GOPROXY=https://good.test/go GONOSUMDB='*' GOFLAGS=-mod=mod go list -m -versions example.org/m", "example.org/m v1.2.3\n"},
		"Node":   {"", requestByNode, "hello hello\n"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, w)
			u.trusting(t, bundle)
			flags := u.allowing(t, "good.test", "packages: ["+tc.packages+"]")
			if name == "Node" {
				flags = append(flags, "--mount-ro", program(t, "CLAUDEBOX_TEST_NODE")+":/opt/node")
			}
			got := run(t, u.session(t, tc.script, flags...))
			if got.status != 0 || got.stdout != tc.want {
				t.Errorf("status %d, stdout %q, stderr %s", got.status, got.stdout, got.stderr)
			}
			unlisted := run(t, u.session(t, strings.ReplaceAll(tc.script, "good.test", "other.test"), flags...))
			if unlisted.status == 0 {
				t.Errorf("a host that is not listed: stdout %q", unlisted.stdout)
			}
		})
	}
}

// Domain fronting as far as it can be seen: the tunnel is for a host that is
// listed, the TLS in it for another one at the same address.
func TestTLSForAnotherHostInATunnel(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	asked := make(chan string, 10)
	u.trusting(t, site(t, w, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.TLS.ServerName })))
	got := run(t, u.session(t, `curl -sk --connect-to evil.test:443:good.test:443 https://evil.test/ || echo $?
		curl -sk --resolve good.test:443:127.0.0.1 --connect-to :443:good.test:443 https://203.0.113.10/ || echo $?`, u.allowing(t, "good.test")...))
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
		"no hosts":      {func(*user) []string { return []string{"--network", "allow"} }, nil, "lists no hosts"},
		"an empty list": {func(u *user) []string { return u.allowing(t, "") }, nil, "profile.yaml:3:"},
		"a bad pattern": {func(u *user) []string { return u.allowing(t, `"*.com"`) }, nil, "profile.yaml:3:"},
		"an address":    {func(u *user) []string { return u.allowing(t, "203.0.113.10") }, nil, "profile.yaml:3:"},
		"no resolver":   {func(u *user) []string { return u.allowing(t, "good.test") }, world.Layout{"/etc/resolv.conf": "# nothing\n"}, "names no resolver"},
		"a log in the project": {
			func(u *user) []string { return append(u.allowing(t, "good.test"), "--network-log", "x.log") }, nil, "outside of the project",
		},
		"a log that is a link": {func(u *user) []string {
			link := filepath.Join(u.home, "link.log")
			if err := os.Symlink("/dev/null", link); err != nil {
				t.Fatal(err)
			}
			return append(u.allowing(t, "good.test"), "--network-log", link)
		}, nil, "write the network log"},
		"a log in another tier": {func(*user) []string { return []string{"--network-log", "/tmp/x"} }, nil, "leave it out"},
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
