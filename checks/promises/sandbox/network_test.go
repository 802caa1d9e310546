//go:build lab

package sandbox_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// greet serves every connection of a listener with one line.
func greet(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	must.Do(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("hello\n"))
			conn.Close()
		}
	}()
	return l
}

// X11, D-Bus and others listen on abstract sockets, which no mount hides.
func TestAbstractSocketsOfTheHostAreClosed(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			if tier == "full" && !closesAbstractSockets(t) {
				t.Skip()
			}
			name := "@claudebox-test-" + strconv.Itoa(os.Getpid()) + "-" + tier
			greet(t, "unix", name)
			got := succeed(t, w.withProbe([]string{"talk", "unix", name}, "--network", tier))
			if got != "refused: EPERM\n" && got != "refused: ECONNREFUSED\n" {
				t.Errorf("the probe says %q", got)
			}
		})
	}
}

func TestAServiceOfTheHostsLoopback(t *testing.T) {
	for tier, want := range map[string]string{"full": "heard: hello\n\n", "none": "refused: ECONNREFUSED\n"} {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			service := greet(t, "tcp", "127.0.0.1:0")
			got := succeed(t, w.withProbe([]string{"talk", "tcp", service.Addr().String()}, "--network", tier))
			wantEqual(t, got, want)
		})
	}
}

func TestTierNoneHasNothingButItsLoopback(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `
		sed -n 's/^ *\([^ ]*\): .*/\1/p' /proc/net/dev
		cat /proc/net/route | wc -l
		[ -e /etc/resolv.conf ] || echo no resolver
		for a in 10.0.0.1 169.254.169.254 198.51.100.1; do (exec 3<>/dev/tcp/$a/80) 2>&1 | grep -o 'Network is unreachable' | head -1; done
		cat /etc/hosts`, "--network", "none")
	wantEqual(t, got, `lo
1
no resolver
Network is unreachable
Network is unreachable
Network is unreachable
127.0.0.1 localhost
::1 localhost
127.0.0.1 claudebox
`)
}

func TestTheLoopbackWorksInEveryTier(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			file := w.profile(t, "packages: [python3]", "network: "+tier)
			got := w.inside(t, `python3 - <<'END'
import socket, threading
for host in ("127.0.0.1", "::1", "localhost", "claudebox"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, 0), family=family)
    threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
    print(socket.create_connection(server.getsockname()[:2]).recv(5).decode())
END`, "--profile", file)
			wantEqual(t, got, strings.Repeat("hello\n", 4))
		})
	}
}

func TestTheResolversConfigurationIsACopyInFull(t *testing.T) {
	w := newWorld(t)
	outside, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Skip("this machine has no resolver")
	}
	got := w.inside(t, `[ -L /etc/resolv.conf ] || cat /etc/resolv.conf; if echo x >/etc/resolv.conf; then echo written; fi 2>/dev/null`)
	wantEqual(t, got, string(outside))
}

// A company's certificate authority in the caller's bundle counts inside, at
// the bundle's usual place.
func TestAnAuthorityOfTheHostsBundleIsTrustedInside(t *testing.T) {
	w := newWorld(t)
	bundle, server := companyServer(t)
	script := "curl -sS --max-time 20 " + server.URL
	w.env["SSL_CERT_FILE"] = w.write(t, "company/bundle.pem", bundle)
	wantEqual(t, w.inside(t, script+`; echo; echo "$SSL_CERT_FILE $NIX_SSL_CERT_FILE"`),
		"hello\n/etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt\n")
	link := w.link(t, "bundle.pem", "company/link.pem")
	w.env["NIX_SSL_CERT_FILE"], w.env["SSL_CERT_FILE"] = link, "/nowhere"
	wantEqual(t, w.inside(t, script), "hello")
	delete(w.env, "NIX_SSL_CERT_FILE")
	delete(w.env, "SSL_CERT_FILE")
	w.env["NODE_EXTRA_CA_CERTS"] = w.path("company/bundle.pem") // as a company's users have it for Claude Code
	wantEqual(t, w.inside(t, script+`; echo; grep -c BEGIN "$NODE_EXTRA_CA_CERTS"`), "hello\n2\n")
	delete(w.env, "NODE_EXTRA_CA_CERTS")
	if got := run(t, w.session(script)); got.status != 60 { // curl: the peer's certificate cannot be authenticated
		t.Errorf("without the bundle: status %d, %s", got.status, got.stderr)
	}
}

// companyServer is an HTTPS server with a certificate that only its bundle
// vouches for.
func companyServer(t *testing.T) (bundle string, server *httptest.Server) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Company"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: authority.NotBefore,
		NotAfter: authority.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	must.Do(t, err)
	signed, err := x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, key)
	must.Do(t, err)
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that refuses is part of the test
	server.StartTLS()
	t.Cleanup(server.Close)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})), server
}
