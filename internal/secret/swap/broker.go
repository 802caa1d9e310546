package swap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"claudebox/internal/secret/broker"
)

// Dial connects to a host outside the sandbox.
type Dial func(ctx context.Context, target broker.Target) (net.Conn, error)

// Broker serves connections from the sandbox in place of the hosts that secrets are for.
type Broker struct {
	targets  []broker.Target
	leaves   map[string]*tls.Certificate
	keeper   broker.Keeper
	loginKey broker.Key // nil: there is no login
	gateways map[string]string

	mu      sync.Mutex
	secrets []known
	logins  int    // how many of secrets are logins that were made inside, see addLogin
	scope   string // of the login
	refused string // the last access token that its server refused

	settled chan struct{} // closed when the login is not pending
	settle  func()

	resting   resting
	transport http.RoundTripper
	proxy     *httputil.ReverseProxy
	server    *http.Server
	accepted  chan net.Conn
	closed    chan struct{}
	room      chan struct{} // for requests in progress
	kept      atomic.Int64  // see websocket
	close     func()
}

// New makes a broker, which reaches hosts by dial. The caller must call Close.
func New(c broker.Config, keeper broker.Keeper, dial Dial) (*Broker, error) {
	targets, err := c.Targets()
	if err != nil {
		return nil, err
	}
	leaves, err := certificates(c.Authority)
	if err != nil {
		return nil, err
	}
	b := &Broker{
		targets: targets, leaves: leaves, keeper: keeper, secrets: knownOf(c),
		accepted: make(chan net.Conn), closed: make(chan struct{}), settled: make(chan struct{}),
		room: make(chan struct{}, together),
	}
	b.settle = sync.OnceFunc(func() { close(b.settled) })
	if c.Login != nil {
		b.loginKey, b.scope = c.Login.Key, c.Login.Scope
	}
	if c.Login == nil || !c.Login.Pending {
		b.settle()
	}
	b.close = sync.OnceFunc(func() { close(b.closed) })
	b.gateways = c.Gateways
	b.transport = newTransport(c.Roots, dial, c.Gateways, judgedBy(keeper))
	b.proxy = &httputil.ReverseProxy{
		Transport: b.transport, FlushInterval: -1, Rewrite: b.rewrite, ModifyResponse: b.modify, ErrorHandler: b.failed,
		ErrorLog: silent, BufferPool: &buffers{},
	}
	b.server = b.newServer()
	go b.server.Serve(listener{b}) //nolint:errcheck // it ends by Close
	return b, nil
}

func knownOf(c broker.Config) []known {
	var list []known
	for _, s := range c.Secrets {
		list = append(list, known{s, c.Key})
	}
	if l := c.Login; l != nil {
		renewing := broker.Secret{Name: broker.ClaudeRefresh, Hosts: broker.ClaudeHosts}
		list = append(list, known{loginSecret(broker.ClaudeLogin, l.Access), l.Key}, known{renewing, l.Key})
	}
	return list
}

func loginSecret(name, access string) broker.Secret {
	return broker.Secret{
		Name: name, Value: access, Hosts: broker.ClaudeHosts, Forms: []broker.Form{broker.Bearer},
		Paths: broker.ClaudePaths,
	}
}

// silent is the logger for libraries: what they log comes from an agent or
// a server, and may contain a secret.
var silent = log.New(io.Discard, "", 0)

const (
	patience  = 30 * time.Second // for a handshake, and the head of a request
	idle      = 5 * time.Minute
	maxHeader = 64 << 10 // bytes
	together  = 256      // requests in progress: each keeps its head, however slow its client or server is
)

func (b *Broker) newServer() *http.Server {
	server := &http.Server{
		Handler: b, ErrorLog: silent, ReadHeaderTimeout: patience, IdleTimeout: idle, MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if secured, ok := c.(*tls.Conn); ok {
				if conn, ok := secured.NetConn().(*conn); ok {
					return context.WithValue(ctx, targetKey{}, conn.target)
				}
			}
			return ctx
		},
		Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100},
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	return server
}

type targetKey struct{}

// transport talks to the real hosts. It verifies them against the host's own
// authorities, by the name of the target.
type transport struct {
	any     *http.Transport // HTTP/2 if the server speaks it
	upgrade *http.Transport // HTTP/1.1 only, with which a websocket begins
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return t.upgrade.RoundTrip(r)
	}
	return t.any.RoundTrip(r)
}

// NewTransport returns a transport that connects by dial and verifies hosts against roots, in PEM.
func NewTransport(roots []byte, dial Dial) http.RoundTripper {
	return newTransport(roots, dial, nil, nil)
}

// newTransport is [NewTransport] with services of this machine, by the names that stand for them: to these it connects
// itself, without TLS, if judge does not object.
func newTransport(roots []byte, dial Dial, gateways map[string]string, judge Judge) http.RoundTripper {
	trust := sync.OnceValue(func() *x509.CertPool {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(roots)
		return pool
	})
	speaking := func(protocols ...string) *http.Transport {
		return &http.Transport{
			ForceAttemptHTTP2: slices.Contains(protocols, "h2"), DisableCompression: true,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
			DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				target, err := broker.ParseTarget(address)
				if err != nil {
					return nil, err
				}
				if at := gateways[target.Host]; at != "" {
					c, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", at)
					if err != nil {
						return nil, err
					}
					return judge.before(ctx, c)
				}
				return dialTLS(ctx, target, dial, &tls.Config{
					ServerName: target.Host, RootCAs: trust(), MinVersion: tls.VersionTLS12, NextProtos: protocols,
				})
			},
		}
	}
	return transport{any: speaking("h2", "http/1.1"), upgrade: speaking("http/1.1")}
}

func dialTLS(ctx context.Context, target broker.Target, dial Dial, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	raw, err := dial(ctx, target)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return secured, nil
}

// Serve terminates the TLS of a connection from the sandbox and serves it, if target is one of
// [Config.Targets]; else it closes the connection. It returns at once; the connection is closed
// when it is done.
func (b *Broker) Serve(c net.Conn, target broker.Target) {
	if !slices.Contains(b.targets, target) {
		c.Close()
		return
	}
	inner := &conn{Conn: c, target: target}
	secured := tls.Server(inner, &tls.Config{
		Certificates: []tls.Certificate{*b.leaves[target.Host]},
		MinVersion:   tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	})
	select {
	case b.accepted <- secured:
	case <-b.closed:
		c.Close()
	}
}

// Has reports whether connections to a target must be passed to
// [Broker.Serve].
func (b *Broker) Has(target broker.Target) bool { return slices.Contains(b.targets, target) }

// Close ends all connections.
func (b *Broker) Close() error {
	b.close()
	return b.server.Close()
}

// conn is a connection with the target that the client wanted to reach.
type conn struct {
	net.Conn
	target broker.Target
}

// listener passes the connections from [Broker.Serve] to the HTTP server.
type listener struct{ b *Broker }

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.b.accepted:
		return c, nil
	case <-l.b.closed:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { l.b.close(); return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

// ServeHTTP judges a request. It passes the request on with secrets in place
// of its placeholders, or answers it.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, ok := r.Context().Value(targetKey{}).(broker.Target)
	if !ok || r.TLS == nil {
		http.Error(w, "claudebox: not a connection of this launch", http.StatusMisdirectedRequest)
		return
	}
	select {
	case b.room <- struct{}{}:
		defer func() { <-b.room }()
	default:
		why := fmt.Sprintf("beside more than %d others at the same time", together)
		b.stop(w, refuse(http.StatusServiceUnavailable, target, why))
		return
	}
	defer b.resting.during()()
	b.await(r)
	secrets := b.known()
	v := judge(target, secrets, request{
		method: r.Method, serverName: r.TLS.ServerName, host: r.Host, uri: r.RequestURI, url: r.URL, header: r.Header,
	})
	if v.status != 0 {
		b.stop(w, v)
		return
	}
	if b.loginKey != nil && b.oauth(w, r, target) {
		return
	}
	if slices.ContainsFunc(v.swaps, func(s swap) bool { return s.byBody }) {
		if why, at := judgeBody(w, r, target); why != "" {
			v = refuse(http.StatusForbidden, target, why)
			v.refusal.Path = r.URL.EscapedPath() + at
			b.stop(w, v)
			return
		}
	}
	for _, name := range v.used {
		b.keeper.Used(broker.Use{Secret: name, Host: target.String()})
	}
	e := exchange{target: target, swaps: v.swaps}
	for _, s := range secrets {
		if s.isFor(target) {
			e.secrets = append(e.secrets, s)
		}
	}
	b.proxy.ServeHTTP(final{w}, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)))
}

// resting returns memory to the system when no request has been in progress for a second: otherwise
// an idle process would keep the memory of a busy hour.
type resting struct {
	mu    sync.Mutex
	busy  int // requests in progress
	timer *time.Timer
}

// during begins a request; the caller calls end when the request is done.
func (r *resting) during() (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy++
	if r.timer != nil {
		r.timer.Stop()
	}
	return func() {
		const while = time.Second
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.busy--; r.busy == 0 {
			r.timer = time.AfterFunc(while, debug.FreeOSMemory)
		}
	}
}

// final is the writer of an answer that is searched or stripped of secrets. It drops informational responses such
// as early hints (RFC 8297), which would not be.
type final struct{ http.ResponseWriter }

// WriteHeader writes the head of the final answer only.
func (s final) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		s.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for [http.ResponseController].
func (s final) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// await waits, for at most patience, while the login that a request needs is being renewed.
func (b *Broker) await(r *http.Request) {
	select {
	case <-b.settled:
		return
	default:
	}
	if !b.loginKey.In(broker.ClaudeLogin, r.Header.Get("Authorization")) {
		return
	}
	select {
	case <-b.settled:
	case <-r.Context().Done():
	case <-time.After(patience):
	}
}

// exchange is what the broker needs of a request when its answer arrives.
type exchange struct {
	target  broker.Target
	secrets []known
	swaps   []swap
}

type exchangeKey struct{}

// known returns a copy of the current secrets.
func (b *Broker) known() []known {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.secrets)
}

// rewrite makes the outgoing request.
func (b *Broker) rewrite(pr *httputil.ProxyRequest) {
	e := pr.In.Context().Value(exchangeKey{}).(exchange)
	pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = "https", e.target.Address(), e.target.String()
	if at := b.gateways[e.target.Host]; at != "" {
		pr.Out.Host = at
	}
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery
	for name, values := range pr.In.Header {
		if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
			pr.Out.Header[name] = values
		}
	}
	for name := range pr.Out.Header {
		if is := hyphened(name); unsearchable[is] || strings.HasSuffix(is, "Accept-Encoding") {
			pr.Out.Header.Del(name)
		}
	}
	if !strings.EqualFold(pr.Out.Header.Get("Upgrade"), "websocket") { // frames of HTTP/2 could not be searched
		pr.Out.Header.Del("Upgrade")
		pr.Out.Header.Del("Connection")
	}
	for _, s := range e.swaps {
		pr.Out.Header.Set(s.header, s.value)
	}
}

// unsearchable are headers that ask for an answer in which a secret would not be found, because it is compressed, in
// another alphabet, or only a part. That part could be of what an earlier request has left at the server, so they are
// dropped whether there is a placeholder or not; the server then gives the whole (RFC 9110, 14.2).
var unsearchable = map[string]bool{
	"Sec-Websocket-Extensions": true, "Accept-Charset": true, "Range": true, "If-Range": true, "Request-Range": true,
}

var errPacked = errors.New("the answer is packed, so that it cannot be searched for the secret")

// modify has an answer searched for secrets that must not get into the sandbox.
func (b *Broker) modify(in *http.Response) error {
	e := in.Request.Context().Value(exchangeKey{}).(exchange)
	if len(e.swaps) > 0 && isPacked(in.Header) {
		return errPacked
	}
	if in.StatusCode == http.StatusUnauthorized {
		b.noteRefused(e.swaps)
	}
	f := newFinder(e.secrets, e.swaps)
	f.cleanHeader(in.Header)
	f.cleanHeader(in.Trailer) // its names, so far
	if in.StatusCode != http.StatusSwitchingProtocols {
		in.Body = newScanner(in, f)
		return nil
	}
	connection, ok := in.Body.(io.ReadWriteCloser)
	if !ok || len(in.Header["Sec-Websocket-Extensions"]) > 0 {
		return errPacked
	}
	in.Body = newWebsocket(connection, f, &b.kept, func(why string) {
		b.keeper.Report(broker.Refusal{Host: e.target.String(), Why: why})
	})
	return nil
}

// isPacked reports whether an answer, or its messages, are compressed.
func isPacked(h http.Header) bool {
	for _, name := range []string{"Content-Encoding", "Connect-Content-Encoding", "Grpc-Encoding"} {
		if how := strings.Join(h[name], ""); how != "" && !strings.EqualFold(how, "identity") {
			return true
		}
	}
	return false
}

// failed tells the client why there is no answer.
func (b *Broker) failed(w http.ResponseWriter, r *http.Request, err error) {
	e := r.Context().Value(exchangeKey{}).(exchange)
	b.unreachable(w, e.target, err)
}

func (b *Broker) unreachable(w http.ResponseWriter, t broker.Target, err error) {
	why := "it cannot be reached"
	var unverified *tls.CertificateVerificationError
	var stranger strangerError
	switch {
	case errors.As(err, &stranger):
		why = stranger.Error()
	case errors.Is(err, context.Canceled):
		return // the client has gone
	case errors.As(err, &unverified):
		why = "its certificate was not verified, so nothing was sent"
		b.keeper.Report(broker.Refusal{Host: t.String(), Why: why})
	case errors.Is(err, errPacked):
		why = errPacked.Error()
		b.keeper.Report(broker.Refusal{Host: t.String(), Why: why})
	}
	http.Error(w, "claudebox: "+t.String()+": "+why, http.StatusBadGateway)
}

// stop answers a request that is refused, and reports it.
func (b *Broker) stop(w http.ResponseWriter, v verdict) {
	b.keeper.Report(v.refusal)
	what := "this request"
	if v.refusal.Secret != "" {
		what = "the placeholder of " + v.refusal.Secret
	}
	text := "claudebox: " + what + " was stopped on its way to " + v.refusal.Host + ": " + v.refusal.Why
	w.Header().Set("Connection", "close")
	fault := map[string]any{"type": "permission_error", "message": text} // in the format of the API
	answer(w, v.status, map[string]any{"type": "error", "error": fault})
}

// SetLogin changes the access token of Claude's login; empty means that the login has ended.
func (b *Broker) SetLogin(access, scope string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.secrets {
		if b.secrets[i].Name == broker.ClaudeLogin {
			b.secrets[i].Value = access
		}
	}
	b.scope = scope
	b.settle()
}

func (b *Broker) login() (access, scope string, refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.secrets {
		if s.Name == broker.ClaudeLogin {
			access = s.Value
		}
	}
	return access, b.scope, access != "" && access == b.refused
}

// noteRefused remembers that a server refused the login.
func (b *Broker) noteRefused(swaps []swap) {
	access, _, _ := b.login()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range swaps {
		if s.secret == access {
			b.refused = access
		}
	}
}

// mostLogins bounds the logins that are made inside and added to the user's secrets: every answer is searched
// for each of them.
const mostLogins = 32

var tooManyLogins = fmt.Sprintf("a login beyond the %d that one session keeps; start another session", mostLogins)

// addLogin adds a login until the end of the session, and returns its placeholder. It returns false, and adds
// nothing, if there are [mostLogins] already.
func (b *Broker) addLogin(g broker.Grant) (placeholder string, added bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.logins >= mostLogins {
		return "", false
	}
	b.logins++
	name := fmt.Sprintf("login %d that was made inside", b.logins)
	b.secrets = append(b.secrets, known{loginSecret(name, g.Access), b.loginKey})
	return b.loginKey.Placeholder(name, g.Access), true
}

func (b *Broker) holdsPlaceholder(text string) bool {
	return slices.ContainsFunc(b.known(), func(s known) bool { return s.key.In(s.Name, text) })
}

func unescape(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// buffers is a pool of buffers for copying answers.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return *buffer
	}
	return make([]byte, chunk)
}

func (b *buffers) Put(buffer []byte) { b.pool.Put(&buffer) }

// certificates returns the leaves as TLS certificates, by name.
func certificates(a broker.Authority) (map[string]*tls.Certificate, error) {
	key, err := x509.ParsePKCS8PrivateKey(a.Key)
	if err != nil {
		return nil, err
	}
	list := make(map[string]*tls.Certificate, len(a.Leaves))
	for _, leaf := range a.Leaves {
		list[leaf.Name] = &tls.Certificate{Certificate: [][]byte{leaf.DER}, PrivateKey: key}
	}
	return list, nil
}
