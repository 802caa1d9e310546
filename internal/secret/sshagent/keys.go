package sshagent

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Key is a public one.
type Key struct {
	Blob        []byte // as ssh sends it
	Line        string // as a file has it, without a comment
	Fingerprint string
}

func keyOf(k ssh.PublicKey) Key {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
	return Key{Blob: k.Marshal(), Line: line, Fingerprint: ssh.FingerprintSHA256(k)}
}

// ParseKey reads a public key as a file has it.
func ParseKey(line []byte) (Key, error) {
	k, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return Key{}, errors.New("it is no public key of ssh")
	}
	return keyOf(k), nil
}

// ErrPassphrase says that a private key has one.
var ErrPassphrase = errors.New("it has a passphrase")

// ParsePrivate reads the public key of a private one.
func ParsePrivate(file []byte) (Key, error) {
	signer, err := ssh.ParsePrivateKey(file)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return Key{}, ErrPassphrase
	case err != nil:
		return Key{}, errors.New("it is no private key of ssh")
	}
	return keyOf(signer.PublicKey()), nil
}

// Held are the keys of the agent at a socket.
func Held(socket string) ([]Key, error) {
	const patience = 2 * time.Second
	conn, err := net.DialTimeout("unix", socket, patience)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	list, err := agent.NewClient(conn).List()
	if err != nil {
		return nil, err
	}
	var held []Key
	for _, k := range list {
		if k, err := ssh.ParsePublicKey(k.Blob); err == nil { // else of a kind that is not known here
			held = append(held, keyOf(k))
		}
	}
	return held, nil
}

// Has reports whether a key is among others.
func Has(list []Key, k Key) bool {
	for _, other := range list {
		if bytes.Equal(other.Blob, k.Blob) {
			return true
		}
	}
	return false
}

// KnownHost finds the keys of a host, "github.com" or with a port that is not 22,
// in files of known hosts, and writes the lines by which ssh knows it inside.
func KnownHost(files []string, host string) (h Host, lines string, err error) {
	known, err := knownhosts.New(files...)
	if err != nil {
		return Host{}, "", err
	}
	address := host
	if !strings.Contains(host, ":") {
		address += ":22"
	}
	nobody, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return Host{}, "", err
	}
	h.Name = host
	var wants *knownhosts.KeyError
	if errors.As(known(address, &net.TCPAddr{}, nobody), &wants) {
		for _, k := range wants.Want {
			if isMarked(k) {
				continue
			}
			h.Keys = append(h.Keys, k.Key.Marshal())
			lines += knownhosts.Line([]string{address}, k.Key) + "\n"
		}
	}
	return h, lines, nil
}

// isMarked reports whether a line is not of a host's own key: of an authority
// (@cert-authority), or of one that is revoked.
func isMarked(k knownhosts.KnownKey) bool {
	content, err := os.ReadFile(k.Filename)
	lines := strings.Split(string(content), "\n")
	return err != nil || k.Line > len(lines) || strings.HasPrefix(strings.TrimSpace(lines[k.Line-1]), "@")
}
