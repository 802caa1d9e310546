//go:build lab

package sandbox_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"claudebox/internal/plan"
)

func TestNixWorksInTierFull(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct{ script, want string }{
		"the daemon answers and does not trust":  {`nix store info --json | jq -c '[.url, .trusted == true or .trusted == 1]'`, `["daemon",false]` + "\n"},
		"a package runs by nix shell":            {`nix shell nixpkgs#hello -c hello 2>/dev/null`, "Hello, world!\n"},
		"a package runs by nix run":              {`nix run nixpkgs#hello 2>/dev/null`, "Hello, world!\n"},
		"a package runs by comma":                {`, hello 2>/dev/null`, "Hello, world!\n"},
		"a package is evaluated by nix-build":    {`$(nix-build --no-out-link '<nixpkgs>' -A hello 2>/dev/null)/bin/hello`, "Hello, world!\n"},
		"nixpkgs is the plan's":                  {`[ "nixpkgs=$(nix eval --raw --impure --expr 'toString <nixpkgs>')" = "$NIX_PATH" ] && echo same`, "same\n"},
		"no setting warns":                       {`nix eval --expr 1+1`, "2\n"},
		"a setting of the host's is not trusted": {`nix config show access-tokens; nix config show netrc-file`, "\n/etc/nix/netrc\n"},
	} {
		t.Run(name, func(t *testing.T) { wantEqual(t, w.inside(t, tc.script), tc.want) })
	}
}

// A path that the daemon makes during the session is there at once, in this
// sandbox and in others that run (TOOL-03, SAND-06).
func TestAPathRealisedInsideIsThereAtOnce(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `
		path=$(nix build --print-out-paths --no-link --impure --expr '
			derivation {
				name = "realised-inside"; system = builtins.currentSystem;
				builder = "/bin/sh"; args = [ "-c" "echo '"$RANDOM$RANDOM"' made here >$out" ];
			}' 2>/dev/null)
		cut -d" " -f2- "$path"; if echo x >>"$path"; then echo written; fi 2>/dev/null`)
	wantEqual(t, got, "made here\n")
}

func TestAPathRealisedOutsideIsThereAtOnce(t *testing.T) {
	w := newWorld(t)
	fifo := w.path("project/go")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := w.session(`read -r path <go; cat "$path"`)
	done := make(chan string)
	go func() {
		file := w.path("outside-" + strings.TrimPrefix(w.home, top+"/home-"))
		os.WriteFile(file, []byte(w.home), 0o600)
		out, _ := exec.Command("nix-store", "--add", file).Output()
		os.WriteFile(fifo, out, 0o600)
		done <- string(out)
	}()
	got := succeed(t, cmd)
	if path := <-done; !strings.HasPrefix(path, "/nix/store/") {
		t.Fatalf("nothing was added to the store: %q", path)
	}
	wantEqual(t, got, w.home)
}

func TestTheDaemonIsOutOfReach(t *testing.T) {
	socket := plan.DaemonSocketDir + "/socket"
	for name, tc := range map[string]struct{ lines, flags []string }{
		"in tier none":                   {nil, []string{"--network", "none"}},
		"when the profile says so":       {[]string{"nix: {daemon: off}"}, nil},
		"in tier none, whatever is said": {[]string{"nix: {daemon: raw}"}, []string{"--network", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			flags := append([]string{"--profile", w.profile(t, tc.lines...)}, tc.flags...)
			got := run(t, w.session(`[ ! -e `+socket+` ] && [ -z "${NIX_REMOTE-}" ] && echo none; nix store info --store daemon >/dev/null 2>&1 && echo reached; true`, flags...))
			wantEqual(t, got.stdout, "none\n")
		})
	}
}

// The store inside is the host's, but nobody writes it: not through the mount,
// and not through the daemon's own rights.
func TestTheStoreIsReadOnly(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `
		path=${SHELL%/bin/bash}
		for try in 'touch /nix/store/x' 'rm -rf /nix/store/x*' 'touch $path/x' 'chmod 700 $path' 'mv $path /tmp' 'ln $SHELL $HOME/bash' 'mkdir /nix/var/nix/db'; do
			if eval "$try" 2>/dev/null && [ "$try" != 'rm -rf /nix/store/x*' ]; then echo "$try worked"; fi
		done`)
	wantEqual(t, got, "")
}

// Nothing of Nix's state but the daemon's socket: a user's profiles, the
// database and build logs stay outside.
func TestNothingElseOfNixIsInside(t *testing.T) {
	w := newWorld(t)
	wantEqual(t, w.inside(t, `find /nix -path /nix/store -prune -o -print`), `/nix
/nix/var
/nix/var/nix
/nix/var/nix/daemon-socket
/nix/var/nix/daemon-socket/socket
`)
}

func TestOnlyTheClosureIsMountedWhereAProfileAsksForIt(t *testing.T) {
	w := newWorld(t)
	file := w.profile(t, "packages: [hello]", "nix: {store: closure, daemon: off}")
	got := w.inside(t, `hello; git --version >/dev/null; ls /nix/store | wc -l; ls -d /nix/store/*-python3-* 2>/dev/null || echo no python`, "--profile", file)
	lines := strings.Split(got, "\n")
	if lines[0] != "Hello, world!" || lines[2] != "no python" {
		t.Errorf("inside: %q", got)
	}
	all, err := os.ReadDir("/nix/store")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(all); lines[1] == "0" || len(lines[1]) > 3 || n < 100 {
		t.Errorf("%s of %d store paths are inside", lines[1], n)
	}
}

// nscd, docker and resolved listen below /run; a bind of a folder would bring
// their sockets in.
func TestNoSocketIsInsideButTheDaemons(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("unix", w.path("s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	wantEqual(t, w.inside(t, `find / -path /proc -prune -o -path /nix/store -prune -o -type s -print 2>/dev/null || true`), plan.DaemonSocketDir+"/socket\n")
}
