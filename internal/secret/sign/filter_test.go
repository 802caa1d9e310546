package sign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"claudebox/checks/kit/must"
	"claudebox/internal/secret/sshagent"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the library notes what it refuses
	os.Exit(m.Run())
}

// user has a key that signs for git and another, in an agent, and a host that
// may be logged in to.
type user struct {
	git, other, host, stranger ssh.Signer
	ring                       *recorder
	rules                      sshagent.Rules
	uses                       []sshagent.Use
}

// recorder is the agent that has the keys. It remembers what it signed.
type recorder struct {
	agent.ExtendedAgent
	signed [][]byte
}

func (r *recorder) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	r.signed = append(r.signed, slices.Clone(data))
	return r.ExtendedAgent.SignWithFlags(key, data, flags)
}

func newUser(t testing.TB) *user {
	t.Helper()
	u := &user{ring: &recorder{ExtendedAgent: agent.NewKeyring().(agent.ExtendedAgent)}}
	made := func() (ssh.Signer, ed25519.PrivateKey) {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		must.Do(t, err)
		signer, err := ssh.NewSignerFromKey(private)
		must.Do(t, err)
		return signer, private
	}
	for _, signer := range []*ssh.Signer{&u.git, &u.other} {
		var private ed25519.PrivateKey
		*signer, private = made()
		must.Do(t, u.ring.Add(agent.AddedKey{PrivateKey: private}))
	}
	u.host, _ = made()
	u.stranger, _ = made()
	u.rules = sshagent.Rules{
		Git: u.git.PublicKey().Marshal(), Hosts: []sshagent.Host{{Name: "good.test", Keys: [][]byte{u.host.PublicKey().Marshal()}}},
	}
	return u
}

// connect is a new connection to the agent inside.
func (u *user) connect(t testing.TB) (agent.ExtendedAgent, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	go serve(theirs, &filter{rules: u.rules, keys: u.ring, tell: func(use sshagent.Use) { u.uses = append(u.uses, use) }})
	must.Do(t, ours.SetDeadline(time.Now().Add(time.Minute)))
	return agent.NewClient(ours), ours
}

func signature(namespace, hash string, sum []byte, more string) []byte {
	fields := struct{ Namespace, Reserved, Hash, Sum string }{namespace, "", hash, string(sum)}
	return append(append([]byte("SSHSIG"), ssh.Marshal(fields)...), more...)
}

var sum = sha512.Sum512([]byte("a commit"))

// request is what ssh signs to log in.
func (u *user) request(session string, key ssh.PublicKey, method, service string, host []byte) []byte {
	data := ssh.Marshal(struct {
		Session               string
		Message               byte
		User, Service, Method string
		Signs                 bool
		Algorithm, Key        string
	}{session, 50, "git", service, method, true, key.Type(), string(key.Marshal())})
	if host != nil {
		data = append(data, ssh.Marshal(struct{ Key []byte }{host})...)
	}
	return data
}

// endless is a host's key of RSA whose signature takes minutes to verify.
var endless = ssh.Marshal(struct {
	Key, Session, Signature []byte
	Forwarded               bool
}{
	ssh.Marshal(struct {
		Kind string
		E, N *big.Int
	}{"ssh-rsa", new(big.Int).Lsh(big.NewInt(1), 999_999), new(big.Int).Lsh(big.NewInt(1), 1_000_000)}), []byte("session"), nil, false,
})

func bind(t testing.TB, host ssh.Signer, signedFor, session string, forwarded bool) []byte {
	t.Helper()
	proof, err := host.Sign(rand.Reader, []byte(signedFor))
	must.Do(t, err)
	return ssh.Marshal(struct {
		Key, Session, Signature []byte
		Forwarded               bool
	}{host.PublicKey().Marshal(), []byte(session), ssh.Marshal(*proof), forwarded})
}

// Promise: no ssh key.
func TestOnlyGitsSignaturesAreMade(t *testing.T) {
	u := newUser(t)
	good := signature("git", "sha512", sum[:], "")
	for name, tc := range map[string]struct {
		key  ssh.Signer
		data []byte
		want string
	}{
		"git":                              {u.git, good, ""},
		"git, SHA-256":                     {u.git, signature("git", "sha256", sum[:32], ""), ""},
		"another namespace":                {u.git, signature("file", "sha512", sum[:], ""), "namespace"},
		"a namespace that begins with git": {u.git, signature("git\x00file", "sha512", sum[:], ""), "namespace"},
		"a namespace in another case":      {u.git, signature("Git", "sha512", sum[:], ""), "namespace"},
		"no namespace":                     {u.git, signature("", "sha512", sum[:], ""), "namespace"},
		"another key":                      {u.other, good, "another key"},
		"something behind it":              {u.git, signature("git", "sha512", sum[:], "x"), "neither"},
		"something before it":              {u.git, append([]byte("x"), good...), "neither"},
		"cut short":                        {u.git, good[:len(good)-1], "neither"},
		"a hash that is too short":         {u.git, signature("git", "sha512", sum[:32], ""), "neither"},
		"an unknown hash":                  {u.git, signature("git", "md5", sum[:16], ""), "neither"},
		"any text":                         {u.git, []byte("sign this"), "neither"},
		"nothing":                          {u.git, nil, "neither"},
		"a login to nowhere":               {u.git, u.request("session", u.git.PublicKey(), "publickey", "ssh-connection", nil), "did not prove"},
	} {
		t.Run(name, func(t *testing.T) {
			u.uses = nil
			client, _ := u.connect(t)
			made, err := client.Sign(tc.key.PublicKey(), tc.data)
			if (err == nil) != (tc.want == "") {
				t.Fatalf("%v, %v", made, err)
			}
			if err == nil {
				must.Do(t, tc.key.PublicKey().Verify(tc.data, made))
			}
			if len(u.uses) != 1 || !strings.Contains(u.uses[0].Refused, tc.want) || u.uses[0].Git != (err == nil) {
				t.Errorf("told: %+v", u.uses)
			}
		})
	}
}

func TestOnlyListedHostsAreLoggedInTo(t *testing.T) {
	u := newUser(t)
	const here = "ssh-connection"
	key := u.other.PublicKey()
	hostKey := u.host.PublicKey().Marshal()
	good := u.request("session", key, "publickey", here, nil)
	bound := [][]byte{bind(t, u.host, "session", "session", false)}
	for name, tc := range map[string]struct {
		binds [][]byte
		data  []byte
		want  string
	}{
		"listed":                              {bound, good, ""},
		"listed, with the host's key":         {bound, u.request("session", key, hostBound, here, hostKey), ""},
		"not bound":                           {nil, good, "did not prove"},
		"another session":                     {bound, u.request("another", key, "publickey", here, nil), "another host"},
		"another host's key":                  {bound, u.request("session", key, hostBound, here, u.stranger.PublicKey().Marshal()), "another host"},
		"another key than it signs with":      {bound, u.request("session", u.git.PublicKey(), "publickey", here, nil), "another key"},
		"another service":                     {bound, u.request("session", key, "publickey", "ssh-userauth", nil), "neither"},
		"another method":                      {bound, u.request("session", key, "hostbased", here, nil), "neither"},
		"something behind it":                 {bound, append(slices.Clone(good), 'x'), "neither"},
		"a stranger":                          {[][]byte{bind(t, u.stranger, "session", "session", false)}, good, "not listed"},
		"a stranger, and no session":          {[][]byte{bind(t, u.stranger, "", "", false)}, u.request("", key, "publickey", here, nil), "not listed"},
		"a signature of another session":      {[][]byte{bind(t, u.host, "another", "session", false)}, good, "did not prove"},
		"forwarded":                           {[][]byte{bind(t, u.host, "session", "session", true)}, good, "forwarded"},
		"forwarded, a signature of git's":     {[][]byte{bind(t, u.host, "session", "session", true)}, signature("git", "sha512", sum[:], ""), "forwarded"},
		"bound, then forwarded":               {append(slices.Clone(bound), bind(t, u.host, "session", "session", true)), good, "two hosts"},
		"bound to two sessions":               {append(slices.Clone(bound), bind(t, u.host, "two", "two", false)), good, "two hosts"},
		"a stranger first":                    {[][]byte{bind(t, u.stranger, "session", "session", false), bound[0]}, good, "two hosts"},
		"bound with something behind":         {[][]byte{append(slices.Clone(bound[0]), 'x')}, good, "did not prove"},
		"bound by a key that is no key":       {[][]byte{[]byte("\x00\x00\x00\x01x\x00\x00\x00\x00\x00\x00\x00\x00\x00")}, good, "not listed"},
		"a stranger's key, not verified":      {[][]byte{bind(t, u.stranger, "another", "session", false)}, good, "not listed"},
		"a stranger's key without end":        {[][]byte{endless}, good, "too long"},
		"a request that asks for no login":    {bound, bytes.Replace(good, []byte("publickey\x01"), []byte("publickey\x00"), 1), "neither"},
		"a message that is no request at all": {bound, append([]byte("\x00\x00\x00\x07session\x33"), good[12:]...), "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			u.uses = nil
			client, _ := u.connect(t)
			for _, b := range tc.binds {
				_, _ = client.Extension(bindName, b)
			}
			made, err := client.Sign(key, tc.data)
			if (err == nil) != (tc.want == "") {
				t.Fatalf("%v, %v", made, err)
			}
			if last := u.uses[len(u.uses)-1]; !strings.Contains(last.Refused, tc.want) || (last.Host == "good.test") != (err == nil) {
				t.Errorf("told: %+v", u.uses)
			}
		})
	}
}

func TestKeysAreListedForWhatTheyAreFor(t *testing.T) {
	u := newUser(t)
	client, _ := u.connect(t)
	if all, err := client.List(); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	u.rules.Hosts = nil
	client, _ = u.connect(t)
	all, err := client.List()
	if err != nil || len(all) != 1 || !bytes.Equal(all[0].Blob, u.rules.Git) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestTheAgentIsChangedByNobodyInside(t *testing.T) {
	u := newUser(t)
	client, conn := u.connect(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	for name, change := range map[string]func() error{
		"add":        func() error { return client.Add(agent.AddedKey{PrivateKey: private}) },
		"remove":     func() error { return client.Remove(u.git.PublicKey()) },
		"remove all": client.RemoveAll,
		"lock":       func() error { return client.Lock([]byte("x")) },
		"unlock":     func() error { return client.Unlock([]byte("x")) },
	} {
		if change() == nil {
			t.Errorf("%s: is done", name)
		}
	}
	if list, err := client.List(); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	for _, message := range []string{"\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x00\x04\x00\x01"} { // empty, endless, a byte too long
		u.uses = nil
		_, conn := u.connect(t)
		_, err := io.WriteString(conn, message)
		must.Do(t, err)
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF || len(u.uses) != 1 || !strings.Contains(u.uses[0].Refused, "256 KiB") {
			t.Errorf("%q: %v, told %+v", message, err, u.uses)
		}
	}
	conn.Close()
}

// Whatever is sent, nothing is signed but what git signs.
//
// Promise: no ssh key.
func FuzzRawBytesSignNothing(f *testing.F) {
	u := newUser(f)
	ask := func(kind byte, fields any) []byte {
		content := append([]byte{kind}, ssh.Marshal(fields)...)
		return append(ssh.Marshal(struct{ N uint32 }{uint32(len(content))}), content...)
	}
	type sign struct {
		Key, Data []byte
		Flags     uint32
	}
	key := u.git.PublicKey().Marshal()
	extension := append(ask(27, struct{ Name string }{bindName}), bind(f, u.stranger, "s", "s", false)...)
	for _, seed := range [][]byte{
		{0, 0, 0, 1, 11},
		ask(13, sign{key, signature("git", "sha512", sum[:], ""), 0}), ask(13, sign{key, signature("file", "sha512", sum[:], ""), 4}),
		ask(13, sign{key, u.request("s", u.git.PublicKey(), "publickey", "ssh-connection", nil), 2}), extension, ask(17, struct{ X string }{"ssh-ed25519"}),
	} {
		f.Add(seed)
		f.Add(append(extension, seed...))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		u.ring.signed = nil
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			serve(theirs, &filter{rules: u.rules, keys: u.ring, tell: func(sshagent.Use) {}})
		}()
		go io.Copy(io.Discard, ours) //nolint:errcheck // it ends with the connection
		_, _ = ours.Write(raw)
		ours.Close()
		<-done
		for _, data := range u.ring.signed {
			if !bytes.HasPrefix(data, []byte("SSHSIG\x00\x00\x00\x03git")) {
				t.Errorf("signed: %q", data)
			}
		}
	})
}

func TestKeysAreReadFromFiles(t *testing.T) {
	u := newUser(t)
	line := string(ssh.MarshalAuthorizedKey(u.git.PublicKey()))
	key, err := ParseKey([]byte(line + "a comment"))
	if err != nil || !bytes.Equal(key.Blob, u.rules.Git) || key.Line+"\n" != line || !strings.HasPrefix(key.Fingerprint, "SHA256:") {
		t.Errorf("%+v, %v", key, err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	plain, err := ssh.MarshalPrivateKey(private, "")
	must.Do(t, err)
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("secret"))
	must.Do(t, err)
	if key, err := ParsePrivate(pem.EncodeToMemory(plain)); err != nil || !strings.HasPrefix(key.Line, "ssh-ed25519 ") {
		t.Errorf("%+v, %v", key, err)
	}
	if _, err := ParsePrivate(pem.EncodeToMemory(locked)); err != ErrPassphrase {
		t.Errorf("with a passphrase: %v", err)
	}
	if _, err := ParsePrivate([]byte(line)); err == nil {
		t.Error("a public key is taken for a private one")
	}
}

func TestHostsAreKnownByTheirLines(t *testing.T) {
	u := newUser(t)
	file := filepath.Join(t.TempDir(), "known_hosts")
	content := knownhosts.Line([]string{"good.test"}, u.host.PublicKey()) + "\n" +
		"|1|" + strings.TrimPrefix(knownhosts.HashHostname("hashed.test"), "|1|") + " " + string(ssh.MarshalAuthorizedKey(u.git.PublicKey())) +
		knownhosts.Line([]string{"[port.test]:2222"}, u.stranger.PublicKey()) + "\n" +
		"@cert-authority *.ca.test " + string(ssh.MarshalAuthorizedKey(u.other.PublicKey()))
	must.Write(t, file, content)
	for host, want := range map[string]ssh.Signer{
		"good.test": u.host, "hashed.test": u.git, "port.test:2222": u.stranger, "port.test": nil, "other.test": nil, "x.ca.test": nil, "good.test.": nil,
	} {
		h, lines, err := KnownHost([]string{file}, host)
		must.Do(t, err)
		if want == nil {
			if len(h.Keys) > 0 || lines != "" {
				t.Errorf("%s: %v, %q", host, h, lines)
			}
			continue
		}
		if len(h.Keys) != 1 || !bytes.Equal(h.Keys[0], want.PublicKey().Marshal()) || !strings.Contains(lines, "ssh-ed25519 ") {
			t.Errorf("%s: %v, %q", host, h, lines)
		}
	}
	if _, _, err := KnownHost([]string{file}, "good.test"); err != nil {
		t.Error(err)
	}
}
