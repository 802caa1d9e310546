package account

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"time"
)

// tunnel joins the client of a CONNECT request with an address on loopback,
// until one of them leaves.
func tunnel(w http.ResponseWriter, address string) error {
	inside, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer inside.Close()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return errors.New("bug: connection cannot be taken over")
	}
	client, buffered, err := hijacker.Hijack()
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return nil //nolint:nilerr // the client has left, and nobody is there to be told
	}
	done := make(chan struct{}, 2)
	copyOne := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go copyOne(inside, buffered)
	go copyOne(client, inside)
	<-done
	return nil
}

// certify makes a certificate for the hosts that signs itself, and gives it
// in PEM as well, to be trusted.
func certify(hosts []string) (certificate tls.Certificate, roots []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: hosts,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots, nil
}
