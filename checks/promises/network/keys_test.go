//go:build lab

package network_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// withKey gives a user a key of ssh that signs what git commits, and gives what
// of it must not be inside, in hexadecimal digits.
func (u *user) withKey(t *testing.T, passphrase string) (hidden []string) {
	t.Helper()
	file := filepath.Join(u.home, ".ssh/id_ed25519")
	u.write(t, ".ssh/config", "")
	u.outsideRun(t, "/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "u", "-f", file)
	content, err := os.ReadFile(file)
	must.Do(t, err)
	private, err := ssh.ParseRawPrivateKey(content)
	must.Do(t, err)
	lines := strings.Split(string(content), "\n")
	hidden = []string{hex.EncodeToString(private.(*ed25519.PrivateKey).Seed()), hex.EncodeToString([]byte(lines[3]))}
	if passphrase != "" {
		u.outsideRun(t, "/usr/bin/ssh-keygen", "-q", "-p", "-N", passphrase, "-f", file)
	}
	u.write(t, ".gitconfig", "[user]\nname = U\nemail = u@example.org\nsigningkey = ~/.ssh/id_ed25519.pub\n[gpg]\nformat = ssh\n[commit]\ngpgsign = true\n")
	public := u.found(t, ".ssh/id_ed25519.pub")
	u.write(t, "allowed", "u@example.org "+public)
	return hidden
}

// withAgent starts the user's ssh-agent, with the key.
func (u *user) withAgent(t *testing.T) {
	t.Helper()
	socket := filepath.Join(u.home, "agent.sock")
	cmd := exec.Command("/usr/bin/ssh-agent", "-D", "-a", socket)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	must.Await(t, "the agent answers", func() bool {
		conn, err := net.Dial("unix", socket)
		return err == nil && conn.Close() == nil
	})
	u.env = append(u.env, "SSH_AUTH_SOCK="+socket)
	u.outsideRun(t, "/usr/bin/ssh-add", "-q", filepath.Join(u.home, ".ssh/id_ed25519"))
}

// outsideRun runs a program of the user's own.
func (u *user) outsideRun(t *testing.T, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = u.project, u.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return string(out)
}

// keyed asks for a sandbox with Debian's ssh, where git signs.
func (u *user) keyed(t *testing.T, more ...string) []string {
	flags := u.in(t, "inet", strings.Join(append(more, "compat: off"), "\n"))
	for _, lay := range withDebian("clients/usr/bin/ssh:/opt/ssh", "clients/usr/bin/ssh-keygen:/opt/ssh-keygen", "clients/usr/bin/ssh-add:/opt/ssh-add") {
		flags = append(flags, "--mount-ro", laid(t, lay))
	}
	return flags
}

// reported is a session that says at its end what was done.
func (u *user) reported(t *testing.T, script string, flags ...string) *exec.Cmd {
	return u.claudebox(t, slices.Concat([]string{"shell", "--yes"}, flags, []string{"--", "bash", "-euc", script})...)
}

const signs = `export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=gpg.ssh.program GIT_CONFIG_VALUE_0=/opt/ssh-keygen
`

// What git signs inside, git outside finds to be signed by the user, whose key is
// nowhere inside, and signs nothing else.
//
// Promise: no ssh key.
func TestGitSignsWithAKeyThatStaysOutside(t *testing.T) {
	t.Parallel()
	for name, byAgent := range map[string]bool{"by the user's agent": true, "by a file": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, world.New(t))
			hidden := u.withKey(t, "")
			if byAgent {
				u.withAgent(t)
				must.Do(t, os.Remove(filepath.Join(u.home, ".ssh/id_ed25519")))
			}
			canary := filepath.Join(u.home, "tools/canary")
			must.Do(t, trial.Build(canary, "claudebox/checks/promises/claude/canary"))
			script := signs + `git init -q && git commit -q --allow-empty -m unasked && git commit -q -S --allow-empty -m asked && git tag -s -m signed v1
				/opt/ssh-add -L | tee /tmp/key.pub
				echo text >/tmp/file
				/opt/ssh-keygen -q -Y sign -n git -f /tmp/key.pub /tmp/file && echo in git
				/opt/ssh-keygen -q -Y sign -n file -f /tmp/key.pub /tmp/other || echo not in another
				touch /tmp/stop; ` + canary + ` /tmp/stop 0 ` + strings.Join(hidden, " ")
			flags := append(u.keyed(t, "git: {sign: ssh}"), "--mount-ro", filepath.Dir(canary))
			got := run(t, u.reported(t, strings.Replace(script, "/tmp/file\n", "/tmp/file; echo text >/tmp/other\n", 1), flags...))
			for _, want := range []string{strings.Fields(u.found(t, ".ssh/id_ed25519.pub"))[1], "in git\nnot in another\nsearched 1 times"} {
				if got.status != 0 || !strings.Contains(got.stdout, want) || strings.Contains(got.stdout, "FOUND") {
					t.Fatalf("%+v; want %q", got, want)
				}
			}
			expect.Contains(t, got.stderr, "git signed with your SSH key (4)", "your SSH key did not sign: the namespace is not git's (1)")
			for _, what := range []string{"verify-commit HEAD", "verify-commit HEAD^", "verify-tag v1"} {
				words := append([]string{"/usr/bin/git", "-c", "gpg.ssh.allowedSignersFile=" + u.home + "/allowed"}, strings.Fields(what)...)
				if out := u.outsideRun(t, words...); !strings.Contains(out, `Good "git" signature for u@example.org`) {
					t.Errorf("%s: %s", what, out)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(u.home, ".claudebox/instances/*/ssh-agent*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// Who asks for signatures and has no key that can sign is told before the start.
func TestWhyGitCannotSignIsSaid(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	u.withKey(t, "secret")
	got := run(t, u.reported(t, signs+"git init -q && git commit -q --allow-empty -m x || echo unsigned", u.keyed(t, "git: {sign: ssh}")...))
	if !strings.Contains(got.stderr, "git cannot sign: your ssh agent does not have the key ~/.ssh/id_ed25519.pub (ssh-add), and its file: it has a passphrase") {
		t.Errorf("%+v", got)
	}
}

// sshHost is a host that lets everybody in who has a key, and tries what it can
// with an agent that is forwarded to it.
type sshHost struct {
	config *ssh.ServerConfig
	key    ssh.Signer
}

func newHost(t *testing.T) *sshHost {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	h := &sshHost{config: &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		return &ssh.Permissions{}, nil
	}}}
	if h.key, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	h.config.AddHostKey(h.key)
	return h
}

func (h *sshHost) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go h.meet(conn)
	}
}

func (h *sshHost) meet(conn net.Conn) {
	defer conn.Close()
	server, channels, requests, err := ssh.NewServerConn(conn, h.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go func() {
			defer channel.Close()
			said := "logged in"
			for request := range requests {
				_ = request.Reply(true, nil)
				switch request.Type {
				case "auth-agent-req@openssh.com":
					said += ", " + abuse(server)
				case "exec":
					fmt.Fprintln(channel, said)
					_, _ = channel.SendRequest("exit-status", false, make([]byte, 4))
					return
				}
			}
		}()
	}
}

// abuse has a forwarded agent sign for git.
func abuse(server *ssh.ServerConn) string {
	channel, requests, err := server.OpenChannel("auth-agent@openssh.com", nil)
	if err != nil {
		return "no agent"
	}
	defer channel.Close()
	go ssh.DiscardRequests(requests)
	client := agent.NewClient(channel)
	keys, err := client.List()
	if err != nil || len(keys) == 0 {
		return "no keys"
	}
	fields := struct{ Namespace, Reserved, Hash, Sum string }{"git", "", "sha512", strings.Repeat("x", 64)}
	if _, err := client.Sign(keys[0], append([]byte("SSHSIG"), ssh.Marshal(fields)...)); err != nil {
		return "nothing signed"
	}
	return "SIGNED"
}

// Promise: no ssh key.
func TestSSHLogsInToListedHostsOnly(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	u.withKey(t, "")
	u.withAgent(t)
	good, evil := newHost(t), newHost(t)
	for port, host := range map[string]*sshHost{"22": good, "2222": evil} {
		for _, l := range w.ListenOutside(t, port, target.Internet, target.Internet6) {
			go host.serve(l)
		}
	}
	u.write(t, ".ssh/known_hosts", knownhosts.Line([]string{"good.test"}, good.key.PublicKey())+"\n"+
		knownhosts.Line([]string{"[good.test]:2222"}, evil.key.PublicKey())+"\n")
	const ssh = `/opt/ssh -o BatchMode=yes -o LogLevel=error `
	got := run(t, u.reported(t, `
		`+ssh+`git@good.test true || echo failed
		`+ssh+`-A git@good.test true || echo failed
		`+ssh+`-p 2222 -o StrictHostKeyChecking=no git@good.test true || echo refused
		echo x >/tmp/x; /opt/ssh-add -L >/tmp/k.pub; /opt/ssh-keygen -q -Y sign -n git -f /tmp/k.pub /tmp/x || echo unsigned
	`, u.keyed(t, "ssh: {hosts: [good.test]}")...))
	if want := "logged in\nlogged in, nothing signed\nrefused\nunsigned\n"; got.stdout != want {
		t.Errorf("%+v; want %q", got, want)
	}
	for _, want := range []string{
		"used to log in to good.test (2)", "your SSH key did not sign: the connection is forwarded (1)",
		"your SSH key did not sign: the host is not listed, or has another key than in known_hosts (1)",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("not told: %q", want)
		}
	}
}
