package swap

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/secret/broker"
)

func TestEachFormIsSwapped(t *testing.T) {
	w := newWorld(t)
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	login, github, foo := w.placeholder(broker.ClaudeLogin), w.placeholder("GH_TOKEN"), w.placeholder("FOO")
	for name, tc := range map[string]struct {
		address, header, sent, want string
	}{
		"bearer":          {"https://api.anthropic.com/v1/messages?beta=true", "Authorization", "Bearer " + login, "Bearer " + trueAccess},
		"bearer in small": {"https://api.github.com/repos", "authorization", "bearer " + github, "bearer " + trueGitHub},
		"token":           {"https://api.github.com/repos", "Authorization", "token " + github, "token " + trueGitHub},
		"basic":           {"https://github.com/a/b.git/info/refs?service=git-upload-pack", "Authorization", basic("x", github), basic("x", trueGitHub)},
		"named header":    {"https://foo.example:8443/foo", "X-Foo-Token", foo, trueFoo},
		"port said":       {"https://api.github.com:443/repos", "Authorization", "Bearer " + github, "Bearer " + trueGitHub},
		"no placeholder":  {"https://api.github.com/repos", "Authorization", "Bearer mine", "Bearer mine"},
	} {
		for _, protocol := range []string{"http/1.1", "h2"} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				r, err := http.NewRequest("GET", tc.address, nil)
				must.Do(t, err)
				r.Header.Set(tc.header, tc.sent)
				r.Header.Set("Accept-Encoding", "gzip, br")
				in, err := w.client(protocol).Do(r)
				must.Do(t, err)
				defer in.Body.Close()
				body, err := io.ReadAll(in.Body)
				must.Do(t, err)
				got := w.last()
				if in.StatusCode != 200 || got == nil || got.Header.Get(tc.header) != tc.want {
					t.Fatalf("status %d, %s; upstream got %q, want %q", in.StatusCode, body, got.Header.Get(tc.header), tc.want)
				}
				if got.Header.Get("Accept-Encoding") != "" {
					t.Error("a packed answer is asked for")
				}
				if want := r.URL.RequestURI(); got.RequestURI != want {
					t.Errorf("upstream was asked for %q; want %q", got.RequestURI, want)
				}
				if canaryIn(string(body)) || canaryIn(fmt.Sprint(in.Header)) {
					t.Errorf("the secret came back: %s %s", body, in.Header)
				}
				if in.Proto != map[string]string{"h2": "HTTP/2.0", "http/1.1": "HTTP/1.1"}[protocol] {
					t.Errorf("spoke %s", in.Proto)
				}
			})
		}
	}
	if said := w.keeper.said(); said != "[]" {
		t.Errorf("refused: %s", said)
	}
	for _, use := range []broker.Use{
		{Secret: broker.ClaudeLogin, Host: "api.anthropic.com"},
		{Secret: "GH_TOKEN", Host: "github.com"},
		{Secret: "FOO", Host: "foo.example:8443"},
	} {
		if !slices.Contains(w.keeper.used, use) {
			t.Errorf("the use of %v is not told: %v", use, w.keeper.used)
		}
	}
}

// As Claude Code does with apiKeyHelper.
func TestAKeyInTwoHeadersAtOnceIsSwappedInBoth(t *testing.T) {
	const key = "sk-ant-api03-CANARYkey-0123456789abcdefghijklmnopqrstuvwxyz-0123456789abcdefghijklmnop"
	w := newWorld(t, func(c *broker.Config) {
		c.Secrets = append(c.Secrets, broker.Secret{
			Name: "ANTHROPIC_API_KEY", Value: key, Hosts: broker.ClaudeHosts[:1], Forms: []broker.Form{broker.Bearer, broker.Header},
			Headers: []string{"X-Api-Key"}, Paths: broker.ClaudePaths,
		})
	})
	p := w.placeholder("ANTHROPIC_API_KEY")
	if len(p) != len(key) || !strings.HasPrefix(p, "sk-ant-api03-") {
		t.Errorf("%q has another shape than %q", p, key)
	}
	w.send("POST", "https://api.anthropic.com/v1/messages", "{}", "Authorization", "Bearer "+p, "X-Api-Key", p)
	if h := w.last().Header; h.Get("Authorization") != "Bearer "+key || h.Get("X-Api-Key") != key {
		t.Errorf("upstream got %v", h)
	}
}

// Every event arrives before the answer has ended.
func TestEventsArriveWhenTheyAreSent(t *testing.T) {
	w := newWorld(t)
	for _, protocol := range []string{"http/1.1", "h2"} {
		in, err := w.client(protocol).Get("https://foo.example:8443/events")
		must.Do(t, err)
		lines := bufio.NewReader(in.Body)
		for i := range 3 {
			if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Errorf("%s: %q, %v", protocol, line, err)
			}
			_, _ = lines.ReadString('\n')
		}
		in.Body.Close()
	}
}

// socketTo opens a websocket to a path of a host.
func (w *world) socketTo(path string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	c := tls.Client(w.connect(hubTarget), &tls.Config{ServerName: hubTarget.Host, RootCAs: w.roots})
	must.Do(w.t, c.SetDeadline(time.Now().Add(20*time.Second))) // it only bounds a hang
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: api.github.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer %s\r\n\r\n",
		path, w.placeholder("GH_TOKEN"))
	r := bufio.NewReader(c)
	in, err := http.ReadResponse(r, nil)
	must.Do(w.t, err)
	if in.StatusCode != http.StatusSwitchingProtocols {
		w.t.Fatal(in.Status)
	}
	return c, r
}

// A message that comes in pieces, with a ping amid, is passed on whole, behind the ping.
func TestAWebsocketPassesAndIsSearchedToo(t *testing.T) {
	w := newWorld(t)
	c, r := w.socketTo("/socket")
	ping, err := r.Peek(6)
	must.Do(t, err)
	if _, err = r.Discard(6); err != nil || string(ping) != frame(0x89, "ping") {
		t.Errorf("%q, %v", ping, err)
	}
	first, err := r.ReadString('\n')
	must.Do(t, err)
	if w.last().Header.Get("Authorization") != "Bearer "+trueGitHub || !strings.HasSuffix(first, "|\n") {
		t.Errorf("upstream got %q, and said %q", w.last().Header, first)
	}
	if canaryIn(first) || first[:2] != frame(0x81, first[2:])[:2] {
		t.Errorf("it said %q", first)
	}
	github := w.placeholder("GH_TOKEN")
	fmt.Fprintf(c, "hello %s\n", github)
	heard, err := r.ReadString('\n')
	if want := frame(0x81, fmt.Sprintf("%x\n", "hello "+github+"\n")); err != nil || heard != want {
		t.Errorf("it heard %q, %v; want the placeholder as it was sent", heard, err)
	}
}

// The name of a header comes in any case, as HTTP/2 has it in small letters.
func TestNoHeaderOfAnAnswerIsNamedLikeASecret(t *testing.T) {
	w := newWorld(t)
	for _, protocol := range []string{"http/1.1", "h2"} {
		r, err := http.NewRequest("GET", hub+"/name", nil)
		must.Do(t, err)
		r.Header.Set("Authorization", "Bearer "+w.placeholder("GH_TOKEN"))
		in, err := w.client(protocol).Do(r)
		must.Do(t, err)
		body, err := io.ReadAll(in.Body)
		must.Do(t, err)
		in.Body.Close()
		if seen := fmt.Sprint(in.Header, in.Trailer); string(body) != "body" || strings.Contains(strings.ToLower(seen), strings.ToLower(trueGitHub)) {
			t.Errorf("%s: %q, %s", protocol, body, seen)
		}
	}
}

// Who asks for a part of an answer chooses where it is cut: a secret that is left at the server would come in two.
func TestNoPartOfAnAnswerIsAskedForAtAHostOfSecrets(t *testing.T) {
	w := newWorld(t)
	w.send("GET", hub+"/echo", "", "Range", "bytes=0-20", "If-Range", "x", "Request-Range", "bytes=0-20")
	for name := range w.last().Header {
		if strings.HasSuffix(name, "Range") {
			t.Errorf("it was asked by %s", name)
		}
	}
}

func TestClaudesRenewalIsAnsweredHere(t *testing.T) {
	w := newWorld(t)
	ask := func() (status int, text string) {
		status, text, _ = w.send("POST", "https://platform.claude.com/v1/oauth/token",
			`{"grant_type":"refresh_token","refresh_token":"`+w.placeholder(broker.ClaudeRefresh)+`","client_id":"`+broker.Client+`"}`)
		return status, text
	}
	status, first := ask()
	_, second := ask()
	if status != 200 || first == second || !strings.Contains(first, `"scope":"user:inference user:profile"`) || canaryIn(first) {
		t.Errorf("%d, %s, then %s", status, first, second)
	}
	if w.grants != 0 {
		t.Error("the token endpoint was asked")
	}
	// The login has ended outside: nothing inside may learn it so that it gives up.
	w.broker.SetLogin("", "")
	if status, text := ask(); status != http.StatusServiceUnavailable || strings.Contains(text, "invalid_grant") {
		t.Errorf("%d, %s", status, text)
	}
}

func TestALoginThatItsServerRefusesIsRenewedOutside(t *testing.T) {
	w := newWorld(t, func(c *broker.Config) { c.Secrets = nil })
	w.keeper.next = "sk-ant-oat01-CANARYnext"
	login := w.placeholder(broker.ClaudeLogin)
	renew := func() int {
		status, _, _ := w.send("POST", "https://platform.claude.com/v1/oauth/token",
			`{"grant_type":"refresh_token","refresh_token":"`+w.placeholder(broker.ClaudeRefresh)+`","client_id":"`+broker.Client+`"}`)
		return status
	}
	if renew() != 200 || len(w.keeper.renewed) != 0 {
		t.Errorf("renewed without need: %q", w.keeper.renewed)
	}
	w.upstream.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-ant-oat01-CANARYnext" {
			http.Error(out, "no", http.StatusUnauthorized)
		}
	})
	message := func() int {
		status, _, _ := w.send("POST", "https://api.anthropic.com/v1/messages", "{}", "Authorization", "Bearer "+login)
		return status
	}
	if got := message(); got != http.StatusUnauthorized {
		t.Errorf("status %d", got)
	}
	for range 4 {
		if got := renew(); got != 200 {
			t.Errorf("status %d", got)
		}
	}
	if len(w.keeper.renewed) != 1 {
		t.Errorf("renewed %d times", len(w.keeper.renewed))
	}
	if got := message(); got != 200 {
		t.Errorf("the old placeholder is not good for the new login: status %d", got)
	}
}

func TestAServerThatIsNotVerifiedIsSentNothing(t *testing.T) {
	w := newWorld(t, func(c *broker.Config) { c.Roots = nil })
	status, text, _ := w.send("GET", "https://api.github.com/repos", "", "Authorization", "Bearer "+w.placeholder("GH_TOKEN"))
	if status != http.StatusBadGateway || !strings.Contains(text, "not verified") || w.last() != nil {
		t.Errorf("%d, %s", status, text)
	}
	if !strings.Contains(w.keeper.said(), "api.github.com") {
		t.Error("the user is not told")
	}
}

// In a network of the sandbox's own a connection is known by its name alone.
func TestATerminatorServesTheHostsOfItsSecrets(t *testing.T) {
	w := newWorld(t)
	config, err := json.Marshal(w.config)
	must.Do(t, err)
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must.Do(t, err)
	ours, theirs := os.NewFile(uintptr(sockets[0]), "ours"), os.NewFile(uintptr(sockets[1]), "theirs")
	line := broker.NewLine(ours, w.keeper, func() {})
	defer line.Close()
	answerer, err := NewAnswerer(config, w.config.Roots, theirs)
	must.Do(t, err)
	for _, tc := range []struct {
		name string
		port uint16
		want bool
	}{
		{"api.github.com", 443, true},
		{"api.github.com", 0, true},
		{"api.github.com", 80, false},
		{"foo.example", 8443, true},
		{"foo.example", 443, false},
		{"foo.example", 0, true},
		{"evil.example", 0, false},
		{"x.api.github.com", 443, false},
	} {
		if got := answerer.Answers(tc.name, tc.port); got != tc.want {
			t.Errorf("%s:%d: %v", tc.name, tc.port, got)
		}
	}
	inside, outside := pair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		answerer.Serve(t.Context(), outside, "api.github.com", 443, func(ctx context.Context) (net.Conn, error) {
			return w.dial(ctx, broker.Target{})
		})
	}()
	c := tls.Client(inside, &tls.Config{ServerName: "api.github.com", RootCAs: w.roots})
	fmt.Fprintf(c, "GET /repos HTTP/1.1\r\nHost: api.github.com\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", w.placeholder("GH_TOKEN"))
	body, err := io.ReadAll(c)
	must.Do(t, err)
	if canaryIn(string(body)) || w.last() == nil || w.last().Header.Get("Authorization") != "Bearer "+trueGitHub {
		t.Errorf("%s", body)
	}
	inside.Close()
	<-done
}

// Of an answer to CONNECT most clients show the status line alone.
func TestTheStatusLineSaysWhyAHostCannotBeReached(t *testing.T) {
	w := newWorld(t)
	address, _ := through(t, w)
	shut, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	shut.Close()
	said := base64.StdEncoding.EncodeToString([]byte(broker.ProxyUser + ":password"))
	for _, request := range []string{"CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s", "GET http://%[1]s/ HTTP/1.1\r\nHost: %[1]s"} {
		c, err := net.Dial("tcp", address)
		must.Do(t, err)
		defer c.Close()
		_, err = fmt.Fprintf(c, request+"\r\nProxy-Authorization: Basic "+said+"\r\n\r\n", shut.Addr())
		must.Do(t, err)
		got, err := io.ReadAll(c)
		must.Do(t, err)
		if line, _, _ := strings.Cut(string(got), "\r\n"); line != "HTTP/1.1 502 connection refused by 127.0.0.1" {
			t.Errorf("%q", got)
		}
	}
	for err, want := range map[error]string{
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "evil\r\nX: y", IsNotFound: true}}: "a?b? cannot be resolved",
		&net.OpError{Op: byProxy, Err: &net.DNSError{}}:                                     "a?b? cannot be reached by the proxy of this machine",
		fmt.Errorf("dial: %w", os.ErrDeadlineExceeded):                                      "a?b? does not answer",
		errors.New("evil\r\nX: y"):                                                          "a?b? cannot be reached",
	} {
		if got := reason("a\nb\u00e4", err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
