//go:build lab

package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// onFUSE runs a bash script as the user, with the folder `fuse` of the home on a FUSE file system (bindfs: it finds
// files by their whole paths, and can neither exchange two names nor hold an overlay). It fails with the script.
func (w *world) onFUSE(t *testing.T, script string) string {
	t.Helper()
	for _, program := range []string{"bindfs", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: install %[2]s (Debian and nixpkgs: %[2]s; setpriv is of util-linux)", err, program)
		}
	}
	w.folder(t, "fuse")
	w.folder(t, "behind")
	const mount = `bindfs --no-allow-other ~/behind ~/fuse && exec setpriv --ambient-caps -all --inh-caps -all timeout 120 bash -euc "$1"`
	cmd := exec.Command("bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--cap-add", "CAP_SYS_ADMIN",
		"--dev-bind", "/", "/", "--proc", "/proc", "--", "bash", "-euc", mount, "bash", script)
	cmd.Env = append(w.environment(), "CLAUDEBOX_BIN="+os.Getenv("CLAUDEBOX_BIN"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return strings.ReplaceAll(string(out), "\r", "")
}

// A project on FUSE is one like others: commits cross both ways while the session runs, a session on a branch works, and
// a git folder of the user's gets nothing that git obeys. What tools obey unasked is not held back, and a line says so.
func TestAProjectOnFUSE(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".gitconfig", identity)
	said := w.onFUSE(t, `
cd ~/fuse; git init -q -b main p; cd p; echo a >a; git add a; git commit -qm one
until git log --format=%s | grep -qx agent; do sleep 0.05; done && git commit -qm user --allow-empty &
"$CLAUDEBOX_BIN" shell --yes -- bash -euc '
	git commit -qm agent --allow-empty
	git config core.fsmonitor "touch $HOME/ran; false"; echo "touch $HOME/ran" >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
	mkdir .idea; until git log --format=%s | grep -qx user; do sleep 0.05; done'
wait; git status; git commit -qm after --allow-empty
for planted in ~/ran .git/hooks/pre-commit; do [ ! -e $planted ]; done; [ -z "$(git config core.fsmonitor)" ]; [ -d .idea ]
"$CLAUDEBOX_BIN" shell --yes --branch feat -- bash -euc 'echo b >b; git add b; git commit -qm branch'
git merge -q feat; git fsck --strict --no-dangling; git log --format=%s`)
	if !strings.HasSuffix(said, "\nbranch\nafter\nuser\nagent\none\n") ||
		strings.Count(said, "is not held back in "+w.path("fuse/p")+": its file system cannot exchange two names\n") != 1 {
		t.Error(said)
	}
}

// Where claudebox's own folder cannot hold an overlay, the first launch runs as each later one does, and says what there
// is not. A branch is refused, leaves nothing, and works by the remedy.
func TestAHomeOnFUSE(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".gitconfig", identity)
	said := w.onFUSE(t, `
mv ~/.local ~/.gitconfig ~/fuse/; elsewhere=$HOME/elsewhere; export HOME=$HOME/fuse
git init -q -b main ~/p; cd ~/p; git commit -qm one --allow-empty
for n in two three; do "$CLAUDEBOX_BIN" shell --yes -- git commit -qm $n --allow-empty; done
! "$CLAUDEBOX_BIN" shell --yes --branch feat -- true; "$CLAUDEBOX_BIN" branch list; [ -z "$(git branch --list feat)" ]
CLAUDEBOX_HOME=$elsewhere "$CLAUDEBOX_BIN" shell --yes --branch feat -- git commit -qm four --allow-empty; git log --format=%s feat`)
	for text, times := range map[string]int{
		"claudebox: Nix inside neither builds nor fetches": 3,
		"bwrap":                             0,
		"remedy: set CLAUDEBOX_HOME":        1,
		"No session works on a branch here": 1,
	} {
		if strings.Count(said, text) != times {
			t.Errorf("not %d times %q", times, text)
		}
	}
	if !strings.HasSuffix(said, "\nfour\nthree\ntwo\none\n") || t.Failed() {
		t.Error(said)
	}
}
