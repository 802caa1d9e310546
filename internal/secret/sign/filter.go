package sign

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"claudebox/internal/secret/sshagent"
)

// filter is the agent at the other end of one connection. What the rules allow it passes on to keys, which signs.
type filter struct {
	rules sshagent.Rules
	keys  agent.ExtendedAgent
	tell  func(sshagent.Use)
	bound *binding // what [filter.Extension] was told of; nil: nothing
}

// binding is the ssh connection, from the sandbox to a host, for which the connection to the agent was made.
type binding struct {
	session []byte // its session id
	host    string // name of the host
	key     []byte // public key of the host, which the host proved to hold
	spoiled string // why nothing is signed for it any more; empty: the rules decide
}

var errRefused = errors.New("refused")

// List lists the keys that may be used at all: all of them if any host is listed, else the one for git.
func (f *filter) List() ([]*agent.Key, error) {
	list, err := f.keys.List()
	return slices.DeleteFunc(list, func(k *agent.Key) bool {
		return len(f.rules.Hosts) == 0 && !bytes.Equal(k.Blob, f.rules.Git)
	}), err
}

// SignWithFlags signs data if the rules allow it, and reports the use or the refusal.
func (f *filter) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	use := f.judge(key.Marshal(), data)
	if use.Refused != "" {
		f.tell(use)
		return nil, errRefused
	}
	signature, err := f.keys.SignWithFlags(key, data, flags)
	if err == nil {
		f.tell(use)
	}
	return signature, err
}

// Sign is SignWithFlags without flags.
func (f *filter) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return f.SignWithFlags(key, data, 0)
}

// judge decides whether data may be signed with a key: a signature of git, or a login to the host that f is bound to.
func (f *filter) judge(key, data []byte) sshagent.Use {
	refuse := func(why string) sshagent.Use { return sshagent.Use{Refused: why} }
	if f.bound != nil && f.bound.spoiled != "" {
		return refuse(f.bound.spoiled)
	}
	if namespace, ok := parseSignature(data); ok {
		switch {
		case namespace != "git":
			return refuse("the namespace is not git's")
		case f.rules.Git == nil || !bytes.Equal(key, f.rules.Git):
			return refuse("it is asked of another key than user.signingkey's")
		}
		return sshagent.Use{Git: true}
	}
	login, ok := parseLogin(data)
	switch {
	case !ok:
		return refuse("it is neither git's nor a login")
	case len(f.rules.Hosts) == 0:
		return refuse("no host may be logged in to")
	case !bytes.Equal(login.key, key):
		return refuse("a login with another key")
	case f.bound == nil:
		return refuse("a login to a host that did not prove who it is")
	case !bytes.Equal(login.session, f.bound.session) || login.host != nil && !bytes.Equal(login.host, f.bound.key):
		return refuse("a login to another host")
	}
	return sshagent.Use{Host: f.bound.host}
}

// bindName is the extension by which ssh says which host it is connected to
// (PROTOCOL.agent of OpenSSH, section 1).
const bindName = "session-bind@openssh.com"

// mostBind bounds what [filter.Extension] reads, in bytes: a key of 16,384 bits, with its signature, is shorter.
const mostBind = 16 << 10

// Extension handles bindName only: it binds the connection to a host that has signed the id of the ssh session with its
// key. That works once, and only for a host that may be logged in to: a key is compared with those before anything of
// it is read, because to verify one of a size that an agent chose takes as long as the agent likes. After any other
// attempt nothing is signed on the connection any more, unless it is only the signature that is wrong.
func (f *filter) Extension(name string, content []byte) ([]byte, error) {
	if name != bindName {
		return nil, agent.ErrExtensionUnsupported
	}
	var bind struct {
		Key, Session, Signature []byte
		Forwarded               bool
	}
	if len(content) > mostBind {
		f.tell(sshagent.Use{Refused: fmt.Sprintf("a host's key of more than %d KiB", mostBind>>10)})
		f.bound = &binding{spoiled: "the host's key is too long"}
		return nil, errRefused
	}
	if ssh.Unmarshal(content, &bind) != nil {
		return nil, errRefused
	}
	at := slices.IndexFunc(f.rules.Hosts, func(h sshagent.Host) bool {
		return slices.ContainsFunc(h.Keys, func(k []byte) bool { return bytes.Equal(k, bind.Key) })
	})
	switch {
	case f.bound != nil:
		f.bound = &binding{spoiled: "the connection is for two hosts"}
	case bind.Forwarded:
		f.bound = &binding{spoiled: "the connection is forwarded"}
	case at < 0:
		f.bound = &binding{spoiled: "the host is not listed, or has another key than in known_hosts"}
	case verify(bind.Key, bind.Session, bind.Signature):
		f.bound = &binding{session: bind.Session, host: f.rules.Hosts[at].Name, key: bind.Key}
		return nil, nil
	}
	return nil, errRefused
}

// verify reports whether a key, which is one of the user's known hosts, has signed data.
func verify(blob, data, signed []byte) bool {
	var signature ssh.Signature
	key, err := ssh.ParsePublicKey(blob)
	return err == nil && ssh.Unmarshal(signed, &signature) == nil && key.Verify(data, &signature) == nil
}

// The remaining methods change keys or return signers, which nobody inside the sandbox may do.

func (f *filter) Add(agent.AddedKey) error       { return errRefused }
func (f *filter) Remove(ssh.PublicKey) error     { return errRefused }
func (f *filter) RemoveAll() error               { return errRefused }
func (f *filter) Lock([]byte) error              { return errRefused }
func (f *filter) Unlock([]byte) error            { return errRefused }
func (f *filter) Signers() ([]ssh.Signer, error) { return nil, errRefused }

// parseSignature reads the data that `ssh-keygen -Y sign` wants signed (PROTOCOL.sshsig
// of OpenSSH). ok is false for any other data.
func parseSignature(data []byte) (namespace string, ok bool) {
	const magic = "SSHSIG"
	var signed struct{ Namespace, Reserved, Hash, Sum string }
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok || ssh.Unmarshal(rest, &signed) != nil {
		return "", false
	}
	length := map[string]int{"sha256": 32, "sha512": 64}[signed.Hash]
	return signed.Namespace, length != 0 && len(signed.Sum) == length
}

// login is the data that ssh wants signed to log in (RFC 4252, section 7).
type login struct {
	session []byte
	key     []byte
	host    []byte // the host's public key; nil: the request does not name it
}

// hostBound is the authentication method whose request also names the host's key
// (PROTOCOL of OpenSSH).
const hostBound = "publickey-hostbound-v00@openssh.com"

// parseLogin reads the data that ssh wants signed to log in. ok is false for any other data.
func parseLogin(data []byte) (l login, ok bool) {
	var said struct {
		Session   []byte
		Message   byte
		User      string
		Service   string
		Method    string
		Signs     bool
		Algorithm string
		Key       []byte
		Rest      []byte `ssh:"rest"`
	}
	const request = 50 // SSH_MSG_USERAUTH_REQUEST
	if ssh.Unmarshal(data, &said) != nil || said.Message != request || said.Service != "ssh-connection" || !said.Signs {
		return login{}, false
	}
	switch said.Method {
	case "publickey": // of any host whose session the bound one signed; many servers know no other method
		return login{session: said.Session, key: said.Key}, len(said.Rest) == 0
	case hostBound:
		var bound struct{ Host []byte }
		if ssh.Unmarshal(said.Rest, &bound) != nil {
			return login{}, false
		}
		return login{session: said.Session, key: said.Key, host: bound.Host}, true
	}
	return login{}, false
}
