//go:build lab

package sandbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// inTier are the flags of a session in that tier, which may reach a port of the
// host's where it may reach any; 0: none.
func (w *world) inTier(t *testing.T, tier string, port int) []string {
	t.Helper()
	lines := []string{"network: " + tier}
	if tier == "allow" {
		lines[0] = "network: {tier: allow, allow: [api.anthropic.com]}"
	}
	if port != 0 && (tier == "inet" || tier == "allow") {
		lines = append(lines, fmt.Sprintf("ports: {out: [%d]}", port))
	}
	return []string{"--profile", w.profile(t, lines...)}
}

// The same for each daemon, whether or not it trusts the user, in each tier. In
// one tier with each daemon, and in all with CLAUDEBOX_LONG=1, something is
// fetched, and the host goes on meanwhile.
func TestNixInsideOverEachDaemon(t *testing.T) {
	tiers := []string{"full", "inet", "allow", "none"}
	for i, release := range []string{"bookworm", "trixie", "sid"} {
		t.Run(release, func(t *testing.T) {
			h := newOwnHost(t)
			for j, trusted := range []bool{false, true} {
				h.daemon(t, release, trusted)
				for k, tier := range tiers {
					t.Run(fmt.Sprintf("trusted %v, tier %s", trusted, tier), func(t *testing.T) {
						h.works(t, tier)
						if !trial.Short() || k == (2*i+j)%len(tiers) {
							h.fetches(t, tier)
							h.goesOn(t, tier)
						}
					})
				}
			}
		})
	}
}

// works needs nothing but what the host has.
func (h *ownHost) works(t *testing.T, tier string) {
	got := run(t, h.there(h.session(build+`
		nix shell nixpkgs#hello -c hello 2>/dev/null
		cat "$(build over-`+tier+` 'echo built >$out')"
		nix store info --json --store unix:///run/claudebox/nix-daemon 2>/dev/null | jq .trusted`, h.inTier(t, tier, 0)...)))
	if got.stdout != "Hello, world!\nbuilt\nfalse\n" && got.stdout != "Hello, world!\nbuilt\n0\n" {
		t.Errorf("status %d, %q, %s", got.status, got.stdout, got.stderr)
	}
}

// fetches: of two servers of the host's a build reaches the first one in all tiers
// that reach any, and the other one in tier full; what it does not reach is an
// error of one line. In tier none it reaches the sandbox's own.
func (h *ownHost) fetches(t *testing.T, tier string) {
	var urls [2]string
	for i := range urls {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fetched") }))
		defer server.Close()
		urls[i] = server.URL
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(urls[0], "http://"), ":")
	number, err := strconv.Atoi(port)
	must.Do(t, err)
	name := fmt.Sprintf("%d-%s", os.Getpid(), port) // one that nothing was fetched by yet
	got := run(t, h.there(h.session(`
		hash=$(printf fetched | sha256sum | cut -d" " -f1)
		fetch() { if got=$(nix build --no-link --print-out-paths --impure --expr "import <nix/fetchurl.nix> { url = \"$1\"; sha256 = \"$hash\"; name = \"$2-`+name+`\"; }" 2>err)
			then cat $got; echo; else grep -c "error: unable to download" err; fi; }
		fetch `+urls[0]+` one; fetch `+urls[1]+` two
		if [ `+tier+` = none ]; then
			mkdir /tmp/served; printf fetched >/tmp/served/file; python3 -m http.server -d /tmp/served 8000 >/dev/null 2>&1 &
			until curl -s -o /dev/null http://127.0.0.1:8000/file; do sleep 0.1; done; fetch http://127.0.0.1:8000/file three
		fi`, h.inTier(t, tier, number)...)))
	const fetched, fails = "fetched\n", "1\n"
	want := map[string]string{"full": fetched + fetched, "inet": fetched + fails, "allow": fetched + fails, "none": fails + fails + fetched}[tier]
	if got.stdout != want {
		t.Errorf("status %d, %q, want %q; %s; the last error is %s", got.status, got.stdout, want, got.stderr, h.read(t, "project/err"))
	}
}

// goesOn: while a build runs inside, the host collects its garbage, adds a path,
// and has a second session in the same project.
func (h *ownHost) goesOn(t *testing.T, tier string) {
	flags := h.inTier(t, tier, 0)
	name := strings.NewReplacer("/", "-", ",", "").Replace(t.Name())
	relies := h.add(t, "relies-on-"+name, "relied on\n")
	garbage := h.add(t, "garbage-"+name, "garbage\n")
	added := ""
	got := h.during(t, flags, relies, `p=$(cat added); nix path-info "$p"; cat "$p"; if [ -e `+garbage+` ]; then echo garbage; fi`, func() {
		h.remote(t, "nix-collect-garbage")
		if h.exists(garbage) || !h.exists(relies) {
			t.Errorf("the collector: garbage there %v, what a build uses there %v; want false, true", h.exists(garbage), h.exists(relies))
		}
		added = h.add(t, "added-"+name, "added\n")
		h.write(t, "project/added", added+"\n")
		second := run(t, h.there(h.session(build+`nix shell nixpkgs#hello -c hello 2>/dev/null; cat "$(build second 'echo second >$out')"`, flags...)))
		wantEqual(t, second.stdout, "Hello, world!\nsecond\n")
	})
	if want := "Hello, world!\nrelied on\n" + added + "\nadded\n"; got.stdout != want {
		t.Errorf("status %d, %q, %s; want %q", got.status, got.stdout, got.stderr, want)
	}
}

// destruction is what an agent may try with Nix: 17 operations, after which it
// prints their number.
const destruction = build + `
	exec 2>/dev/null; set +e
	done=0; op() { "$@" >/dev/null; done=$((done + 1)); }
	host="--store unix:///run/claudebox/nix-daemon"
	hello=$(nix build --no-link --print-out-paths nixpkgs#hello)
	op build "built-$1" "echo $1 >\$out"; op build "also-$(($1 % 5))" "echo >\$out"; op nix-store --delete $(ls -d /nix/store/*-built-$1)
	op nix store delete "$hello"; op nix-store --delete "$hello"; op nix-store --repair-path "$hello"
	op nix-store $host --gc; op nix-store $host --delete "$hello"; op nix-store $host --add /etc/passwd
	op nix store sign $host -k /dev/null "$hello"; op nix-store $host --gc --print-roots
	op nix copy --to unix:///run/claudebox/nix-daemon --no-check-sigs "$(nix-store --add /etc/group)"
	op nix-store $host --optimise; op nix-store $host --verify --repair; op nix-store --verify --check-contents --repair
	op nix-store --gc; op nix store gc
	echo "$done"`

// Whatever the agent does with Nix, as a user whom the daemon trusts, the host's
// store is as it was: after two sessions, or after thirty with CLAUDEBOX_LONG=1,
// which are 510 operations.
//
// Promise: no rights through Nix.
func TestTheHostsStoreIsAsItWas(t *testing.T) {
	h := newOwnHost(t)
	h.daemon(t, "sid", true)
	before := h.state(t)
	sessions := trial.Count(2, 30)
	for i := range sessions {
		got := run(t, h.there(h.session("set -- "+strconv.Itoa(i)+destruction)))
		if got.status != 0 || got.stdout != "17\n" {
			t.Errorf("session %d: status %d, %q operations, %s", i, got.status, got.stdout, got.stderr)
		}
	}
	// The daemon lets go of a session's roots when its worker ends.
	after := ""
	for range 100 {
		if after = h.state(t); after == before {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	wantEqual(t, after, before)
}

// Where Nix was installed for one user there is no daemon, and the store is that
// user's own to write: the same holds.
func TestNixInsideWithoutADaemon(t *testing.T) {
	h := newOwnHost(t)
	h.goesOn(t, "full")
	expect.Contains(t, run(t, h.there(h.claudebox("check"))).stdout, "has a store of its own over the host's")
	before := h.state(t)
	got := run(t, h.there(h.session(build+`
		cat "$(build again 'echo again >$out')"
		chmod -R u+w ${SHELL%/bin/bash} && echo '#!/bin/sh' >$SHELL; rm -rf /nix/store/*-hello-*; nix-collect-garbage >/dev/null 2>&1`)))
	wantEqual(t, got.stdout, "again\n")
	wantEqual(t, h.state(t), before)
	wantEqual(t, succeed(t, h.there(h.session(`"$SHELL" -c 'echo good'; nix shell nixpkgs#hello -c hello 2>/dev/null`))), "good\nHello, world!\n")
}

// realStdenv makes the project one whose packages are made by nixpkgs' own
// stdenv, where a checkout with it is at hand.
func (w *world) realStdenv(t *testing.T) {
	t.Helper()
	core := filepath.Join(os.Getenv("CLAUDEBOX_REAL_INPUTS"), "corepkgs")
	if !filepath.IsAbs(core) || !exists(core+"/stdenv") {
		t.Skip("NOT RUN: the real stdenv needs CLAUDEBOX_REAL_INPUTS=FOLDER, with checkouts of corepkgs and nix-lib")
	}
	script := `mkdir core; cp -r "$1"/stdenv "$1"/systems "$1"/lib.nix core/; mkdir core/build-support src
		cp -r "$1"/build-support/setup-hooks "$1"/build-support/lib core/build-support/; cp -r "$1"/../nix-lib core/lib
		chmod -R u+w .; echo '{ lib = ./lib; }' >core/pins.nix; echo source >src/file`
	cmd := exec.Command("bash", "-euc", script, "bash", core)
	cmd.Dir = w.project
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	flake := must.Read(t, "testdata/stdenv/flake.nix")
	w.write(t, "project/flake.nix", flake)
	w.write(t, "project/shell.nix", `(builtins.getFlake (toString ./.)).devShells.x86_64-linux.default`)
}

// What a person does with Nix all day, with the stdenv that nixpkgs has.
func TestARealStdenvInside(t *testing.T) {
	w := newWorld(t)
	w.realStdenv(t)
	plan := w.planOfARevision(t)
	got := run(t, w.session(`exec 2>err
		nix build --print-out-paths >/dev/null; ./result/bin/greet
		nix develop -c bash -c 'greet; echo $WORD; echo ${stdenv##*-}'
		nix-shell --run 'greet; echo $WORD; type -t genericBuild'
		nix run; nix flake check && echo checked
		nix copy --to file://$PWD/cache ./result; nix path-info --store file://$PWD/cache ./result | sed 's/.*-//'
		ls -d ~/.local/share/nix/root 2>/dev/null || echo no other store`, "--plan", plan))
	if lock := w.read(t, "project/flake.lock"); strings.Contains(lock, "/nix/store") {
		t.Errorf("the lock file: %s", lock)
	}
	const hello = "Hello, world!\n"
	want := hello + hello + "from the shell\nstdenv\n" + hello + "from the shell\nfunction\n" + hello + "checked\n1\nno other store\n"
	if got.status != 0 || got.stdout != want {
		t.Errorf("status %d, %q, want %q; %s", got.status, got.stdout, want, w.read(t, "project/err"))
	}
	if _, err := os.Stat(w.path("project/result")); err == nil {
		t.Error("the link leads somewhere outside")
	}
	wantEqual(t, w.inside(t, "./result/bin/greet", "--plan", plan), hello)
}

// A profile would be made, and be of no use.
func TestNixProfileIsAClearNo(t *testing.T) {
	w := newWorld(t)
	got := run(t, w.session(`for try in 'nix profile install nixpkgs#hello' 'nix-env -iA hello -f <nixpkgs>'; do
		if $try 2>err; then echo worked; fi; grep error: err | wc -l; grep -c 'there-are-no-profiles-in-a-sandbox' err; done`))
	wantEqual(t, got.stdout, "1\n1\n1\n1\n")
}

// A full disk is Nix's own error inside, and a line of claudebox's outside. When
// the garbage is collected all is well again.
func TestADiskThatIsFull(t *testing.T) {
	w := newWorld(t)
	w.folder(t, ".claudebox")
	first := build + `
		dd if=/dev/zero of=big bs=1M count=50 2>/dev/null
		if nix-store --add big 2>err; then echo added; else grep -o "No space left on device" err; fi`
	after := build + `cat $(build after 'echo after >$out'); nix shell nixpkgs#hello -c hello 2>/dev/null`
	script := `session() { "$CLAUDEBOX_BIN" shell --yes --no-report -- bash -euc "$1"; }
		session "$1"
		dd if=/dev/zero of="$HOME/.claudebox/filler" bs=1M 2>/dev/null || true
		session true || echo "status $?"
		rm "$HOME/.claudebox/filler"
		"$CLAUDEBOX_BIN" instance gc | grep -o 'store paths deleted'
		session "$2"`
	cmd := exec.Command("bwrap", "--die-with-parent", "--unshare-user", "--dev-bind", "/", "/",
		"--size", "40000000", "--tmpfs", w.path(".claudebox"), "--", "bash", "-euc", script, "bash", first, after)
	cmd.Dir, cmd.Env = w.project, append(w.environment(), "CLAUDEBOX_BIN="+os.Getenv("CLAUDEBOX_BIN"))
	got := run(t, cmd)
	const want = "No space left on device\nstatus 125\nstore paths deleted\nafter\nHello, world!\n"
	if got.status != 0 || got.stdout != want || !strings.Contains(got.stderr, "no space left on device") {
		t.Errorf("status %d, %q, want %q; %s", got.status, got.stdout, want, got.stderr)
	}
}
