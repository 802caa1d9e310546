//go:build lab

package sandbox_test

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
)

const theirs = "project/.claudebox.yaml"

// hasNetwork reports whether anything but loopback is there.
const hasNetwork = `if tail -n +3 /proc/net/dev | grep -qv '^ *lo:'; then echo network; else echo none; fi`

// warned runs a script inside whose launch says something on standard error.
func (w *world) warned(t *testing.T, script, want string, flags ...string) string {
	t.Helper()
	got := run(t, w.session(script, flags...))
	if got.status != 0 || !strings.Contains(got.stderr, want) {
		t.Fatalf("status %d, stderr %q, want %q\nstdout: %s", got.status, got.stderr, want, got.stdout)
	}
	return got.stdout
}

func (w *world) allow(t *testing.T) {
	t.Helper()
	if got := run(t, w.claudebox("allow", "--yes")); got.status != 0 {
		t.Fatalf("allow: status %d, %s", got.status, got.stderr)
	}
}

func TestAProjectsProfileNarrowsWithoutBeingAsked(t *testing.T) {
	w := newWorld(t)
	w.write(t, theirs, "network: none\nstate: ephemeral\n")
	for range 2 { // the second launch finds the plan kept
		wantEqual(t, w.inside(t, hasNetwork+"; touch ~/.claude/left"), "none\n")
	}
	wantEqual(t, w.inside(t, "ls ~/.claude/left 2>/dev/null || echo gone"), "gone\n")
	if text := succeed(t, w.claudebox("plan")); !strings.Contains(text, ".claudebox.yaml counts: it asks for no more") {
		t.Errorf("the plan does not say so:\n%s", text)
	}
	wantEqual(t, w.inside(t, hasNetwork, "--network", "full"), "network\n") // the user's word at the prompt is the last
}

// R10: `.claudebox.yml` and the like were passed over without a word, and the network was open.
func TestAProjectsProfileOfAnotherNameCountsOrIsRefused(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/.claudebox.yml", "network: none\n")
	wantEqual(t, w.inside(t, hasNetwork), "none\n")
	wantEqual(t, w.inside(t, `(echo network: full >.claudebox.yml) 2>/dev/null || echo held`), "held\n")
	must.Do(t, os.Rename(w.path("project/.claudebox.yml"), w.path("project/.claudebox.toml")))
	wantRefused(t, run(t, w.session("true")), "it looks like a project's profile")
	wantRefused(t, run(t, w.claudebox("plan")), "it looks like a project's profile")
	must.Do(t, os.Remove(w.path("project/.claudebox.toml")))

	w.write(t, "project/.claudebox/tools.txt", "# for the tests\nhello\n")
	wantEqual(t, w.warned(t, "hello 2>/dev/null || echo none", "what is left out: packages: hello"), "none\n")
	w.allow(t)
	wantEqual(t, w.inside(t, "hello; (echo jq >>.claudebox/tools.txt) 2>/dev/null || echo held"), "Hello, world!\nheld\n")
	w.write(t, "project/.claudebox/tools.txt", "hello\njq\n")
	wantEqual(t, w.warned(t, "true", "since it changed"), "")
}

func TestAProjectsProfileWidensOnlyWhenAllowedAndAsItWasAllowed(t *testing.T) {
	w := newWorld(t)
	w.write(t, "data/file", "inside\n")
	w.write(t, theirs, "cache: ephemeral\nenv: {GREETING: hello}\nmounts:\n  - {host: ~/data}\n")
	script := `echo "${GREETING-unset}"; cat ~/data/file 2>/dev/null || echo absent; mkdir -p ~/.cache; touch ~/.cache/left`
	const asks = "asks for what you have not allowed, and what is left out: env: GREETING=hello; mounts: ~/data, read-only"
	wantEqual(t, w.warned(t, script, asks), "unset\nabsent\n")

	w.allow(t)
	for range 2 {
		wantEqual(t, w.inside(t, script), "hello\ninside\n")
	}
	text := succeed(t, w.claudebox("plan"))
	expect.Contains(t, text, "counts, as you allowed it", ".claudebox.yaml:2", ".claudebox.yaml:4")
	wantEqual(t, w.inside(t, "ls ~/.cache 2>/dev/null || true"), "") // what it takes away holds all along

	// a change, be it of one byte, asks again
	w.write(t, theirs, w.read(t, theirs)+"\n")
	wantEqual(t, w.warned(t, script, "asks for what you have not allowed since it changed"), "unset\nabsent\n")

	// the user's other profile grants less: what they allowed is more there
	w.write(t, theirs, "network: full\n")
	w.allow(t)
	less := w.profile(t, "network: none")
	wantEqual(t, w.warned(t, hasNetwork, "network: full instead of none", "--profile", less), "none\n")
}

func TestAllowAsksAtTheTerminal(t *testing.T) {
	w := newWorld(t)
	w.write(t, theirs, "env: {GREETING: hello}\n")
	script := `echo "${GREETING-unset}"`
	no := w.claudebox("allow")
	if shown := typed(t, no, "n\n"); no.ProcessState.ExitCode() != 125 || !strings.Contains(shown, "env: GREETING=hello .claudebox.yaml:1") {
		t.Errorf("status %d:\n%s", no.ProcessState.ExitCode(), shown)
	}
	wantEqual(t, w.warned(t, script, "GREETING"), "unset\n")
	if shown := atTerminal(t, w.claudebox("allow"), "y\n"); !strings.Contains(shown, "allowed: ") {
		t.Errorf("shown:\n%s", shown)
	}
	wantEqual(t, w.inside(t, script), "hello\n")
}

// What the user said must not be half kept, nor taken for more than it was.
func TestAWordThatCannotBeKeptIsAnErrorAndNoLeave(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, w *world, trusted string){
		"a file": func(t *testing.T, w *world, trusted string) { w.write(t, trusted, "x") },
		"a link": func(t *testing.T, w *world, trusted string) {
			w.folder(t, "elsewhere")
			w.link(t, w.path("elsewhere"), trusted)
		},
		"read-only": func(t *testing.T, w *world, trusted string) { must.Do(t, os.Mkdir(trusted, 0o500)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.inside(t, "true")
			spoil(t, w, w.path(".claudebox/trusted"))
			w.write(t, theirs, "env: {GREETING: hello}\n")
			got := run(t, w.claudebox("allow", "--yes"))
			if got.status != 125 || !strings.Contains(got.stderr, "keep your word in ") || !strings.Contains(got.stderr, "remedy: make it a folder that you can write") {
				t.Errorf("status %d: %s", got.status, got.stderr)
			}
			wantEqual(t, w.warned(t, `echo "${GREETING-unset}"`, "GREETING"), "unset\n")
			if left, _ := os.ReadDir(w.path("elsewhere")); len(left) > 0 {
				t.Errorf("a link was followed: %v", left)
			}
		})
	}
}

// A module's plan stands for a profile. What the project brings is laid over
// that profile, if it is the one that the plan was made of.
func TestAProjectsProfileOverAPlanThatAModuleMade(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".claudebox/profiles/work.yaml", "extends: default\nenv: {A: b}\n")
	w.write(t, ".claudebox/plans/work.json", succeed(t, w.claudebox("plan", "-P", "work", "--pinned")))
	script := hasNetwork + `; echo "$A"`
	wantEqual(t, w.inside(t, script, "-P", "work"), "network\nb\n")
	w.write(t, theirs, "network: none\n")
	wantEqual(t, w.inside(t, script, "-P", "work"), "none\nb\n")
	w.write(t, ".claudebox/profiles/work.yaml", "extends: default\nenv: {A: c}\n")
	wantRefused(t, run(t, w.session(script, "-P", "work")), "its plan was made of other files than there are now")
	pinned := w.path(".claudebox/plans/work.json")
	wantEqual(t, w.inside(t, script, "--plan", pinned), "network\nb\n") // exactly this one
}

func TestADeniedProfileDoesNotCountUntilItChanges(t *testing.T) {
	w := newWorld(t)
	w.write(t, theirs, "network: none\nenv: {A: b}\nno such key: 1\n")
	wantRefusedAt(t, run(t, w.session("true")), `.claudebox.yaml:3:1: unknown key "no such key"`)
	if got := run(t, w.claudebox("deny")); got.status != 0 {
		t.Fatalf("deny: status %d, %s", got.status, got.stderr)
	}
	wantEqual(t, w.inside(t, hasNetwork), "network\n")
	w.write(t, theirs, "network: none\n")
	wantEqual(t, w.inside(t, hasNetwork), "none\n")
}

// wantRefusedAt is a refusal that names a place in a file.
func wantRefusedAt(t *testing.T, got outcome, reason string) {
	t.Helper()
	if got.status != 125 || got.stdout != "" || !strings.Contains(got.stderr, reason) {
		t.Errorf("status %d, stdout %q, stderr:\n%s\nwant %q", got.status, got.stdout, got.stderr, reason)
	}
}

// CHANGELOG of fence, sandy's .sandy/config, cco's additionalDirectories: an
// agent edits the profile, and its next sandbox is wider.
func TestAnAgentCannotWidenAProfileThatItsUserAllowed(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".ssh/id", canary)
	w.write(t, theirs, "env: {A: b}\n")
	w.allow(t)
	evil := `mounts: [{host: ~/.ssh, secret: true}]`
	for _, attempt := range []string{
		`echo '` + evil + `' >>.claudebox.yaml`, `rm -f .claudebox.yaml`, `mv .claudebox.yaml x`, `echo '` + evil + `' >x; mv -f x .claudebox.yaml`,
		`ln -f x .claudebox.yaml`, `chmod 666 .claudebox.yaml && echo '` + evil + `' >.claudebox.yaml`,
	} {
		w.inside(t, "("+attempt+") 2>/dev/null || true; rm -f x")
	}
	wantEqual(t, w.read(t, theirs), "env: {A: b}\n")

	// with git tracking it, it can be written, for `git switch` must work
	w.repository(t)
	w.git(t, "project", "ls-files", "--error-unmatch", ".claudebox.yaml")
	w.inside(t, `echo '`+evil+`' >>.claudebox.yaml`)
	next := run(t, w.search())
	if held := findings(t, next.stdout); len(held) > 0 || !strings.Contains(next.stderr, "since it changed") {
		t.Errorf("found %q; %s", held, next.stderr)
	}

	// nor can what was kept of the user's word be reached
	look := `find / -path /proc -prune -o -path /nix -prune -o -name trusted -print 2>/dev/null || true`
	wantEqual(t, w.warned(t, look, "since it changed"), "")
}

func TestAHostileProfileStopsTheLaunchAndLosesNothing(t *testing.T) {
	for name, tc := range map[string]struct{ plant, want string }{
		"a link":         {"ln -s ~/.ssh/id .claudebox.yaml", "it is a link"},
		"a folder":       {"mkdir .claudebox.yaml", "not a regular file"},
		"ten megabytes":  {"head -c 10000000 /dev/zero >.claudebox.yaml", "larger than 1 MiB"},
		"a terabyte":     {"truncate -s 1T .claudebox.yaml", "larger than 1 MiB"},
		"an alias bomb":  {`{ echo 'a: &a [x,x,x,x,x,x,x,x,x]'; for i in b c d e f g h i; do p=$(echo $i | tr b-i a-h); echo "$i: &$i [*$p,*$p,*$p,*$p,*$p,*$p,*$p,*$p,*$p]"; done; echo 'hide: *i'; } >.claudebox.yaml`, ".claudebox.yaml:1:1: unknown key"},
		"deep nesting":   {`printf '%05000d' 0 | tr 0 '[' >.claudebox.yaml`, ".claudebox.yaml:1:"},
		"no text at all": {`{ printf '\221'; head -c 5000 /dev/urandom; } >.claudebox.yaml`, ".claudebox.yaml:1:1: byte 0x91"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, ".ssh/id", canary)
			w.inside(t, tc.plant+"; echo kept >work")
			got := run(t, w.session("true"))
			wantRefusedAt(t, got, tc.want)
			if strings.Contains(got.stderr, canary) || len(got.stderr) > 4000 {
				t.Errorf("it says too much: %.300q", got.stderr)
			}
			wantEqual(t, w.read(t, "project/work"), "kept\n")
			must.Do(t, os.RemoveAll(w.path(theirs)))
			w.inside(t, "true")
		})
	}
}

// A live session rewrites the file while the next launch reads it: what is
// judged is what was read, once.
func TestAProfileThatChangesWhileItIsReadIsNeverMoreThanOneOfItsFaces(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".ssh/id", canary)
	w.write(t, theirs, "env: {A: b}\n")
	w.allow(t)
	var pause atomic.Int64 // in milliseconds, longer after each launch that found another file than it had looked at
	pause.Store(15)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			face := []string{"env: {A: b}\n", "mounts: [{host: ~/.ssh, secret: true}]\n"}[i%2]
			os.WriteFile(w.path("project/face"), []byte(face), 0o600)
			syscall.Rename(w.path("project/face"), w.path(theirs))
			time.Sleep(time.Duration(pause.Load()) * time.Millisecond)
		}
	}()
	asked := map[bool]int{} // launches that ran, by whether they met the other face
	for tries := 0; tries < 200 && min(asked[true], asked[false]) < 3; tries++ {
		next := run(t, w.session(`cat ~/.ssh/id 2>/dev/null || echo nothing`))
		if strings.Contains(next.stdout, canary) || next.status == 0 && next.stdout != "nothing\n" {
			t.Errorf("status %d: %s%s", next.status, next.stdout, next.stderr)
		}
		if next.status == 0 {
			asked[strings.Contains(next.stderr, "~/.ssh")]++
		} else {
			pause.Add(10)
		}
	}
	if min(asked[true], asked[false]) == 0 {
		t.Errorf("too few launches ran: %v", asked)
	}
	close(stop)
	<-done
}
