package swap

import (
	"bufio"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"claudebox/internal/linux/accept"
	"claudebox/internal/linux/dial"
	"claudebox/internal/secret/broker"
)

// Proxy is how a sandbox that shares the host's network reaches a broker: an
// HTTP proxy on loopback, which needs the password of this launch. Connections
// that are not for the broker pass through it without being decrypted.
type Proxy struct {
	broker   *Broker
	password string
	outward  Outward
	plain    *httputil.ReverseProxy
}

// NewProxy makes a proxy in front of a broker.
func NewProxy(b *Broker, password string, outward Outward) *Proxy {
	return &Proxy{
		broker: b, password: password, outward: outward,
		plain: &httputil.ReverseProxy{
			Rewrite: func(pr *httputil.ProxyRequest) { pr.Out.Host = pr.In.Host },
			Transport: &http.Transport{
				Proxy: outward.proxyOf, DisableCompression: true, DialContext: outward.dial,
				IdleConnTimeout: idle,
			},
			ModifyResponse: outward.strip, FlushInterval: -1, ErrorLog: silent, BufferPool: &buffers{},
			ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
				unreached(w, r.URL.Hostname(), err)
			},
		},
	}
}

// Serve accepts connections until l is closed.
func (p *Proxy) Serve(l net.Listener) error {
	server := &http.Server{
		Handler: p, ErrorLog: silent, ReadHeaderTimeout: patience, IdleTimeout: idle, MaxHeaderBytes: maxHeader,
	}
	return server.Serve(l)
}

// ServeHTTP handles one request to the proxy.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.admits(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="claudebox"`)
		http.Error(w, "claudebox: this proxy belongs to one sandbox", http.StatusProxyAuthRequired)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward(w, r)
	default:
		http.Error(w, "claudebox: this is a proxy", http.StatusBadRequest)
	}
}

func (p *Proxy) admits(r *http.Request) bool {
	kind, encoded, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	said, err := base64.StdEncoding.DecodeString(encoded)
	want := broker.ProxyUser + ":" + p.password
	return err == nil && strings.EqualFold(kind, "basic") && subtle.ConstantTimeCompare(said, []byte(want)) == 1
}

// forward passes on a request in clear text. If it contains a
// placeholder, it is refused and reported: others could read it.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	for _, s := range p.broker.known() {
		if s.hasPlaceholder(r) {
			p.broker.stop(w, verdict{
				status: http.StatusForbidden,
				refusal: broker.Refusal{
					Secret: s.Name, Host: strings.ToLower(r.URL.Host), Path: r.URL.EscapedPath(),
					Why: "without TLS",
				},
			})
			return
		}
	}
	// Some proxies read a method in any case.
	if p.outward.logsIn(r) && strings.EqualFold(r.Method, http.MethodTrace) {
		http.Error(w, "claudebox: TRACE would show the password of your proxy", http.StatusMethodNotAllowed)
		return
	}
	p.plain.ServeHTTP(final{w}, r)
}

// logsIn reports whether a request in clear text goes through a proxy that is sent a password with it.
func (o Outward) logsIn(r *http.Request) bool {
	by, err := o.proxyOf(r)
	return err == nil && by != nil && by.User != nil
}

// strip empties an answer that is no success if the request went through a proxy with a password: it may be the
// proxy's own, which may repeat the request, as Squid's pages did until 7.2 (CVE-2025-62168). It does so whatever the
// answer says. If answers were searched for the password, anybody's could hold a list of usual ones, and the agent
// would see which of them is missing.
func (o Outward) strip(in *http.Response) error {
	if in.StatusCode < http.StatusMultipleChoices || !o.logsIn(in.Request) {
		return nil
	}
	in.Body.Close()
	in.Body, in.ContentLength, in.Trailer = http.NoBody, 0, nil
	for _, name := range []string{"Content-Length", "Content-Encoding", "Trailer"} {
		in.Header.Del(name)
	}
	return nil
}

// hasPlaceholder reports whether a request contains a placeholder in its address or headers.
func (s known) hasPlaceholder(r *http.Request) bool {
	if s.isIn(r.RequestURI) {
		return true
	}
	for name, values := range r.Header {
		for _, value := range values {
			if _, used := s.swap(name, value); used {
				return true
			}
		}
	}
	return false
}

// connect connects a client to the broker, or else to the host that it names.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	target, err := splitTarget(r.URL.Host)
	if err != nil {
		http.Error(w, "claudebox: "+err.Error(), http.StatusBadRequest)
		return
	}
	if brokered := (broker.Target{Host: canonical(target.Host), Port: target.Port}); p.broker.Has(brokered) {
		if client := hijack(w, "200 OK"); client != nil {
			p.broker.Serve(client, brokered)
		}
		return
	}
	server, err := p.outward.Dial(r.Context(), target)
	if err != nil {
		unreached(w, target.Host, err)
		return
	}
	client := hijack(w, "200 OK")
	if client == nil {
		server.Close()
		return
	}
	accept.Join(client, server)
}

// splitTarget reads the HOST:PORT of a CONNECT request. It leaves the host as the client wrote it: for a host that
// is not brokered, a dot at the end keeps the machine's search domains away.
func splitTarget(text string) (broker.Target, error) {
	host, digits, err := net.SplitHostPort(text)
	if err != nil {
		return broker.Target{}, errors.New("no host and port")
	}
	port, err := strconv.Atoi(digits)
	if err != nil || port < 1 || port > 65535 {
		return broker.Target{}, errors.New("no port")
	}
	return broker.Target{Host: host, Port: port}, nil
}

// unreached answers that a host cannot be reached. The status line says why, as that is all that most clients show.
func unreached(w http.ResponseWriter, host string, err error) {
	if client := hijack(w, "502 "+reason(host, err)+"\r\nContent-Length: 0\r\nConnection: close"); client != nil {
		client.Close()
	}
}

// reason returns in ASCII why a host cannot be reached, if that is known. Nothing that another machine sent is in it.
func reason(host string, err error) string {
	host = strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return '?'
		}
		return c
	}, host)
	var stranger strangerError
	var lookup *net.DNSError
	var by *net.OpError
	var late net.Error
	switch {
	case errors.As(err, &stranger):
		return "your proxy: " + stranger.Error()
	case errors.As(err, &by) && by.Op == byProxy:
		return host + " cannot be reached by the proxy of this machine"
	case errors.As(err, &lookup):
		return host + " cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused by " + host
	case errors.As(err, &late) && late.Timeout():
		return host + " does not answer"
	}
	return host + " cannot be reached"
}

// byProxy is the operation of which [http.Transport] says that a proxy failed in it.
const byProxy = "proxyconnect"

// hijack answers a request with a status, which may have fields after it, and returns its connection; nil when the
// client has gone.
func hijack(w http.ResponseWriter, status string) net.Conn {
	taken, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	if _, err := io.WriteString(taken, "HTTP/1.1 "+status+"\r\n\r\n"); err != nil {
		taken.Close()
		return nil
	}
	_ = taken.SetDeadline(time.Time{}) // clears the server's own deadline
	if buffered.Reader.Buffered() == 0 {
		return taken
	}
	return early{taken, buffered.Reader}
}

// early is a connection whose first bytes have been read into a buffer.
type early struct {
	net.Conn
	r *bufio.Reader
}

func (c early) Read(p []byte) (int, error) { return c.r.Read(p) }

// CloseWrite shuts down the writing side of the connection.
func (c early) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Outward connects to hosts as the sandbox's own environment would: through
// a proxy if the environment names one for the host.
type Outward struct {
	proxy  func(*url.URL) (*url.URL, error)
	dialer *net.Dialer
	known  []string // HOST:PORT of the proxies that are sent a password
	judge  Judge    // of connections to these
}

// NewOutward returns an Outward that uses the given proxies. A password is sent on connections to which judge does not
// object.
func NewOutward(p broker.Proxies, judge Judge) Outward {
	settings := httpproxy.Config{HTTPSProxy: p.HTTPS, HTTPProxy: p.HTTP, NoProxy: p.No}
	o := Outward{proxy: settings.ProxyFunc(), dialer: &net.Dialer{Timeout: patience}, judge: judge}
	for _, text := range []string{p.HTTPS, p.HTTP} {
		one := httpproxy.Config{HTTPSProxy: text}
		by, err := one.ProxyFunc()(&url.URL{Scheme: "https", Host: "any.invalid"})
		if err == nil && by != nil && by.User != nil {
			o.known = append(o.known, proxyAddress(by))
		}
	}
	return o
}

// proxyAddress is the HOST:PORT of a proxy, as [http.Transport] dials it.
func proxyAddress(by *url.URL) string {
	usual := map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}
	return net.JoinHostPort(by.Hostname(), cmp.Or(by.Port(), usual[by.Scheme], "80"))
}

func (o Outward) proxyOf(r *http.Request) (*url.URL, error) { return o.proxy(r.URL) }

// Dial connects to a target, for HTTPS, directly or through a proxy.
func (o Outward) Dial(ctx context.Context, target broker.Target) (net.Conn, error) {
	address := target.Address()
	by, err := o.proxy(&url.URL{Scheme: "https", Host: address})
	if err != nil {
		return nil, err
	}
	if by == nil {
		return o.dial(ctx, "tcp", address)
	}
	c, err := o.through(ctx, by, address)
	if err != nil {
		return nil, &net.OpError{Op: byProxy, Net: "tcp", Err: err}
	}
	return c, nil
}

// dial connects to HOST:PORT directly, which may be that of a proxy.
func (o Outward) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, _, err := dial.Dial(ctx, o.dialer, network, address, dial.Any)
	if err != nil || !slices.Contains(o.known, address) {
		return c, err
	}
	return o.judge.before(ctx, c)
}

// through connects to address through an HTTP proxy (CONNECT).
func (o Outward) through(ctx context.Context, by *url.URL, address string) (net.Conn, error) {
	if by.Scheme != "http" {
		return nil, fmt.Errorf("a proxy of kind %q is not known", by.Scheme)
	}
	c, err := o.dial(ctx, "tcp", proxyAddress(by))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	head := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n"
	if by.User != nil {
		password, _ := by.User.Password()
		said := base64.StdEncoding.EncodeToString([]byte(by.User.Username() + ":" + password))
		head += "Proxy-Authorization: Basic " + said + "\r\n"
	}
	r := bufio.NewReader(c)
	if _, err := io.WriteString(c, head+"\r\n"); err != nil {
		c.Close()
		return nil, err
	}
	in, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err == nil && in.StatusCode != http.StatusOK {
		err = fmt.Errorf("the proxy %s answers %s", by.Host, strconv.Itoa(in.StatusCode))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	if r.Buffered() > 0 {
		return early{c, r}, nil
	}
	return c, nil
}
