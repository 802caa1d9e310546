//go:build lab

package attacks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// A folder of the project that a profile mounts elsewhere is the agent's to
// exchange.
func TestAMountedFolderOfTheProjectBecomesALinkOutOfIt(t *testing.T) {
	for name, lines := range map[string]string{
		"required": "mounts: [{host: ./data, sandbox: /data, mode: rw}]",
		"optional": "mounts: [{host: ./data, sandbox: /data, mode: rw, optional: true}]",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			flags := w.profile(lines)
			w.folder("project/data")
			w.prepared("rmdir data; ln -s ../documents data", flags...)
			got := w.attack("cat /data/letter; echo changed >>/data/letter", flags...)
			w.wantNoCanary(got)
			w.wantRefused(got, "leads out of it")
			if w.read("documents/letter") != canary {
				t.Error("the file outside was changed")
			}
		})
	}
}

func TestAFolderOfTheProjectThatAFlagNamesBecomesALinkOutOfIt(t *testing.T) {
	w := newWorld(t)
	w.prepared("ln -s ../documents data")
	got := w.attack("cat /data/letter", "--mount-ro", "data:/data")
	w.wantNoCanary(got)
	w.wantRefused(got, "leads out of it")
}

// What sessions in a folder do not see, no session sees that may read the folder.
func TestAFolderThatMayBeReadShowsWhatItsOwnSessionsHide(t *testing.T) {
	w := newWorld(t)
	w.write("lib/.env", canary)
	w.git("lib", "init", "-q")
	w.write("lib/.git/credentials", "https://u:"+canary+"@example.org\n")
	w.write("lib/.git/FETCH_HEAD", "https://u:"+canary+"@example.org/\n")
	w.write("lib/plain", canary)
	w.write("lib/closed/x", canary)
	for _, err := range []error{
		os.Link(w.path("lib/.env"), w.path("lib/hard.go")), os.Symlink("plain", w.path("lib/.env.prod")), os.Chmod(w.path("lib/closed"), 0),
	} {
		must.Do(t, err)
	}
	t.Cleanup(func() { os.Chmod(w.path("lib/closed"), 0o755) })
	for _, mount := range []string{"lib:/mnt/lib", "lib/.git:/mnt/lib"} {
		got := w.attack("chmod 700 /mnt/lib/closed; grep -rsa . /mnt/lib; ls /mnt/lib", "--mount-ro", w.home+"/"+mount)
		w.wantNoCanary(got)
		if !strings.Contains(got.stdout, "plain") && mount == "lib:/mnt/lib" || got.status != 0 {
			t.Error(got)
		}
	}
}

func TestALinkWithinTheProjectIsFollowed(t *testing.T) {
	w := newWorld(t)
	w.write("project/real/file", "fine")
	w.prepared("ln -s real data")
	if got := w.attack("cat /data/file", "--mount-ro", "data:/data"); got.stdout != "fine" {
		t.Error(got)
	}
}

// The certificate bundle is named by variables, which tools set that read
// files of the project.
func TestASecretFileAsCertificateBundle(t *testing.T) {
	for _, variable := range []string{"NIX_SSL_CERT_FILE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		t.Run(variable, func(t *testing.T) {
			w := newWorld(t)
			got := w.with(variable + "=" + w.path(".ssh/id_ed25519")).attack("cat /etc/ssl/certs/*")
			w.wantNoCanary(got)
		})
	}
}

func TestAPrivateKeyBesideItsCertificateAsCertificateBundle(t *testing.T) {
	w := newWorld(t)
	w.write("both.pem", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n"+canary+"\n-----END PRIVATE KEY-----\n")
	w.wantNoCanary(w.with("NIX_SSL_CERT_FILE=" + w.path("both.pem")).attack("cat /etc/ssl/certs/ca-certificates.crt"))
}

// ~/.claude often leads into a folder of dotfiles, which is a project too.
func TestTheUsersMemoryBecomesALinkToASecret(t *testing.T) {
	for _, name := range []string{"CLAUDE.md", "keybindings.json"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("dotfiles/claude/"+name, "{}")
			w.in("dotfiles").prepared("ln -sf " + w.path("documents/letter") + " claude/" + name)
			w.link("../dotfiles/claude/"+name, ".claude/"+name) // while it leads there, no agent exchanges it
			w.wantNoCanary(w.attack("cat ~/.claude/" + name))
		})
	}
}

func TestTheUsersSkillsBecomeALinkToSecrets(t *testing.T) {
	for _, target := range []string{"documents", ".ssh", ".claude"} {
		t.Run(target, func(t *testing.T) {
			w := newWorld(t)
			w.write(".claude/projects/history", canary)
			w.write("dotfiles/skills/one/SKILL.md", "fine")
			w.in("dotfiles").prepared("rm -r skills; ln -s " + w.path(target) + " skills")
			w.link("../dotfiles/skills", ".claude/skills")
			w.wantNoCanary(w.attack("cat ~/.claude/skills/* ~/.claude/skills/projects/*"))
		})
	}
}

func TestTheUsersOwnLinksAreFollowed(t *testing.T) {
	w := newWorld(t)
	w.write("dotfiles/claude/CLAUDE.md", "mine\n")
	w.write("dotfiles/skills/one/SKILL.md", "skilled\n")
	w.link("../dotfiles/claude/CLAUDE.md", ".claude/CLAUDE.md")
	w.link("../dotfiles/skills", ".claude/skills")
	if got := w.attack("cat ~/.claude/CLAUDE.md ~/.claude/skills/one/SKILL.md"); got.stdout != "mine\nskilled\n" {
		t.Error(got)
	}
}

// A project in a folder that is a link to the cache inside would have its
// mount point made in the cache, which the agent can write.
func TestAMountPointIsMadeInTheCache(t *testing.T) {
	w := newWorld(t).in("go/src/module")
	w.prepared("touch made")
	if !w.exists("go/src/module/made") {
		t.Error("the project is not where it should be")
	}
	made, err := filepath.Glob(w.path(".claudebox/instances/*/cache/home-go/*"))
	if err != nil || len(made) > 0 {
		t.Errorf("a mount point was made in the cache: %q, %v", made, err)
	}
	if got := w.attack("pwd"); got.stdout != w.project+"\n" {
		t.Error(got)
	}
}

// A file that is opened for reading can be opened once more by what /proc
// says of it, and then for writing.
func TestAFileAsInputIsWrittenTo(t *testing.T) {
	w := newWorld(t)
	stdin, err := os.Open(w.path("documents/letter"))
	must.Do(t, err)
	defer stdin.Close()
	got := w.run(stdin, os.Getenv("CLAUDEBOX_BIN"), "shell", "--yes", "--no-report", "--", "bash", "-c",
		"cat; echo changed >/proc/self/fd/0")
	if !strings.HasPrefix(got.stdout, canary) {
		t.Errorf("the input cannot be read\n%s", got)
	}
	if w.read("documents/letter") != canary {
		t.Error("the file was changed")
	}
}

func TestAFileAsInputIsReadAsFarAsTheAgentReads(t *testing.T) {
	w := newWorld(t)
	w.write("lines", "one\ntwo\nthree\nfour\n")
	got := w.run(nil, "/bin/sh", "-c", `exec <"$HOME/lines"; read a; "$0" shell -y --no-report -- bash -c 'head -c 4; head -c 6'; cat`,
		os.Getenv("CLAUDEBOX_BIN"))
	if got.stdout != "two\nthree\nfour\n" {
		t.Error(got)
	}
}

// A shell reads its script from a pipe (`curl … | bash`, `ssh HOST <script`). The agent can open that at its other end, and
// write more of the script.
//
// Promise: no open file of yours.
func TestAPipeAsInputIsWrittenTo(t *testing.T) {
	w := newWorld(t)
	got := w.run(nil, "/bin/sh", "-c", `printf '%s\n' '"$BIN" shell -y --no-report -- bash -c "echo touch $HOME/TAKEN >/proc/self/fd/0"' 'echo after' | BIN=$0 bash`,
		os.Getenv("CLAUDEBOX_BIN"))
	if got.stdout != "after\n" || w.exists("TAKEN") {
		t.Errorf("the agent's line was run: %t\n%s", w.exists("TAKEN"), got)
	}
}

func TestAPipeAsInputIsReadAsFarAsTheAgentReads(t *testing.T) {
	w := newWorld(t)
	got := w.run(nil, "/bin/sh", "-c", `{ printf 'one\ntwo\nthree\n'; seq 100000; } | { read a; "$0" shell -y --no-report -- bash -c 'head -c 4; head -c 6; head -c 300000 >read'; cat read -; }`,
		os.Getenv("CLAUDEBOX_BIN"))
	if want := "two\nthree\n" + w.run(nil, "seq", "100000").stdout; got.stdout != want {
		t.Errorf("%d bytes, want %d", len(got.stdout), len(want))
	}
}

// What another program has written to a pipe, and its reader not read yet, the agent reads at its other end.
//
// Promise: no open file of yours.
func TestAPipeAsOutputIsRead(t *testing.T) {
	w := newWorld(t)
	got := w.run(nil, "/bin/sh", "-c", `{ echo `+canary+`; "$0" shell -y --no-report -- bash -c 'timeout 1 cat <>/proc/self/fd/1 >seen; echo out; touch end'; } | {
		until [ -e end ]; do sleep 0.1; done; cat; }`, os.Getenv("CLAUDEBOX_BIN"))
	if seen := w.read("project/seen"); strings.Contains(seen, canary) || got.stdout != canary+"\nout\n" {
		t.Errorf("the agent has read %q\n%s", seen, got)
	}
}

// So can one that is opened for writing, at its end.
//
// Promise: no open file of yours.
func TestAFileAsOutputIsReadAndWrittenOver(t *testing.T) {
	for name, to := range map[string]string{"output": ">>$HOME/log 2>$HOME/rest", "errors": "2>>$HOME/log", "both": ">>$HOME/log 2>&1"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("log", canary+"\n")
			os.Chmod(w.path("log"), 0o600)
			got := w.run(nil, "/bin/sh", "-c", `"$0" shell -y --no-report -- bash -c 'for f in 1 2; do
				timeout 1 cat 0<>/proc/self/fd/$f >seen$f; : >/proc/self/fd/$f; chmod 4777 /proc/self/fd/$f; truncate -s 0 /proc/self/fd/$f; done
				echo out; echo err >&2; exit 3' `+to+"; echo $?", os.Getenv("CLAUDEBOX_BIN"))
			if seen := w.read("project/seen1") + w.read("project/seen2"); strings.Contains(seen, canary) {
				t.Error("what was in the file was read")
			}
			if log := w.read("log"); !strings.HasPrefix(log, canary+"\n") || !strings.HasSuffix(log, "out\n") && !strings.HasSuffix(log, "err\n") {
				t.Errorf("the file is %q", log)
			}
			if at, err := os.Stat(w.path("log")); err != nil || at.Mode() != 0o600 {
				t.Errorf("its mode is %v", at.Mode())
			}
			if !strings.HasSuffix(got.stdout, "3\n") {
				t.Error(got)
			}
		})
	}
}

func TestOutputToAFullDiskIsAnError(t *testing.T) {
	w := newWorld(t)
	got := w.run(nil, "/bin/sh", "-c", `ulimit -f 1500; "$0" shell -y --no-report -- bash -c 'ulimit -f unlimited; head -c 1000000 /dev/zero || exit 0' >$HOME/log`, os.Getenv("CLAUDEBOX_BIN"))
	if got.status != 125 || !strings.Contains(got.stderr, "write the output to its file") {
		t.Error(got)
	}
}
