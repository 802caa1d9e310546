//go:build lab

package sandbox_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/plan"
)

func TestNixWorksInEveryTier(t *testing.T) {
	for _, tier := range []string{"full", "inet", "allow", "none"} {
		t.Run(tier, func(t *testing.T) { nixWorks(t, tier) })
	}
}

// nixWorks needs nothing but what the host's store has.
func nixWorks(t *testing.T, tier string) {
	w := newWorld(t)
	flags := []string{"--network", tier}
	if tier == "allow" {
		flags = []string{"--profile", w.profile(t, "network: {tier: allow, allow: [api.anthropic.com]}")}
	}
	for name, tc := range map[string]struct{ script, want string }{
		"a package runs by nix shell":            {`nix shell nixpkgs#hello -c hello 2>/dev/null`, "Hello, world!\n"},
		"a package runs by nix run":              {`nix run nixpkgs#hello 2>/dev/null`, "Hello, world!\n"},
		"a package runs by comma":                {`, hello 2>/dev/null`, "Hello, world!\n"},
		"a package is evaluated by nix-build":    {`$(nix-build --no-out-link '<nixpkgs>' -A hello 2>/dev/null)/bin/hello`, "Hello, world!\n"},
		"nixpkgs is the plan's":                  {`[ "nixpkgs=$(nix eval --raw --impure --expr 'toString <nixpkgs>')" = "$NIX_PATH" ] && echo same`, "same\n"},
		"no setting warns":                       {`nix eval --expr 1+1`, "2\n"},
		"a setting of the host's is not trusted": {`nix config show access-tokens; nix config show netrc-file`, "\n/etc/nix/netrc\n"},
	} {
		t.Run(name, func(t *testing.T) { wantEqual(t, w.inside(t, tc.script, flags...), tc.want) })
	}
}

// A path that is built inside is there at once.
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
		"in tier full":             {nil, nil},
		"in tier none":             {nil, []string{"--network", "none"}},
		"when the profile says so": {[]string{"nix: {daemon: off}"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			flags := append([]string{"--profile", w.profile(t, tc.lines...)}, tc.flags...)
			got := run(t, w.session(`[ ! -e `+socket+` ] && [ -z "${NIX_REMOTE-}" ] && echo none; nix store info --store daemon >/dev/null 2>&1 && echo reached; true`, flags...))
			wantEqual(t, got.stdout, "none\n")
		})
	}
}

// By the socket inside questions are answered, and nothing else: it is the
// filter's, and the daemon's would list the host's roots.
func TestTheSocketInsideIsTheFilters(t *testing.T) {
	w := newWorld(t)
	const at = "--store unix:///run/claudebox/nix-daemon"
	got := run(t, w.session(`nix-store `+at+` --query --hash "$(readlink -f "$(command -v bash)" | cut -d/ -f1-4)" >/dev/null && echo answered
		nix-store `+at+` --gc --print-roots >/dev/null 2>&1 || echo refused`))
	wantEqual(t, got.stdout, "answered\nrefused\n")
}

// What is written in the store inside is not in the host's, and what the host has
// there nobody writes: not through the mount, and not through the daemon's rights.
func TestTheHostsStoreIsReadOnly(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `
		path=${SHELL%/bin/bash}
		touch /nix/store/claudebox-test-canary
		for try in 'touch $path/x' 'chmod 700 $path' 'mv $path /tmp' 'ln $SHELL $HOME/bash' 'touch /run/claudebox/nix-upper/x' 'mknod /run/claudebox/nix-upper/x c 0 0'; do
			if eval "$try" 2>/dev/null; then echo "$try worked"; fi
		done`)
	wantEqual(t, got, "")
	if exists("/nix/store/claudebox-test-canary") {
		t.Error("a file that was made inside is in the host's store")
	}
	off := w.profile(t, "nix: {daemon: off}")
	wantEqual(t, w.inside(t, `if touch /nix/store/x 2>/dev/null; then echo worked; fi`, "--profile", off), "")
}

// Nothing of the host's Nix but its store: users' profiles, the database and
// build logs stay outside.
func TestNothingElseOfNixIsInside(t *testing.T) {
	w := newWorld(t)
	wantEqual(t, w.inside(t, `find /nix -path /nix/store -prune -o -print`), "/nix\n/nix/var\n")
}

func TestOnlyTheClosureIsMountedWhereAProfileAsksForIt(t *testing.T) {
	w := newWorld(t)
	file := w.profile(t, "packages: [hello]", "nix: {store: closure, daemon: off}", "toolbox: base")
	got := w.inside(t, `hello; git --version >/dev/null; ls /nix/store | wc -l; ls -d /nix/store/*-python3-* 2>/dev/null || echo no python`, "--profile", file)
	lines := strings.Split(got, "\n")
	if lines[0] != "Hello, world!" || lines[2] != "no python" {
		t.Errorf("inside: %q", got)
	}
	all, err := os.ReadDir("/nix/store")
	must.Do(t, err)
	if n := len(all); lines[1] == "0" || len(lines[1]) > 3 || n < 100 {
		t.Errorf("%s of %d store paths are inside", lines[1], n)
	}
}

// The rest of the store is not merely unlisted: it is not there, by any name.
func TestNoOtherStorePathIsReachedFromAClosure(t *testing.T) {
	w := newWorld(t)
	secret := strings.TrimSpace(succeed(t, exec.Command("nix-store", "--add", w.write(t, "canary", canary))))
	link := strings.TrimSpace(succeed(t, exec.Command("nix-store", "--add", w.link(t, secret, "link"))))
	plain := w.profile(t, "nix: {store: closure, daemon: off}")
	made := decodePlan(t, succeed(t, w.claudebox("plan", "--pinned", "--profile", plain)))
	made.Pins.Closure = append(made.Pins.Closure, link) // a store path may be a link, too
	slices.Sort(made.Pins.Closure)
	file := w.write(t, "plan.json", string(made.Encode()))
	for _, tier := range []string{"full", "none"} {
		got := run(t, w.session(`
			for name in `+secret+` `+link+` /proc/1/root`+secret+` /proc/self/root`+secret+` /nix/store/../../`+secret+` /sys/*; do cat "$name" || true; done
			for pid in /proc/[0-9]*; do cat "$pid/root`+secret+`" "$pid"/fd/*`+secret+` || true; done
			readlink `+link+`; umount /nix/store || true; mount --bind / /mnt || true; unshare -Ur true || true; ls /nix/store | wc -l`, "--plan", file, "--network", tier))
		if strings.Contains(got.stdout, canary) || got.status != 0 {
			t.Errorf("in tier %s: status %d, %s", tier, got.status, got.stdout)
		}
		wantEqual(t, got.stdout, fmt.Sprintf("%s\n%d\n", secret, len(made.Pins.Closure)))
	}
}

func decodePlan(t *testing.T, text string) plan.Plan {
	t.Helper()
	made, err := plan.Decode("made", []byte(text))
	must.Do(t, err)
	return made
}

// An agent of the store comes with what it refers to; the daemon is asked once.
func TestAnAgentOfTheStoreBringsItsClosure(t *testing.T) {
	w := newWorld(t)
	nixpkgs := os.Getenv("CLAUDEBOX_NIXPKGS")
	hello := strings.TrimSpace(succeed(t, exec.Command("nix-build", "--no-out-link", nixpkgs, "-A", "hello")))
	file := w.profile(t, "nix: {store: closure, daemon: off}", "agent: {command: ["+hello+"/bin/hello]}")
	for _, socket := range []string{"", "/nowhere"} {
		w.env["NIX_DAEMON_SOCKET_PATH"] = socket
		wantEqual(t, succeed(t, w.claudebox("--yes", "--no-report", "--profile", file)), "Hello, world!\n")
	}
	w.write(t, ".cache/claudebox/agent-closure", "spoilt")
	wantRefused(t, run(t, w.claudebox("--yes", "--no-report", "--profile", file)), "no Nix daemon listens there")
}

// What cannot be mounted stops the launch, and leaves nothing running.
func TestAClosureThatIsNotThereIsRefused(t *testing.T) {
	w := newWorld(t)
	made := decodePlan(t, succeed(t, w.claudebox("plan", "--pinned", "--profile", w.profile(t, "nix: {store: closure, daemon: off}"))))
	gone := "/nix/store/00000000000000000000000000000000-never-was"
	made.Pins.Closure = slices.Insert(made.Pins.Closure, 0, gone)
	got := run(t, w.session("touch ran", "--plan", w.write(t, "plan.json", string(made.Encode()))))
	wantRefused(t, got, gone+": no such file or directory")
	if exists(w.path("project/ran")) {
		t.Error("the agent ran")
	}
}

// The stages that mount a closure end with claudebox, whenever it is killed.
func TestAKilledClaudeboxLeavesNoClosureBehind(t *testing.T) {
	w := newWorld(t)
	file := w.write(t, "plan.json", succeed(t, w.claudebox("plan", "--pinned", "--profile", w.profile(t, "nix: {store: closure, daemon: off}"))))
	for range kills(t) {
		delay := time.Duration(rand.Int64N(int64(40 * time.Millisecond)))
		cmd := w.session("sleep 1000", "--plan", file)
		killAfter(t, cmd, delay)
		wantNobodyLeft(t, cmd, delay)
	}
}

// A signal for claudebox is one for the agent, whatever bwrap was before.
func TestASignalReachesTheAgentInAClosure(t *testing.T) {
	w := newWorld(t)
	cmd := w.session(`trap 'touch ended; exit 3' TERM; touch begun; while :; do sleep 0.01; done`, "--profile", w.profile(t, "nix: {store: closure, daemon: off}"))
	go func() {
		for !exists(w.path("project/begun")) {
			time.Sleep(5 * time.Millisecond)
		}
		cmd.Process.Signal(syscall.SIGTERM)
	}()
	if got := run(t, cmd); got.status != 3 || !exists(w.path("project/ended")) {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
}

// By hand the same store paths are seen, with a mount for each.
func TestAScriptHasTheClosure(t *testing.T) {
	w := newWorld(t)
	file := w.profile(t, "packages: [hello]", "nix: {store: closure, daemon: off}", `agent: {command: [bash, -c, 'hello; ls /nix/store']}`)
	hand := exec.Command("/bin/sh")
	launched := succeed(t, w.claudebox("--yes", "--no-report", "--profile", file))
	hand.Dir, hand.Env, hand.Stdin = w.project, w.environment(), strings.NewReader(succeed(t, w.claudebox("plan", "--format", "sh", "--profile", file)))
	wantEqual(t, succeed(t, hand), launched)
}

// nscd, docker and resolved listen below /run; a bind of a folder would bring
// their sockets in.
func TestNoSocketIsInsideButTheFilters(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("unix", w.path("s"))
	must.Do(t, err)
	defer l.Close()
	wantEqual(t, w.inside(t, `find / -path /proc -prune -o -path /nix/store -prune -o -path /sys -prune -o -exec test -S {} \; -print 2>/dev/null | sort`), "/run/claudebox/nix-daemon\n/run/claudebox/why\n")
}
