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

// keyOf returns a public key in all forms of [sshagent.Key].
func keyOf(k ssh.PublicKey) sshagent.Key {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
	return sshagent.Key{Blob: k.Marshal(), Line: line, Fingerprint: ssh.FingerprintSHA256(k)}
}

// ParseKey reads a public key in the format of a .pub file or of authorized_keys.
func ParseKey(line []byte) (sshagent.Key, error) {
	k, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return sshagent.Key{}, errors.New("it is no public key of ssh")
	}
	return keyOf(k), nil
}

// ErrPassphrase means that a private key is protected by a passphrase.
var ErrPassphrase = errors.New("it has a passphrase")

// ParsePrivate reads a private key and returns its public key.
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

// Held returns the public keys of the agent at a socket. It waits at most 2 s for the connection, and then at most 2 s
// for the answer.
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
		if k, err := ssh.ParsePublicKey(k.Blob); err == nil { // skip kinds of keys not known here
			held = append(held, keyOf(k))
		}
	}
	return held, nil
}

// KnownHost finds the keys of a host ("github.com", or with a port that is not 22) in known_hosts files; none if it is
// not there. lines are the known_hosts lines with these keys, for ssh in the sandbox.
func KnownHost(files []string, host string) (h sshagent.Host, lines string, err error) {
	known, err := knownhosts.New(files...)
	if err != nil {
		return sshagent.Host{}, "", err
	}
	address := host
	if !strings.Contains(host, ":") {
		address += ":22"
	}
	// Package knownhosts lists a host's keys only in its error about a wrong key, so it is asked about one.
	wrongKey, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return sshagent.Host{}, "", err
	}
	h.Name = host
	var wants *knownhosts.KeyError
	if errors.As(known(address, &net.TCPAddr{}, wrongKey), &wants) {
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

// isMarked reports whether a line is not for a host's own key: it is for an authority
// (@cert-authority), or revokes a key. A line that cannot be read counts as marked.
func isMarked(k knownhosts.KnownKey) bool {
	content, err := os.ReadFile(k.Filename)
	lines := strings.Split(string(content), "\n")
	return err != nil || k.Line > len(lines) || strings.HasPrefix(strings.TrimSpace(lines[k.Line-1]), "@")
}

// AnswerKeys answers what [sshagent.AskKeys] asks, in a process of its own. Its error is always nil, and is there for
// [aside.Answer].
func AnswerKeys(q sshagent.Question) (found sshagent.Found, err error) {
	if q.Agent != "" {
		found.Held, _ = Held(q.Agent) // an agent that does not answer holds none
	}
	found.Public = parsed(q.Public, ParseKey)
	found.Private = parsed(q.Private, ParsePrivate)
	for _, name := range q.Hosts {
		host, lines, err := KnownHost(q.Known, name)
		found.Hosts = append(found.Hosts, sshagent.Known{Host: host, Lines: lines, Why: text(err)})
	}
	return found, nil
}

// parsed returns what parse makes of a file's content; the zero value if there is no content.
func parsed(content []byte, parse func([]byte) (sshagent.Key, error)) sshagent.Parsed {
	if content == nil {
		return sshagent.Parsed{}
	}
	key, err := parse(content)
	return sshagent.Parsed{Key: key, Why: text(err)}
}

// text returns the text of an error; empty if it is nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
