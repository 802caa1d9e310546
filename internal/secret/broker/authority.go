package broker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"time"
)

// Authority is a certificate authority that a sandbox trusts in addition to the host's. It is limited to
// the names of this launch by a constraint in its certificate. The key
// that signed the certificates is not kept.
type Authority struct {
	Certificate []byte `json:"certificate"` // PEM: what the sandbox is given
	Key         []byte `json:"key"`         // PKCS #8, the one key of all leaves
	Leaves      []Leaf `json:"leaves"`
}

// Leaf is the certificate for one name.
type Leaf struct {
	Name string `json:"name"`
	DER  []byte `json:"der"`
}

// A running Claude Code cannot be made to trust a new authority, so the authority must last as
// long as the longest session. It is dropped when the session ends.
const lifetime = 365 * 24 * time.Hour

// NewAuthority makes an authority with a certificate for each name. They are valid from a day before now,
// since the clock of a sandbox may be slow.
func NewAuthority(names []string, now time.Time) (Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, err
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	template := validity(now)
	template.Subject = pkix.Name{CommonName: "claudebox, of this launch"}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	template.PermittedDNSDomainsCritical, template.PermittedDNSDomains = true, names
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Authority{}, err
	}
	parent, err := x509.ParseCertificate(der)
	if err != nil {
		return Authority{}, err
	}
	a := Authority{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	return a, a.addLeaves(names, parent, key, now)
}

// addLeaves signs a certificate for each name, all with one key.
func (a *Authority) addLeaves(names []string, parent *x509.Certificate, signer *ecdsa.PrivateKey, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if a.Key, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		return err
	}
	for _, name := range names {
		template := validity(now)
		template.DNSNames = []string{name}
		template.KeyUsage = x509.KeyUsageDigitalSignature
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			return err
		}
		a.Leaves = append(a.Leaves, Leaf{Name: name, DER: der})
	}
	return nil
}

func validity(now time.Time) *x509.Certificate {
	const serialBits = 120
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)) // never fails (Go 1.24)
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(lifetime)}
}
