package swap

import (
	"bufio"
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
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

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
				Proxy: outward.proxyOf, DisableCompression: true, DialContext: outward.dialer.DialContext,
				IdleConnTimeout: idle,
			},
			FlushInterval: -1, ErrorLog: silent, BufferPool: &buffers{},
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
		if s.inClear(r) {
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
	p.plain.ServeHTTP(w, r)
}

// inClear reports whether a request contains a placeholder in its address or headers.
func (s known) inClear(r *http.Request) bool {
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
		if client := takeOver(w); client != nil {
			p.broker.Serve(client, brokered)
		}
		return
	}
	server, err := p.outward.Dial(r.Context(), target)
	if err != nil {
		http.Error(w, "claudebox: "+target.Host+" cannot be reached", http.StatusBadGateway)
		return
	}
	client := takeOver(w)
	if client == nil {
		server.Close()
		return
	}
	join(client, server)
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

// takeOver answers 200 to a CONNECT request and returns its connection; nil when the
// client has gone.
func takeOver(w http.ResponseWriter) net.Conn {
	taken, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	if _, err := io.WriteString(taken, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		taken.Close()
		return nil
	}
	_ = taken.SetDeadline(time.Time{}) // clears the server's own deadline
	if buffered.Reader.Buffered() == 0 {
		return taken
	}
	return early{taken, buffered.Reader}
}

// early is a connection of which some bytes are already in a buffer.
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

// join copies between a and b in both directions until both have ended, and closes them.
func join(a, b net.Conn) {
	defer a.Close()
	defer b.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyTo(a, b)
	}()
	copyTo(b, a)
	<-done
}

// copyTo copies until the end of from, and then shuts down writing on to. If that fails it closes both.
func copyTo(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		to.Close()
		from.Close()
	}
}

// Outward connects to hosts as the sandbox's own environment would: through
// a proxy if the environment names one for the host.
type Outward struct {
	proxy  func(*url.URL) (*url.URL, error)
	dialer *net.Dialer
}

// NewOutward returns an Outward that uses the given proxies.
func NewOutward(p broker.Proxies) Outward {
	settings := httpproxy.Config{HTTPSProxy: p.HTTPS, HTTPProxy: p.HTTP, NoProxy: p.No}
	return Outward{proxy: settings.ProxyFunc(), dialer: &net.Dialer{Timeout: patience}}
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
		return o.dialer.DialContext(ctx, "tcp", address)
	}
	return o.through(ctx, by, address)
}

// through connects to address through an HTTP proxy (CONNECT).
func (o Outward) through(ctx context.Context, by *url.URL, address string) (net.Conn, error) {
	if by.Scheme != "http" {
		return nil, fmt.Errorf("a proxy of kind %q is not known", by.Scheme)
	}
	host := by.Host
	if by.Port() == "" {
		host = net.JoinHostPort(by.Hostname(), "80")
	}
	c, err := o.dialer.DialContext(ctx, "tcp", host)
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
