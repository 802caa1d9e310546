package swap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"claudebox/checks/kit/authority"
	"claudebox/checks/kit/must"
	"claudebox/internal/secret/broker"
)

// The true secrets of the tests. None of them may ever be read inside.
const (
	trueAccess  = "sk-ant-oat01-CANARYaccess0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghij"
	trueRefresh = "sk-ant-ort01-CANARYrefresh123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghij"
	trueGitHub  = "ghp_CANARYgithub0123456789abcdefghijklmn"
	trueFoo     = "CANARY-foo-0123456789"
)

// world is a broker between a client that stands for everything inside, and an
// upstream that plays every host.
type world struct {
	t        testing.TB
	upstream *httptest.Server
	config   broker.Config
	broker   *Broker
	keeper   *keeper
	roots    *x509.CertPool // that the client trusts

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	grants   int
}

var brokeredHosts = []string{"github.com", "api.github.com", "foo.example"}

func newWorld(t testing.TB, changes ...func(*broker.Config)) *world {
	t.Helper()
	w := &world{t: t, keeper: &keeper{}}
	certificate, roots, err := authority.Certify(slices.Concat(broker.ClaudeHosts, brokeredHosts))
	must.Do(t, err)
	w.upstream = httptest.NewUnstartedServer(w)
	w.upstream.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	w.upstream.EnableHTTP2 = true
	w.upstream.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.upstream.StartTLS()
	t.Cleanup(w.upstream.Close)
	w.config = broker.Config{
		Key: broker.NewKey(), Roots: roots, Login: &broker.Login{Key: broker.NewKey(), Access: trueAccess, Scope: "user:inference user:profile"},
		Secrets: []broker.Secret{
			{
				Name: "GH_TOKEN", Value: trueGitHub, Hosts: []string{"github.com", "api.github.com"}, Forms: []broker.Form{broker.Bearer, broker.Basic},
				Write: []broker.Path{{Path: "/echo"}},
			},
			{Name: "FOO", Value: trueFoo, Hosts: []string{"foo.example:8443"}, Forms: []broker.Form{broker.Header}, Headers: []string{"X-Foo-Token"}},
		},
	}
	for _, change := range changes {
		change(&w.config)
	}
	targets, err := w.config.Targets()
	must.Do(t, err)
	w.config.Authority, err = broker.NewAuthority(broker.Names(targets), time.Now())
	must.Do(t, err)
	w.roots = x509.NewCertPool()
	w.roots.AppendCertsFromPEM(w.config.Authority.Certificate)
	w.broker, err = New(w.config, w.keeper, w.dial)
	must.Do(t, err)
	w.keeper.broker = w.broker
	t.Cleanup(func() { w.broker.Close() })
	return w
}

// dial leads to the upstream, whatever the host.
func (w *world) dial(ctx context.Context, _ broker.Target) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", w.upstream.Listener.Addr().String())
}

// connect is a connection from inside to a target.
func (w *world) connect(target broker.Target) net.Conn {
	w.t.Helper()
	inside, outside := pair(w.t)
	w.broker.Serve(outside, target)
	return inside
}

// pair is a connection over loopback.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	a, err = net.Dial("tcp", l.Addr().String())
	must.Do(t, err)
	b, err = l.Accept()
	must.Do(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// client sends requests to the brokered host that they name.
func (w *world) client(protocols ...string) *http.Client {
	return &http.Client{
		Timeout:       20 * time.Second, // it only bounds a hang
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableCompression: true, ForceAttemptHTTP2: slices.Contains(protocols, "h2"),
			TLSClientConfig: &tls.Config{RootCAs: w.roots, NextProtos: protocols},
			DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
				target, err := splitTarget(address)
				if err != nil {
					return nil, err
				}
				return w.connect(target), nil
			},
		},
	}
}

// send sends a request with headers, in pairs, and gives the answer.
func (w *world) send(method, address, body string, headers ...string) (status int, text string, header http.Header) {
	w.t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	must.Do(w.t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	in, err := w.client("http/1.1").Do(r)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer in.Body.Close()
	content, err := io.ReadAll(in.Body)
	must.Do(w.t, err)
	for name, values := range in.Trailer {
		in.Header[name] = append(in.Header[name], values...)
	}
	return in.StatusCode, string(content), in.Header
}

func (w *world) placeholder(name string) string {
	switch name {
	case broker.ClaudeLogin:
		access, _ := broker.LoginPlaceholders(w.config.Login.Key)
		return access
	case broker.ClaudeRefresh:
		_, refresh := broker.LoginPlaceholders(w.config.Login.Key)
		return refresh
	}
	for _, s := range w.config.Secrets {
		if s.Name == name {
			return w.config.Key.Placeholder(name, s.Value)
		}
	}
	w.t.Fatalf("no secret %s", name)
	return ""
}

// last is the last request that reached the upstream; nil: none did.
func (w *world) last() *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.requests) == 0 {
		return nil
	}
	return w.requests[len(w.requests)-1]
}

// ServeHTTP is the upstream: all hosts at once.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	w.requests = append(w.requests, r)
	w.bodies = append(w.bodies, string(body))
	w.mu.Unlock()
	switch r.URL.Path {
	case "/v1/oauth/token":
		w.token(out, body)
	case "/v1/oauth/token/revoke":
		out.WriteHeader(http.StatusOK)
	case "/redirect":
		http.Redirect(out, r, "https://evil.example/"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), http.StatusFound)
	case "/refused":
		http.Error(out, "no", http.StatusUnauthorized)
	case "/packed":
		out.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(out)
		fmt.Fprint(z, r.Header)
		z.Close()
	case "/packed-twice":
		out.Header()["Content-Encoding"] = []string{"identity", "gzip"}
		z := gzip.NewWriter(out)
		fmt.Fprint(z, r.Header)
		z.Close()
	case "/events":
		events(out, r)
	case "/socket":
		socket(out, r)
	case "/trailer":
		out.Header().Set("Trailer", "X-Echo")
		fmt.Fprint(out, "body")
		_ = http.NewResponseController(out).Flush() // its length is not said
		out.Header().Set("X-Echo", r.Header.Get("Authorization"))
	case "/unannounced":
		fmt.Fprint(out, "body")
		_ = http.NewResponseController(out).Flush()
		out.Header().Set(http.TrailerPrefix+"X-Echo", r.Header.Get("Authorization"))
	case "/name":
		name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		out.Header()["X-"+name], out.Header()["Trailer"] = []string{"a"}, []string{"Y-" + name}
		fmt.Fprint(out, "body")
		_ = http.NewResponseController(out).Flush()
		out.Header()["Y-"+name], out.Header()[http.TrailerPrefix+"Z-"+name] = []string{"b"}, []string{"c"}
	case "/early":
		out.Header().Set("Link", r.Header.Get("Authorization"))
		out.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(out, "body")
	case "/v1/messages", "/v1/messages/count_tokens", "/repos", "/echo", "/foo":
		out.Header().Set("X-Echo", fmt.Sprint(r.Header))
		_ = json.NewEncoder(out).Encode(map[string]any{"headers": r.Header, "uri": r.RequestURI, "host": r.Host, "body": string(body)})
	default:
		fmt.Fprintf(out, "%s %v", r.RequestURI, r.Header)
	}
}

func (w *world) token(out http.ResponseWriter, body []byte) {
	var d demand
	_ = json.Unmarshal(body, &d)
	w.mu.Lock()
	w.grants++
	n := w.grants
	w.mu.Unlock()
	if d.Type != "authorization_code" {
		out.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(out, `{"error":"invalid_grant"}`)
		return
	}
	_ = json.NewEncoder(out).Encode(map[string]any{
		"token_type": "Bearer", "expires_in": 28800, "scope": "user:inference",
		"access_token": strangerAccess + fmt.Sprint(n), "refresh_token": strangerRefresh + fmt.Sprint(n),
		"again": strangerAccess + fmt.Sprint(n),
	})
}

const (
	strangerAccess  = "sk-ant-oat01-CANARYstranger-access-0123456789abcdefghijklmnopqrstuvwxyz"
	strangerRefresh = "sk-ant-ort01-CANARYstranger-refresh-0123456789abcdefghijklmnopqrstuvwxyz"
)

// events sends one event, and the next when the client has said that it came.
func events(out http.ResponseWriter, r *http.Request) {
	out.Header().Set("Content-Type", "text/event-stream")
	for i := range 3 {
		fmt.Fprintf(out, "data: %d\n\n", i)
		_ = http.NewResponseController(out).Flush()
	}
	<-r.Context().Done()
}

// socket says in hexadecimal digits what it hears after an upgrade, in which no
// secret would be found; it says first with what it was asked. It reads lines, and speaks in the frames of a websocket.
func socket(out http.ResponseWriter, r *http.Request) {
	c, buffered, err := http.NewResponseController(out).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	first := fmt.Sprintf("%s|%s\n", r.Header.Get("Authorization"), r.Header.Get("Sec-WebSocket-Extensions"))
	_, _ = buffered.WriteString(frame(0x01, first[:20]) + frame(0x89, "ping") + frame(0x80, first[20:]))
	buffered.Flush()
	for {
		line, err := buffered.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, frame(0x81, fmt.Sprintf("%x\n", line)))
	}
}

// keeper notes what it is told.
type keeper struct {
	broker *Broker

	mu       sync.Mutex
	kept     []broker.Grant
	forgot   int
	renewed  []string
	next     string // what a renewal gives; empty: it fails
	refusals []broker.Refusal
	used     []broker.Use
}

func (k *keeper) Renew(_ context.Context, refused string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewed = append(k.renewed, refused)
	if k.next == "" {
		return fmt.Errorf("no")
	}
	k.broker.SetLogin(k.next, "user:inference")
	return nil
}

func (k *keeper) Keep(g broker.Grant) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, g)
	return nil
}

func (k *keeper) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgot++
}

func (k *keeper) Judge(ctx context.Context, c broker.Connection) error { return byPeer(ctx, c) }

func (k *keeper) Used(u broker.Use) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used = append(k.used, u)
}

func (k *keeper) Report(r broker.Refusal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refusals = append(k.refusals, r)
}

func (k *keeper) said() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprint(k.refusals)
}

// canaryIn finds a true secret in a text, also in base64.
func canaryIn(text string) bool {
	if strings.Contains(text, "CANARY") {
		return true
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", r)
	}) {
		for skip := range min(4, len(part)) {
			piece := part[skip:]
			decoded, _ := base64.StdEncoding.DecodeString(piece[:len(piece)/4*4])
			if bytes.Contains(decoded, []byte("CANARY")) {
				return true
			}
		}
	}
	return false
}

// raw speaks TLS with a name of its own choice, and sends bytes as they are.
func (w *world) raw(target broker.Target, serverName, text string) string {
	w.t.Helper()
	c := tls.Client(w.connect(target), &tls.Config{ServerName: serverName, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // it only bounds a hang
	if err := c.Handshake(); err != nil {
		return "handshake: " + err.Error()
	}
	if _, err := io.WriteString(c, text); err != nil {
		return err.Error()
	}
	in, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "answer: " + err.Error()
	}
	defer in.Body.Close()
	body, _ := io.ReadAll(in.Body)
	return fmt.Sprint(in.Status, in.Header, "\n", string(body))
}

// parsed is a URL.
func parsed(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	must.Do(t, err)
	return u
}
