//go:build lab

package sandbox_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/gitserver"
	"claudebox/checks/kit/must"
)

const token = "token-5d1f0c"

// remote makes a server with the project's repository on it, which the project
// has for origin, and a profile that lets git log in there as "localhost".
func (w *world) remote(t *testing.T, lines ...string) (s *gitserver.Server, profile string) {
	t.Helper()
	return w.remoteOf(t, "localhost", token, lines...)
}

// remoteOf is [world.remote] under another name of this machine, with another token; none: the server asks for none.
func (w *world) remoteOf(t *testing.T, host, token string, lines ...string) (s *gitserver.Server, profile string) {
	t.Helper()
	w.repository(t)
	w.write(t, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n")
	w.folder(t, "served")
	w.git(t, "", "clone", "-q", "--bare", w.project, w.path("served/p.git"))
	w.git(t, "served/p.git", "config", "http.receivepack", "true")
	s, err := gitserver.Start(w.path("served"), token)
	must.Do(t, err)
	t.Cleanup(s.Close)
	w.git(t, "project", "remote", "add", "origin", "https://"+host+":"+s.Port+"/p.git")
	w.write(t, "roots.pem", string(s.Roots()))
	w.env["SSL_CERT_FILE"], w.env["GIT_TOKEN"] = w.path("roots.pem"), token
	lines = append(lines, "nix: {daemon: off}")
	return s, w.profile(t, lines...)
}

// granted is the profile's line for the server.
func granted(port string, more string) string {
	return fmt.Sprintf("git: {hosts: {\"localhost:%s\": GIT_TOKEN}%s}", port, more)
}

func TestPushAndFetchWithATokenForTheHost(t *testing.T) {
	w := newWorld(t)
	s, _ := w.remote(t)
	profile := w.profile(t, granted(s.Port, ""))
	got := w.inside(t, `echo work >work; git add work; git commit -qm work
		GIT_TRACE=1 git push -q origin HEAD:refs/heads/work 2>/tmp/trace
		if grep -q `+token+` /tmp/trace; then echo "the token is on a command line"; fi
		git fetch -q origin work; git rev-list --count FETCH_HEAD
		git clone -q https://localhost:`+s.Port+`/p.git /tmp/clone; git -C /tmp/clone log --oneline origin/work | wc -l
		git config --list | grep -c `+token+` || true`, "--profile", profile)
	wantEqual(t, got, "2\n2\n0\n")
	for _, login := range s.Logins() {
		if want := (gitserver.Login{Host: "localhost:" + s.Port, User: "x-access-token", Password: token}); login != want {
			t.Errorf("logged in by %+v; want %+v", login, want)
		}
	}
	// What was made inside is a repository like any other.
	for _, dir := range []string{"project", "served/p.git"} {
		w.git(t, dir, "fsck", "--strict", "--no-dangling")
	}
	w.git(t, "served/p.git", "rev-parse", "--verify", "-q", "work")
	w.git(t, "project", "log", "-1", "--format=%an")
}

// The broker trusts the authorities that Claude Code outside does.
func TestATokensHostIsTrustedByTheUsersOwnAuthorities(t *testing.T) {
	w := newWorld(t)
	s, _ := w.remote(t)
	w.env["NODE_EXTRA_CA_CERTS"] = w.env["SSL_CERT_FILE"]
	delete(w.env, "SSL_CERT_FILE")
	wantEqual(t, w.inside(t, "git push -q origin HEAD:refs/heads/work && echo pushed", "--profile", w.profile(t, granted(s.Port, ""))), "pushed\n")
}

// A token goes to its own host, over HTTPS, and nowhere else: not to another
// name of the same machine, nor where a server sends git on to.
//
// Promise: no login, no API key, no token of git's.
func TestTokenOfOneHostGoesToNoOther(t *testing.T) {
	w := newWorld(t)
	s, _ := w.remote(t)
	profile := w.profile(t, granted(s.Port, ""))
	script := `export GIT_TERMINAL_PROMPT=0
	try() { if "$@" >/tmp/out 2>&1; then echo "it worked: $*"; cat /tmp/out; fi; }
	ask() { printf "protocol=%s\nhost=%s\n\n" "$1" "$2" | GIT_ASKPASS=false git credential fill 2>/dev/null | grep password || true; }
	try git ls-remote https://127.0.0.1:PORT/p.git
	try git ls-remote https://localhost:PORT/elsewhere/p.git
	ask https github.com; ask http localhost:PORT; ask https localhost; ask https localhost:PORT.example.org; ask https 127.0.0.1:PORT
	ask https xlocalhost:PORT; ask https localhost:1PORT; ask ssh localhost:PORT`
	got := w.inside(t, strings.ReplaceAll(script, "PORT", s.Port), "--profile", profile)
	wantEqual(t, got, "")
	for _, login := range s.Logins() {
		if login.Password == token && !strings.HasPrefix(login.Host, "localhost:") {
			t.Errorf("%s was shown the token", login.Host)
		}
	}
}

// Without being named in the profile neither host nor variable is there, even
// when the user's own git would log in.
func TestWithoutAGrantGitLogsInNowhere(t *testing.T) {
	w := newWorld(t)
	s, profile := w.remote(t)
	w.write(t, ".git-credentials", "https://u:"+token+"@localhost:"+s.Port+"\n")
	w.write(t, ".netrc", "machine localhost login u password "+token+"\n")
	w.write(t, ".gitconfig", "[credential]\n\thelper = store\n")
	got := w.inside(t, `if GIT_TERMINAL_PROMPT=0 git ls-remote -q 2>/dev/null; then echo "it worked"; fi; env | grep -c GIT_TOKEN || true`, "--profile", profile)
	wantEqual(t, got, "0\n")
	if logins := s.Logins(); len(logins) > 0 {
		t.Errorf("logged in by %+v", logins)
	}
}

func TestSSHRemotesAreReachedOverHTTPSByOption(t *testing.T) {
	w := newWorld(t)
	s, _ := w.remote(t)
	profile := w.profile(t, granted(s.Port, ", ssh_to_https: true"))
	w.git(t, "project", "remote", "set-url", "origin", "git@localhost:p.git")
	script := `for url in origin ssh://git@localhost/p.git ssh://git@localhost:22/p.git; do git ls-remote -q "$url" | wc -l; done
	git push -q origin HEAD:refs/heads/by-ssh
	git ls-remote --get-url git@github.com:a/b.git; git ls-remote --get-url ssh://git@ssh.github.com:443/a/b
	git ls-remote --get-url git@elsewhere.example.org:a/b`
	got := w.inside(t, script, "--profile", profile)
	wantEqual(t, got, "2\n2\n2\nhttps://github.com/a/b.git\nhttps://github.com/a/b\ngit@elsewhere.example.org:a/b\n")
	w.git(t, "served/p.git", "rev-parse", "--verify", "-q", "by-ssh")
}

func TestAGrantWithoutItsTokenIsSaid(t *testing.T) {
	w := newWorld(t)
	s, _ := w.remote(t)
	delete(w.env, "GIT_TOKEN")
	got := run(t, w.claudebox("--dry-run", "--profile", w.profile(t, granted(s.Port, ""))))
	if said := oneLine(got.stderr); !strings.Contains(said, "git cannot log in to localhost:"+s.Port+": GIT_TOKEN is not set") {
		t.Errorf("not said:\n%s", got.stderr)
	}
}

// D4: the real git-lfs, with the filters that `git lfs install` leaves in the user's configuration: what the agent
// commits is a pointer, and what it pushes reaches the server, with the token that stays outside or by a port of this
// machine, and comes back from there.
func TestLargeFilesArePushed(t *testing.T) {
	machine, _ := os.Hostname()
	for name, tc := range map[string]struct{ host, token, network string }{
		// programs in Go, as git-lfs is, ask no proxy for "localhost", so they would not reach the broker
		"by a token":                    {machine, token, "full"},
		"by a port carried, tier inet":  {"localhost", "", "inet"},
		"by a port carried, tier allow": {"localhost", "", "{tier: allow, allow: [anthropic]}"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if found, _ := net.LookupHost(tc.host); !slices.Contains(found, "127.0.0.1") {
				t.Skip("NOT RUN: this machine's name is not that of 127.0.0.1")
			}
			s, _ := w.remoteOf(t, tc.host, tc.token)
			w.write(t, ".gitconfig", w.read(t, ".gitconfig")+lfsFilter)
			lines := []string{"packages: [git-lfs]", "network: " + tc.network, "ports: {out: [" + s.Port + "]}"}
			if tc.token != "" {
				lines = append(lines[:2], strings.ReplaceAll(granted(s.Port, ""), "localhost", tc.host))
			}
			const large = "a large\x00file\n"
			got := w.inside(t, `git lfs track '*.bin' >/dev/null; printf 'a large\0file\n' >f.bin; git add .; git commit -qm large
		git cat-file -p HEAD:f.bin; GIT_TERMINAL_PROMPT=0 timeout 20 git push -q origin HEAD:refs/heads/large >/tmp/said 2>&1 || tail -c 2000 /tmp/said
		git clone -q -b large $(git remote get-url origin) /tmp/clone; cat /tmp/clone/f.bin`, "--profile", w.profile(t, lines...))
			oid := fmt.Sprintf("%x", sha256.Sum256([]byte(large)))
			wantEqual(t, got, fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n%s", oid, len(large), large))
			if stored := string(s.Large(oid)); stored != large {
				t.Errorf("the server has %q", stored)
			}
			for _, login := range s.Logins() {
				if login.Password != tc.token {
					t.Errorf("logged in by %+v", login)
				}
			}
			// outside it is as it is after a commit of one's own
			if out := w.git(t, "project", "cat-file", "-p", "HEAD:f.bin"); !strings.Contains(out, oid) {
				t.Errorf("outside: %s", out)
			}
		})
	}
}

// lfsFilter is what `git lfs install` writes.
const lfsFilter = `[filter "lfs"]
	clean = git-lfs clean -- %f
	smudge = git-lfs smudge -- %f
	process = git-lfs filter-process
	required = true
`

// No token goes to what a sandbox calls localhost, where that is not this machine, and none of git-lfs's goes there at
// all. It is said.
func TestATokenForAPortOfThisMachineIsSaidToBeOfNoUse(t *testing.T) {
	w := newWorld(t)
	s, _ := w.remote(t)
	for network, want := range map[string]string{
		"inet": "git cannot log in to localhost:" + s.Port + ": in tier inet that is the sandbox itself, to which no token goes: `network: full`",
		"full": "git-lfs cannot log in to localhost:" + s.Port + ": as all programs in Go it asks no proxy for this name; another " +
			"name of this machine works (/etc/hosts)",
	} {
		got := run(t, w.claudebox("--dry-run", "--profile", w.profile(t, granted(s.Port, ""), "packages: [git-lfs]", "network: "+network)))
		expect.Contains(t, oneLine(got.stderr), want)
	}
}
