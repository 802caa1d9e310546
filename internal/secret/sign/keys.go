package sign

import (
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"claudebox/internal/secret/sshagent"
)

func keyOf(k ssh.PublicKey) sshagent.Key {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
	return sshagent.Key{Blob: k.Marshal(), Line: line, Fingerprint: ssh.FingerprintSHA256(k)}
}

// ParseKey reads a public key as a file has it.
func ParseKey(line []byte) (sshagent.Key, error) {
	k, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return sshagent.Key{}, errors.New("it is no public key of ssh")
	}
	return keyOf(k), nil
}

// ErrPassphrase says that a private key has one.
var ErrPassphrase = errors.New("it has a passphrase")

// ParsePrivate reads the public key of a private one.
func ParsePrivate(file []byte) (sshagent.Key, error) {
	signer, err := ssh.ParsePrivateKey(file)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return sshagent.Key{}, ErrPassphrase
	case err != nil:
		return sshagent.Key{}, errors.New("it is no private key of ssh")
	}
	return keyOf(signer.PublicKey()), nil
}

// Held are the keys of the agent at a socket.
func Held(socket string) ([]sshagent.Key, error) {
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
	var held []sshagent.Key
	for _, k := range list {
		if k, err := ssh.ParsePublicKey(k.Blob); err == nil { // else of a kind that is not known here
			held = append(held, keyOf(k))
		}
	}
	return held, nil
}

// KnownHost finds the keys of a host, "github.com" or with a port that is not 22,
// in files of known hosts, and writes the lines by which ssh knows it inside.
func KnownHost(files []string, host string) (h sshagent.Host, lines string, err error) {
	known, err := knownhosts.New(files...)
	if err != nil {
		return sshagent.Host{}, "", err
	}
	address := host
	if !strings.Contains(host, ":") {
		address += ":22"
	}
	nobody, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return sshagent.Host{}, "", err
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

// Look answers what claudebox asks of a user's ssh.
func Look(q sshagent.Question) (found sshagent.Found, err error) {
	if q.Agent != "" {
		found.Held, _ = Held(q.Agent) // one that cannot be asked holds none
	}
	found.Public = parsed(q.Public, ParseKey)
	found.Private = parsed(q.Private, ParsePrivate)
	for _, name := range q.Hosts {
		host, lines, err := KnownHost(q.Known, name)
		found.Hosts = append(found.Hosts, sshagent.Known{Host: host, Lines: lines, Why: text(err)})
	}
	return found, nil
}

func parsed(content []byte, parse func([]byte) (sshagent.Key, error)) sshagent.Parsed {
	if content == nil {
		return sshagent.Parsed{}
	}
	key, err := parse(content)
	return sshagent.Parsed{Key: key, Why: text(err)}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
