//go:build lab

package sandbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/inside"
)

// build is a function of shell that builds a derivation of that name, whose
// output is its second word, and prints the output's path.
const build = `
	build() { nix build --no-link --print-out-paths --impure --expr "derivation {
		name = \"$1\"; system = builtins.currentSystem; builder = \"/bin/sh\"; args = [ \"-c\" \"$2\" ]; }" 2>/dev/null; }
	`

func TestWhatIsBuiltInsideIsThereNextTime(t *testing.T) {
	w := newWorld(t)
	path := strings.TrimSpace(w.inside(t, build+`build kept 'echo kept >$out'`))
	if exists(path) {
		t.Errorf("%s is in the host's store", path)
	}
	wantEqual(t, w.inside(t, `cat `+path+`; nix path-info `+path), "kept\n"+path+"\n")
	other := newWorldHere(t)
	if got := run(t, other.session(`cat `+path)); got.status == 0 {
		t.Errorf("another project has it: %s", got.stdout)
	}
}

// A second session has an upper of its own, says so, and leaves nothing.
func TestASecondSessionBuildsForItself(t *testing.T) {
	w := newWorld(t)
	// No pipes: the second session would find them in the project, and puts them aside.
	first := w.session(build + `build first 'echo first >$out' >up; while [ ! -e down ]; do sleep 0.05; done
		ls -d /nix/store/*-second 2>/dev/null || echo no second`)
	done := beside(t, first)
	path := ""
	for !strings.HasSuffix(path, "\n") {
		told, _ := os.ReadFile(w.path("project/up"))
		path = string(told)
		time.Sleep(10 * time.Millisecond)
	}
	path = strings.TrimSpace(path)
	if shown := succeed(t, w.claudebox("plan")); !strings.Contains(shown, "another session uses this project's Nix store") {
		t.Errorf("the plan does not say so: %s", shown)
	}
	got := run(t, w.session(build+`build second 'echo second >$out' >/dev/null; nix shell nixpkgs#hello -c hello 2>/dev/null; if cat `+path+` 2>/dev/null; then echo shared; fi`))
	if got.status != 0 || got.stdout != "Hello, world!\n" {
		t.Errorf("the second session: status %d, %q, %s", got.status, got.stdout, got.stderr)
	}
	must.Write(t, w.path("project/down"), "go\n")
	if got := <-done; got.stdout != "no second\n" {
		t.Errorf("the first session: %q, %s", got.stdout, got.stderr)
	}
	left, err := filepath.Glob(w.path(".claudebox/instances/*/nix/*"))
	must.Do(t, err)
	if len(left) != 1 || filepath.Base(left[0]) != "main" {
		t.Errorf("there are %q", left)
	}
}

// The agent left folders and whiteouts in place of what the plan uses, as it
// could if its upper layer were its own to write.
func TestAHostileUpperChangesNothingInTheNextSession(t *testing.T) {
	w := newWorld(t)
	shell := strings.TrimSpace(w.inside(t, `echo $SHELL`))
	uppers, err := filepath.Glob(w.path(".claudebox/instances/*/nix/main"))
	must.Do(t, err)
	if len(uppers) != 1 {
		t.Fatalf("uppers: %q", uppers)
	}
	upper := inside.Upper(uppers[0])
	bash := filepath.Join(upper, strings.TrimPrefix(shell, "/nix/store/"))
	must.Do(t, os.MkdirAll(filepath.Dir(bash), 0o755), os.WriteFile(bash, []byte("#!/bin/sh\necho evil\n"), 0o755))
	real, err := filepath.Glob("/nix/store/*-coreutils-*")
	must.Do(t, err)
	for _, path := range real {
		must.Do(t, syscall.Mknod(filepath.Join(upper, filepath.Base(path)), syscall.S_IFCHR, 0))
	}
	wantEqual(t, w.inside(t, `ls -d /nix/store >/dev/null; "$SHELL" -c 'echo good'`), "good\n")
}

// The host's collector leaves what a session has asked for; after it, the next
// one begins anew where something is gone.
func TestTheHostsCollectorAndTheStoreInside(t *testing.T) {
	c := newCollector(t)
	added := strings.TrimSpace(c.must("nix-store", "--add", c.w.write(t, "added-"+filepath.Base(c.w.home), c.w.home)))
	c.session(build+`nix path-info `+added+` >/dev/null; build relies 'read x <`+added+`; echo $x >$out'`, func(said string) {
		c.keeps("while a session relies on it", added)
		later := strings.TrimSpace(c.must("nix-store", "--add", c.w.write(t, "later-"+filepath.Base(c.w.home), c.w.home)))
		if !exists(later) {
			t.Error("nothing was added")
		}
	}, "--profile", c.profile)
	c.takes("after the session", added)
	got := run(t, c.w.session(`nix path-info `+added+` 2>&1 || true; ls /run/claudebox/nix-upper | wc -l`, "--profile", c.profile))
	if !strings.Contains(got.stderr, "Nix inside begins anew: "+added+" was collected") || !strings.HasSuffix(got.stdout, "0\n") {
		t.Errorf("the next session says %q, and %q", got.stderr, got.stdout)
	}
}

// A path that the host adds during the session is there, and valid.
func TestAPathThatTheHostAddsIsValidInside(t *testing.T) {
	c := newCollector(t)
	var added string
	must.Do(t, syscall.Mkfifo(c.w.path("project/path"), 0o600))
	c.session(`(read -r p <path; nix path-info "$p" >told 2>&1; cat "$p" >>told) </dev/null >/dev/null 2>&1 &`, func(string) {
		added = strings.TrimSpace(c.must("nix-store", "--add", c.w.write(t, "during-"+filepath.Base(c.w.home), "content\n")))
		must.Write(t, c.w.path("project/path"), added+"\n")
		for range 200 {
			if told, _ := os.ReadFile(c.w.path("project/told")); strings.HasSuffix(string(told), "content\n") {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}, "--profile", c.profile)
	wantEqual(t, c.w.read(t, "project/told"), added+"\ncontent\n")
}

// What a tier does not let through no build fetches: the sandbox is what it
// passes.
func TestABuildFetchesWhatTheTierAllows(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fetched\n") }))
	defer server.Close()
	const script = build + `
		nix build --no-link --print-out-paths --impure --expr 'import <nix/fetchurl.nix> { url = "%s/file"; hash = "sha256-FGpe+DpJ6+8QCw7Uwp4Bv10mFGF1mLDVgKGGwxXg+ZE="; }' 2>err || true
		grep -c "unable to download" err || true`
	for tier, fetched := range map[string]bool{"full": true, "inet": false, "none": false} {
		w := newWorldHere(t)
		got := run(t, w.session(fmt.Sprintf(script, server.URL), "--network", tier))
		if tried := strings.Contains(got.stdout, "/nix/store/") || strings.Contains(w.read(t, "project/err"), "hash mismatch"); tried != fetched {
			t.Errorf("in tier %s: %q, %s", tier, got.stdout, w.read(t, "project/err"))
		}
	}
}

// Somebody who kills claudebox leaves a store that the next session goes on with.
func TestAfterAKillTheStoreInsideGoesOn(t *testing.T) {
	w := newWorld(t)
	must.Do(t, syscall.Mkfifo(w.path("project/up"), 0o600))
	cmd := w.session(build + `build before 'echo before >$out' >path; build half 'echo x >$out; echo >` + w.path("project/up") + `; read x <` + w.path("project/up") + `'`)
	must.Do(t, cmd.Start())
	_, err := os.ReadFile(w.path("project/up"))
	must.Do(t, err)
	must.Do(t, cmd.Process.Kill())
	cmd.Wait()
	wantEqual(t, w.inside(t, build+`cat "$(cat path)"; cat "$(build after 'echo after >$out')"`), "before\nafter\n")
}

// planOfARevision is the file of a plan whose nixpkgs is a known revision, as it
// is where the flake of claudebox is used.
func (w *world) planOfARevision(t *testing.T) string {
	t.Helper()
	made := decodePlan(t, succeed(t, w.claudebox("plan", "--pinned")))
	made.Pins.Nixpkgs.Rev, made.Pins.Nixpkgs.LastModified = trial.Revision, 1700000000
	return w.write(t, "plan.json", string(made.Encode()))
}

// newNix is a function of shell: the Nix of Debian sid, where a sandbox has it at
// /opt/sid.
const newNix = `new() { sid=/opt/sid/usr; lib=$sid/lib/x86_64-linux-gnu
		$sid/lib64/ld-linux-x86-64.so.2 --library-path $lib:$lib/nix $sid/bin/nix "$@"; }
	`

// A lock file that is made inside names the revision, and no path of this machine
// (N4). Where the revision is not known Nix works, and makes none. So it is with
// Nix 2.26, which locks by every registry, and with 2.34.
func TestALockFileMadeInsideHoldsForOthers(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/flake.nix", `{ outputs = { nixpkgs, ... }: { x = nixpkgs.outPath; }; }`)
	known := w.planOfARevision(t)
	source := decodePlan(t, w.read(t, known)).Pins.Nixpkgs.Path
	nixes, flags := []string{"nix"}, []string{"--network", "none"}
	if sid := filepath.Join(os.Getenv("CLAUDEBOX_LAB_RELEASES"), "sid"); exists(sid + "/usr/bin/nix") {
		nixes, flags = append(nixes, "new"), append(flags, "--mount-ro", sid+":/opt/sid")
	} else {
		t.Log("NOT RUN with Nix 2.34: there is no Debian sid here")
	}
	for _, nix := range nixes {
		script := newNix + `rm -f flake.lock; ` + nix + ` flake lock 2>err || true; ` + nix + ` eval --raw .#x 2>>err; ` + nix + ` shell nixpkgs#hello -c hello 2>>err`
		for plan, want := range map[string]string{known: trial.Revision, "": ""} {
			more := flags
			if plan != "" {
				more = append(slices.Clone(flags), "--plan", plan)
			}
			wantEqual(t, run(t, w.session(script, more...)).stdout, source+"Hello, world!\n")
			lock, _ := os.ReadFile(w.path("project/flake.lock"))
			if strings.Contains(string(lock), "/nix/store") || !strings.Contains(string(lock), want) || (want == "") != (lock == nil) {
				t.Errorf("%s, revision %q: the lock file is %q\n%s", nix, want, lock, w.read(t, "project/err"))
			}
			if want == "" && !strings.Contains(w.read(t, "project/err"), "because it has an unlocked input") {
				t.Errorf("%s does not say why it locks nothing: %s", nix, w.read(t, "project/err"))
			}
		}
	}
}

// There is no other store that Nix would fall back to.
func TestWithoutAStoreNixSaysWhy(t *testing.T) {
	w := newWorld(t)
	off := w.profile(t, "nix: {daemon: off}")
	got := w.inside(t, `nix eval --expr 1+1 --store dummy://; nix build --impure --expr 'derivation { name = "x"; system = builtins.currentSystem; builder = "/bin/sh"; }' 2>&1 || true; ls -A ~/.local/share/nix 2>/dev/null || true`, "--profile", off)
	if !strings.Contains(got, "Nix-is-off-in-this-sandbox") || strings.Contains(got, "root") {
		t.Errorf("it says %q", got)
	}
	for _, command := range []string{"nix shell nixpkgs#hello -c hello", "nix run nixpkgs#hello", ", hello", "nix-shell -p hello"} { // N15
		expect.Contains(t, w.inside(t, command+" 2>&1 || true", "--profile", off), "Nix-is-off-in-this-sandbox")
	}
}

func TestTheCommandsOfEveryDay(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/flake.nix", `{ outputs = { self, nixpkgs }: let p = nixpkgs.legacyPackages.x86_64-linux; in {
		packages.x86_64-linux.default = derivation { name = "result-of-flake"; system = "x86_64-linux"; builder = "/bin/sh"; args = [ "-c" "echo made >$out" ]; };
		checks.x86_64-linux.one = self.packages.x86_64-linux.default; }; }`)
	for name, tc := range map[string]struct{ script, want string }{
		"nix build leaves a link that works inside": {`nix build 2>/dev/null; cat result`, "made\n"},
		"nix flake check":      {`nix flake check 2>/dev/null; echo $?`, "0\n"},
		"nix copy to a folder": {`nix build 2>/dev/null; nix copy --to file:///tmp/cache ./result 2>/dev/null; ls /tmp/cache | grep -c narinfo`, "1\n"},
	} {
		t.Run(name, func(t *testing.T) { wantEqual(t, w.inside(t, tc.script, "--no-devshell"), tc.want) }) // its flake has no lock
	}
}

// By a closure nothing else of the host's store is there, for Nix neither.
func TestNixInsideAClosure(t *testing.T) {
	w := newWorld(t)
	file := w.profile(t, "packages: [hello]", "nix: {store: closure}")
	outside := strings.TrimSpace(succeed(t, exec.Command("nix-store", "--add", w.write(t, "not-in-the-closure", w.home))))
	got := w.inside(t, build+`
		hello; cat "$(build in-a-closure 'echo built >$out')"
		nix path-info `+outside+` >/dev/null 2>&1 || echo not valid
		if cat `+outside+` 2>/dev/null; then echo readable; fi
		nix shell nixpkgs#hello -c hello 2>/dev/null`, "--profile", file)
	wantEqual(t, got, "Hello, world!\nbuilt\nnot valid\nHello, world!\n")
}

// What nothing refers to goes, what a link in the project refers to stays, and an
// instance can be removed whatever modes are in it.
func TestGarbageInsideIsCollectedByTheHost(t *testing.T) {
	w := newWorld(t)
	got := strings.Fields(w.inside(t, build+`nix shell nixpkgs#hello -c true 2>/dev/null; build garbage 'echo x >$out'
		nix build -o result --print-out-paths --impure --expr 'derivation { name = "linked"; system = builtins.currentSystem; builder = "/bin/sh"; args = [ "-c" "echo linked >$out" ]; }' 2>/dev/null`))
	if len(got) != 2 {
		t.Fatalf("built: %q", got)
	}
	if said := succeed(t, w.claudebox("instance", "gc")); !strings.Contains(said, "store paths deleted") {
		t.Errorf("it says %q", said)
	}
	wantEqual(t, w.inside(t, `cat result; if [ -e `+got[0]+` ]; then echo there; fi; nix path-info `+got[0]+` 2>/dev/null || echo gone; nix shell nixpkgs#hello -c hello 2>/dev/null`), "linked\ngone\nHello, world!\n")
	expect.Contains(t, succeed(t, w.claudebox("instance", "prune", "--all", "--yes")), "removed 1 of 1")
	left, err := filepath.Glob(w.path(".claudebox/instances/*"))
	must.Do(t, err)
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Of a store of its own over a closure the sandbox writes what it adds, and
// nothing of what it shows.
func TestInAClosureNothingOfTheHostsIsWritten(t *testing.T) {
	w := newWorld(t)
	link := lineOf(t, "nix-store", "--add", w.link(t, "/nix/store/nowhere", "a-link"))
	made := decodePlan(t, succeed(t, w.claudebox("plan", "--pinned", "--profile", w.profile(t, "nix: {store: closure}"))))
	made.Pins.Closure = append(made.Pins.Closure, link)
	slices.Sort(made.Pins.Closure)
	got := run(t, w.session(`path=${SHELL%/bin/bash}
		for try in 'touch $path/x' 'rm -rf $path' 'mv $path /nix/store/y' 'umount $path' 'rm -f `+link+` && ls `+link+`'; do
			if eval "$try" 2>/dev/null; then echo "$try worked"; fi
		done
		touch /nix/store/added; ls /nix/store/added`, "--plan", w.write(t, "plan.json", string(made.Encode()))))
	wantEqual(t, got.stdout, "/nix/store/added\n")
	wantEqual(t, lineOf(t, "readlink", link), "/nix/store/nowhere")
}

func lineOf(t *testing.T, program string, words ...string) string {
	t.Helper()
	out, err := exec.Command(program, words...).Output()
	must.Do(t, err)
	return strings.TrimSpace(string(out))
}

// A build that failed or was interrupted on the host leaves a lock in its store, which only root may open.
func TestALockThatTheHostLeftHindersNoBuildInside(t *testing.T) {
	w := newWorld(t)
	const file = "project/default.nix"
	w.write(t, file, `derivation { name = "locked-`+filepath.Base(w.home)+`"; system = builtins.currentSystem;
		builder = "/bin/sh"; args = [ "-c" "[ -e `+w.path(file)+` ] && echo built >$out" ]; }`)
	outside := exec.Command("nix-build", "--no-out-link", w.path(file)) // the daemon's builder does not see the home
	path := lineOf(t, "nix-store", "-q", "--outputs", lineOf(t, "nix-instantiate", w.path(file)))
	if err := outside.Run(); err == nil || !exists(path+".lock") {
		t.Fatalf("outside: %v, %s.lock is there: %v", err, path, exists(path+".lock"))
	}
	const look = `ls -l /nix/store >listed 2>&1 || :; ` // what was looked at is what the kernel remembers; other tests' paths go meanwhile
	wantEqual(t, w.inside(t, look+`cat $(nix-build --no-out-link 2>err)`), "built\n")
	if !exists(path + ".lock") {
		t.Error("the host's lock is gone")
	}
}
