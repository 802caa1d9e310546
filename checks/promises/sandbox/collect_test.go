//go:build lab

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// collector is a package of a test's own, which nobody else could hold, and a
// garbage collector that is after it: to delete one path asks the same
// questions as a whole collection, and leaves the paths of others alone.
type collector struct {
	t       *testing.T
	w       *world
	profile string // names the package
	begun   string // fifo that its builder writes to when it begins; it does not wait if there is none
	end     string // fifo that it then waits for
	drv     string
	path    string // an output that is on no PATH: what a process names in its environment is kept anyway
}

// newCollector is a collector in a world of its own.
func newCollector(t *testing.T, lines ...string) *collector {
	return newCollectorIn(t, newWorld(t), lines...)
}

// newCollectorIn makes a package set with one package, "own", and a profile
// that asks for it, with further lines.
func newCollectorIn(t *testing.T, w *world, lines ...string) *collector {
	t.Helper()
	shared, err := os.MkdirTemp("", "claudebox-collect-")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(shared) })
	must.Do(t, os.Chmod(shared, 0o755))
	c := &collector{t: t, w: w, begun: filepath.Join(shared, "begun"), end: filepath.Join(shared, "end")}
	name := filepath.Base(shared)
	w.write(t, "set/default.nix", fmt.Sprintf(`{ system, ... }: {
		own = derivation {
			name = %q; inherit system; builder = "/bin/sh"; outputs = [ "out" "lib" ];
			args = [ "-c" "if [ -p %s ]; then echo >%s; read x <%s; fi; PATH=/bin:/usr/bin; mkdir -p $out/bin; printf '#!/bin/sh\\necho own\\n' >$out/bin/own; chmod 755 $out/bin/own; echo lib >$lib" ];
		};
	}`, name, c.begun, c.begun, c.end))
	set := strings.TrimSpace(c.must("nix-store", "--add", w.path("set")))
	c.drv = strings.TrimSpace(c.must("nix-instantiate", set, "--argstr", "system", "x86_64-linux", "-A", "own"))
	c.path = strings.TrimSpace(c.must("nix-store", "--query", "--binding", "lib", c.drv))
	c.profile = w.profile(t, append(lines, "packages: ['own^out,lib']", "nixpkgs: "+set)...)
	time.Sleep(1100 * time.Millisecond) // no plan is kept of a profile that was written a moment ago
	return c
}

// builderWaits has the builder say when it begins, and wait for its end.
func (c *collector) builderWaits() {
	c.t.Helper()
	for _, fifo := range []string{c.begun, c.end} {
		must.Do(c.t, syscall.Mkfifo(fifo, 0o600), os.Chmod(fifo, 0o666))
	}
}

func (c *collector) must(program string, words ...string) string {
	c.t.Helper()
	out, err := exec.Command(program, words...).Output()
	if err != nil {
		c.t.Fatalf("%s %q: %v", program, words, err)
	}
	return string(out)
}

// keeps fails when the collector takes any of the paths.
func (c *collector) keeps(when string, paths ...string) {
	c.t.Helper()
	for _, path := range paths {
		if out, err := trial.Delete(path); err == nil || !exists(path) {
			c.t.Errorf("%s: %s was collected\n%s", when, path, out)
		}
	}
}

// takes fails when the collector leaves a path; the daemon's worker may need a
// moment to let go.
func (c *collector) takes(when, path string) {
	c.t.Helper()
	var out []byte
	for range 100 {
		var err error
		if out, err = trial.Delete(path); err == nil && !exists(path) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	roots, _ := exec.Command("nix-store", "--query", "--roots", path).CombinedOutput()
	c.t.Errorf("%s: %s is still there\n%s%s", when, path, out, roots)
}

// session runs a sandbox that has the package, and calls during while it runs.
func (c *collector) session(script string, during func(said string), flags ...string) {
	c.t.Helper()
	for _, name := range []string{"up", "down"} {
		if fifo := c.w.path("project/" + name); !exists(fifo) {
			must.Do(c.t, syscall.Mkfifo(fifo, 0o600))
		}
	}
	cmd := c.w.session(`{ own; `+script+`
		} >up; read -r x <down; own`, flags...)
	done := beside(c.t, cmd)
	said := make(chan string)
	go func() {
		up, err := os.ReadFile(c.w.path("project/up"))
		if err != nil {
			c.t.Error(err)
		}
		said <- string(up)
	}()
	select {
	case text := <-said:
		during(strings.TrimSpace(strings.TrimPrefix(text, "own\n")))
		must.Do(c.t, os.WriteFile(c.w.path("project/down"), []byte("go\n"), 0))
		got := <-done
		if got.status != 0 || got.stdout != "own\n" {
			c.t.Errorf("status %d, %q, %s", got.status, got.stdout, got.stderr)
		}
	case got := <-done:
		c.t.Fatalf("status %d, %q, %s", got.status, got.stdout, got.stderr)
	}
}

// daemonBehind has the world reach the daemon by a link, and gives what cuts
// that off.
func (c *collector) daemonBehind() (cut func()) {
	link := c.w.link(c.t, "/nix/var/nix/daemon-socket/socket", "daemon")
	c.w.env["NIX_DAEMON_SOCKET_PATH"] = link
	return func() { must.Do(c.t, os.Remove(link)) }
}

// The collector comes while the package is built, when it is there, and while
// the session runs; at the end it gets what it came for.
func TestTheCollectorTakesNothingOfASessionAtAnyStep(t *testing.T) {
	c := newCollector(t)
	c.builderWaits()
	built := make(chan bool, 1)
	go func() {
		err := read(c.begun)
		c.keeps("while it is built", c.drv)
		built <- err == nil && os.WriteFile(c.end, []byte("go\n"), 0) == nil
	}()
	c.session("", func(string) {
		must.Do(t, os.RemoveAll(c.w.path(".claudebox/roots")))
		c.keeps("during the session, by its connection alone", c.path)
	}, "--profile", c.profile)
	if len(built) == 0 || !<-built {
		t.Error("it was not built")
	}
	c.takes("after the session", c.path)
}

// A plan that is kept has durable roots: the next launch asks no daemon, and
// yet the collector takes nothing, before it or meanwhile.
func TestAKeptPlanKeepsItsPathsWithoutTheDaemon(t *testing.T) {
	c := newCollector(t)
	cut := c.daemonBehind()
	c.session("", func(string) { c.keeps("during the first", c.path) }, "--profile", c.profile)
	c.keeps("between two launches", c.path)
	cut()
	c.session("", func(string) { c.keeps("during one without a daemon", c.path) }, "--profile", c.profile)
}

// A plan that is gone takes its roots with it, when the next ones are made.
func TestThePathsOfAPlanThatIsGoneAreCollected(t *testing.T) {
	c := newCollector(t)
	c.session("", func(string) {}, "--profile", c.profile)
	c.keeps("while its plan is kept", c.path)
	c.session("", func(string) { // by the kept plan: there is no connection that would hold anything
		must.Do(t, os.RemoveAll(c.w.path(".claudebox/plan-cache")))
		next := newCollectorIn(t, c.w)
		succeed(t, c.w.session("own", "--profile", next.profile))
		c.keeps("while a session uses it, though its plan is gone", c.path)
	}, "--profile", c.profile)
	next := newCollectorIn(t, c.w)
	succeed(t, c.w.session("own", "--profile", next.profile))
	c.takes("after its plan is gone", c.path)
	next.keeps("while its plan is kept", next.path)
}

func TestAPlanFileKeepsItsPaths(t *testing.T) {
	c := newCollector(t)
	file := c.w.write(t, "plan.json", succeed(t, c.w.claudebox("plan", "--pinned", "--profile", c.profile)))
	cut := c.daemonBehind()
	c.session("", func(string) { c.keeps("during the first", c.path) }, "--plan", file)
	c.keeps("between two launches", c.path)
	cut()
	c.session("", func(string) { c.keeps("during one without a daemon", c.path) }, "--plan", file)
}

// A module's plan is in the store, and whoever switches generations and
// collects garbage during a session must not take the sandbox's programs away.
func TestAPlanInTheStoreKeepsItsPathsWhileItIsUsed(t *testing.T) {
	c := newCollector(t)
	made := c.w.write(t, "plan.json", succeed(t, c.w.claudebox("plan", "--pinned", "--profile", c.profile)))
	file := strings.TrimSpace(c.must("nix-build", "--no-out-link", "--expr", fmt.Sprintf(`derivation {
		name = "plan.json"; system = builtins.currentSystem; builder = "/bin/sh"; own = builtins.storePath %q;
		args = [ "-c" "while IFS= read -r line; do printf '%%s\\n' \"$line\"; done <${%s} >$out" ];
	}`, c.path, made)))
	drv := strings.TrimSpace(c.must("nix-store", "--query", "--deriver", file))
	must.Do(t, os.RemoveAll(c.w.path(".claudebox"))) // and with it what roots the kept plan
	c.w.env["NIX_DAEMON_SOCKET_PATH"] = "/nowhere"
	c.session("", func(string) { c.keeps("during the session", c.path, file) }, "--plan", file)
	c.takes("after the session", file)
	c.takes("after the session", drv) // which refers to the package as well
	c.takes("after the session", c.path)
}

// What the agent realises by the host's daemon is kept as it would be outside: by
// a link in the project, and while a program of it runs.
func TestWhatIsRealisedInsideIsKeptWhileItIsUsed(t *testing.T) {
	c := newCollector(t, "nix: {daemon: host}")
	const realise = `
		make() { nix-build --expr "derivation { name = \"$1\"; system = builtins.currentSystem; builder = \"/bin/sh\"; args = [ \"-c\" \"echo '#!/bin/sh\nread x' >\$out; /bin/chmod 755 \$out\" ]; n = \"$RANDOM$RANDOM$$\"; }" "${@:2}" 2>/dev/null; }
		make linked --out-link result
		make open --no-out-link >open; exec 7<"$(cat open)"; cat open
		make dropped --no-out-link`
	var linked, open, dropped string
	c.session(realise, func(said string) {
		if _, err := fmt.Sscan(said, &linked, &open, &dropped); err != nil {
			t.Fatalf("%v in %q", err, said)
		}
		c.keeps("by a link in the project", linked)
		c.keeps("while it is open", open)
		c.takes("with nothing that holds it", dropped)
	}, "--profile", c.profile)
	c.keeps("after the session, by its link", linked)
	c.takes("after the session", open)
	must.Do(t, os.Remove(c.w.path("project/result")))
	c.takes("without its link", linked)
}

func TestALongBuildInsideIsNotDisturbed(t *testing.T) {
	late := newCollector(t)
	late.builderWaits()
	c := newCollectorIn(t, late.w, "nix: {daemon: host}") // its profile is the last
	realise := `nix-store --realise ` + late.drv + ` >built 2>&1 </dev/null &`
	c.session(realise, func(string) {
		must.Do(t, read(late.begun))
		late.keeps("while it is built inside", late.drv)
		must.Do(t, os.WriteFile(late.end, []byte("go\n"), 0))
		for range 100 {
			if exists(late.path) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("it was not built: %s", c.w.read(t, "project/built"))
	}, "--profile", c.profile)
}

func read(file string) error {
	_, err := os.ReadFile(file)
	return err
}

// Two hundred processes resolve at once, by one cache and one daemon.
func TestManyResolveAtOnce(t *testing.T) {
	c := newCollector(t)
	c.w.folder(t, ".claudebox") // else a plan that is not launched is not kept
	many := trial.Count(50, 200)
	plans := make(chan outcome, many)
	for range many {
		go func() { plans <- run(t, c.w.claudebox("plan", "--pinned", "--profile", c.profile)) }()
	}
	var first string
	for range many {
		next := <-plans
		switch {
		case next.status != 0:
			t.Errorf("status %d: %s", next.status, next.stderr)
		case first == "":
			first = next.stdout
		case next.stdout != first:
			t.Error(difference(next.stdout, first))
		}
	}
	c.keeps("for the plan that is kept", c.path)
	wantEqual(t, succeed(t, c.w.claudebox("plan", "--pinned", "--profile", c.profile)), first)
}
