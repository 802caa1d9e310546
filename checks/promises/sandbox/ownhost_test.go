//go:build lab

package sandbox_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/nixdaemon"
)

// ownHost is a world whose host has a Nix store of the test's own, so that its
// garbage may be collected: a copy of what claudebox was installed with, which
// lies at /nix for whoever is led there by some words.
type ownHost struct {
	*world
	nix   string   // folder of what is /nix there
	words []string // lead a program to it
	tools string   // folder of the lab's own Nix programs
}

// hosts is the folder of such hosts, in memory where that can be; empty: there
// were none yet.
var hosts string

// makeHosts makes it, with what each of them gets its own links to.
var makeHosts = sync.OnceValue(func() (err error) {
	if hosts, err = os.MkdirTemp("/dev/shm", "cb-nix-"); err != nil {
		hosts, err = os.MkdirTemp(top, "nix-")
	}
	if err != nil {
		return err
	}
	script := `cd "$1"; mkdir -p store var/nix/gcroots/installed etc
		roots="$(grep -o '/nix/store/[^/"]*' "$CLAUDEBOX_MANIFEST" | grep -v 'drv$' | sort -u) $(nix-build --no-out-link "$CLAUDEBOX_NIXPKGS" -A hello)"
		case $CLAUDEBOX_BIN in /nix/store/*) roots="$roots ${CLAUDEBOX_BIN%/bin/*}";; esac
		ln -s $roots var/nix/gcroots/installed/
		nix-store --query --requisites $roots >all
		cp -a $(cat all) store/
		nix-store --dump-db $(cat all) >database`
	if out, err := exec.Command("bash", "-euc", script, "bash", hosts).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

func newOwnHost(t *testing.T) *ownHost {
	t.Helper()
	must.Do(t, makeHosts())
	h := &ownHost{world: newWorld(t), tools: filepath.Dir(trial.Tool(t, "nix"))}
	var err error
	h.nix, err = os.MkdirTemp(hosts, "host-")
	must.Do(t, err)
	t.Cleanup(func() { removeHosts(h.nix) })
	if out, err := exec.Command("cp", "-al", hosts+"/store", hosts+"/var", hosts+"/etc", h.nix).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h.words = []string{
		"bwrap", "--die-with-parent", "--unshare-user", "--dev-bind", "/", "/", "--bind", h.nix, "/nix",
		"--setenv", "NIX_CONF_DIR", "/nix/etc", "--chdir", h.project,
	}
	h.configure(t, false)
	load := h.local(h.tools+"/nix-store", "--load-db")
	database, err := os.Open(hosts + "/database")
	must.Do(t, err)
	defer database.Close()
	load.Stdin = database
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return h
}

// removeHosts removes a folder with stores in it, if there is one.
func removeHosts(dir string) {
	if dir != "" {
		exec.Command("find", dir, "-type", "d", "-exec", "chmod", "u+w", "{}", "+").Run() // files are others' as well
		os.RemoveAll(dir)
	}
}

// configure writes the host's nix.conf.
func (h *ownHost) configure(t *testing.T, trusted bool) {
	t.Helper()
	who := "root"
	if trusted {
		who = "*"
	}
	must.Write(t, h.nix+"/etc/nix.conf", "build-users-group =\nsandbox = false\nsubstituters =\ntrusted-users = "+who+"\n")
}

// there is a command on that host.
func (h *ownHost) there(cmd *exec.Cmd, more ...string) *exec.Cmd {
	words := slices.Concat(h.words, more, []string{"--"}, cmd.Args)
	led := exec.Command(words[0], words[1:]...)
	led.Dir, led.Env, led.WaitDelay = cmd.Dir, cmd.Env, cmd.WaitDelay
	return led
}

// local is a command of the host's that opens the store itself.
func (h *ownHost) local(words ...string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + h.home}
	return h.there(cmd)
}

// remote is what a program of Nix on the host prints, which asks the daemon, if
// there is one.
func (h *ownHost) remote(t *testing.T, program string, words ...string) string {
	t.Helper()
	var out []byte
	said, err := trial.Collect(func() (_ []byte, err error) {
		cmd := h.local(append([]string{h.tools + "/" + program}, words...)...)
		cmd.Env = append(cmd.Env, "NIX_REMOTE=auto")
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err = cmd.Output()
		return said.Bytes(), err
	})
	if err != nil {
		t.Fatalf("%s %q: %v: %s", program, words, err, said)
	}
	return strings.TrimSpace(string(out))
}

// add adds a file that nobody else has to the host's store.
func (h *ownHost) add(t *testing.T, name, content string) string {
	t.Helper()
	return h.remote(t, "nix-store", "--add", h.write(t, name, content))
}

func (h *ownHost) exists(path string) bool {
	return exists(filepath.Join(h.nix, strings.TrimPrefix(path, "/nix/")))
}

// daemon starts a daemon of a release of Debian; trixie's is the lab's own. It
// ends with the test.
func (h *ownHost) daemon(t *testing.T, release string, trusted bool) {
	t.Helper()
	h.configure(t, trusted)
	cmd := h.local(h.tools + "/nix-daemon")
	if root := filepath.Join(os.Getenv("CLAUDEBOX_LAB_RELEASES"), release); release != "trixie" {
		if !exists(root + "/usr/bin/nix-daemon") {
			t.Skipf("NOT RUN: there is no Debian %s here", release)
		}
		cmd = exec.Command("bwrap", "--die-with-parent", "--unshare-user", "--dev", "/dev", "--bind", "/proc", "/proc", "--bind", "/tmp", "/tmp",
			"--bind", h.nix, "/nix", "--ro-bind", root+"/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
			"--bind", h.home, h.home, // what is added comes from there
			"--symlink", "usr/lib64", "/lib64", "--ro-bind", "/etc/passwd", "/etc/passwd", "--ro-bind", "/etc/group", "/etc/group",
			"--setenv", "NIX_CONF_DIR", "/nix/etc", "--setenv", "PATH", "/usr/bin", "--", "nix-daemon")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	socket := h.nix + "/var/nix/daemon-socket/socket"
	os.Remove(socket)
	log, err := os.Create(h.path("daemon.log"))
	must.Do(t, err)
	defer log.Close()
	cmd.Stderr = log
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 500 {
		if c, err := nixdaemon.Dial(t.Context(), socket, nixdaemon.Options{}); err == nil {
			c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the daemon did not come up: %s", h.read(t, "daemon.log"))
}

// state is all that the host's store holds and the daemon knows: each file with
// its rights and content, the database, and what roots there are.
func (h *ownHost) state(t *testing.T) string {
	t.Helper()
	hashes := h.local("sh", "-c", `cd /nix/store; find . -path ./.links -prune -o ! -name '*.lock' ! -path . -printf '%M %u %T@ %p %l\n' | sort
		find . -path ./.links -prune -o -type f ! -name '*.lock' -print0 | sort -z | xargs -0 sha256sum`)
	files, err := hashes.Output()
	must.Do(t, err)
	dump, err := h.local(h.tools+"/nix-store", "--dump-db").Output()
	must.Do(t, err)
	roots, state := "", h.nix+"/var/nix"
	must.Do(t, filepath.WalkDir(state, func(path string, entry os.DirEntry, err error) error {
		number, temporary := strings.CutPrefix(path, state+"/temproots/")
		stale := temporary && !exists("/proc/"+number)
		if err == nil && !strings.Contains(path, "/db/") && path != state+"/gc.lock" && !stale {
			roots += path + "\n"
		}
		return err
	}))
	return string(files) + string(dump) + roots
}

// during is a session in which a build waits while something happens on the
// host; after runs when that build has ended, and has its path as its first
// word.
func (h *ownHost) during(t *testing.T, flags []string, relies, after string, happens func()) outcome {
	t.Helper()
	// No pipes: a second session would find them in the project, and puts them aside.
	os.Remove(h.path("project/up"))
	os.Remove(h.path("project/down"))
	cmd := h.there(h.session(build+fmt.Sprintf(`
		nix shell nixpkgs#hello -c hello 2>/dev/null
		built=$(nix build --no-link --print-out-paths --impure --expr "derivation {
			name = \"waits\"; system = builtins.currentSystem; builder = \"/bin/sh\"; on = builtins.storePath %[1]s;
			args = [ \"-c\" \"echo >$PWD/up; while [ ! -e $PWD/down ]; do $(command -v sleep) 0.02; done; read x <%[1]s; echo \$x >\$out\" ]; }" 2>err) || cat err
		cat "$built"
		%[2]s`, relies, after), flags...))
	done := make(chan outcome, 1)
	go func() { done <- run(t, cmd) }()
	for !exists(h.path("project/up")) {
		select {
		case got := <-done:
			return got
		case <-time.After(20 * time.Millisecond):
		}
	}
	happens()
	h.write(t, "project/down", "")
	return <-done
}
