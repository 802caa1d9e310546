//go:build lab

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/devshell"
)

// flake writes a flake into a folder of the project: its dev shell has hello (which is on no PATH without it), and these
// attributes. It is locked to the nixpkgs of the sandbox.
func (w *world) flake(t *testing.T, folder, attributes string) {
	t.Helper()
	w.write(t, folder+"/flake.nix", `{ outputs = { self, nixpkgs }: let p = nixpkgs.legacyPackages.x86_64-linux; in {
		devShells.x86_64-linux.default = `+mkShell(attributes)+`;
		devShells.x86_64-linux.other = `+mkShell("OTHER = \"yes\";")+`; }; }`)
	trial.Lock(t, w.path(folder))
}

// mkShell is what nixpkgs' own comes to.
func mkShell(attributes string) string {
	return `p.runCommand "nix-shell" { outputs = [ "out" ]; nativeBuildInputs = [ p.hello ]; ` + attributes + ` } ":"`
}

// record is what is kept of the dev shell of the world's project.
func (w *world) record(t *testing.T) devshell.Record {
	t.Helper()
	folders, err := filepath.Glob(w.path(".claudebox/instances/*/nix/main/var/" + devshell.Folder + "/*"))
	must.Do(t, err)
	if len(folders) != 1 {
		t.Fatalf("dev shells: %q", folders)
	}
	r, _ := devshell.Look(filepath.Dir(folders[0]), filepath.Base(folders[0]))
	return r
}

const hasShell = `hello; echo "$NAME $CLAUDEBOX_DEVSHELL"`

// The programs and variables of the dev shell are the agent's, and those of another flake after a change.
func TestTheAgentHasTheDevShellOfTheProject(t *testing.T) {
	w := newWorld(t)
	w.git(t, "project", "init", "-q")
	w.flake(t, "project", `NAME = "first";`)
	w.git(t, "project", "add", "-A")
	w.git(t, "project", "commit", "-qm", "a flake")
	const first = "Hello, world!\nfirst .#default: 1 programs, 2 variables\n"
	wantEqual(t, w.inside(t, hasShell), first)
	made := w.record(t).Made
	wantEqual(t, w.inside(t, hasShell, "--network", "none"), first)
	if again := w.record(t).Made; !made.Equal(again) {
		t.Error("an equal dev shell was evaluated again")
	}
	w.flake(t, "project", `NAME = "second";`) // the tree is dirty now
	wantEqual(t, w.inside(t, `cd /; `+hasShell), "Hello, world!\nsecond .#default: 1 programs, 2 variables\n")
	for _, tier := range []string{"full", "inet", "allow", "none"} {
		wantEqual(t, w.inside(t, `hello`, "--network", tier), "Hello, world!\n")
	}
	if got := run(t, w.session(`hello`, "--no-devshell")); got.status != 127 {
		t.Errorf("--no-devshell: %+v", got)
	}
	wantEqual(t, w.inside(t, `git status --short`), " M flake.nix\n")
	wantEqual(t, w.inside(t, `nix develop .#other -c sh -c 'echo $OTHER' 2>/dev/null`), "yes\n")
	succeed(t, w.claudebox("instance", "gc"))
	wantEqual(t, w.inside(t, hasShell), "Hello, world!\nsecond .#default: 1 programs, 2 variables\n")
}

// What names the dev shell, where.
func TestWhatNamesADevShell(t *testing.T) {
	const none = `hello 2>/dev/null || echo "${CLAUDEBOX_DEVSHELL-}"`
	for name, tc := range map[string]struct {
		make                func(w *world)
		dir, profile, wants string
	}{
		"a flake above the current folder": {func(w *world) {
			w.git(t, "project", "init", "-q")
			w.flake(t, "project", "")
			w.folder(t, "project/a/b")
			w.git(t, "project", "add", "-A")
		}, "a/b", "", "Hello, world!\n"},
		"a flake in a folder of its own": {func(w *world) { w.flake(t, "project/a", "") }, "a", "", "Hello, world!\n"},
		"use flake": {func(w *world) {
			w.flake(t, "project/nix", "")
			w.write(t, "project/.envrc", "touch ~/canary\nuse flake ./nix#other\n")
		}, "", "", "Hello, world!\n"},
		"use nix": {func(w *world) {
			w.write(t, "project/shell.nix", `{ p ? import <nixpkgs> { } }: `+mkShell(""))
			w.write(t, "project/.envrc", "use nix # as always\n")
		}, "", "", "Hello, world!\n"},
		"a file in the profile": {func(w *world) { w.write(t, "project/nix/sh.nix", `{ p ? import <nixpkgs> { } }: `+mkShell("")) }, "", "devshell: {file: nix/sh.nix}", "Hello, world!\n"},
		"a reference in the profile, without a lock": {func(w *world) {
			w.flake(t, "project", "")
			os.Remove(w.path("project/flake.lock"))
		}, "", "devshell: .#other", "Hello, world!\n"},
		"more than a reference in .envrc": {func(w *world) {
			w.flake(t, "project", "")
			w.write(t, "project/.envrc", "use flake $(touch ~/canary)\n")
		}, "", "", "none: .envrc has use flake $(touch ~/canary), which is more than a reference\n"},
		"a flake without a lock": {func(w *world) { w.flake(t, "project", ""); os.Remove(w.path("project/flake.lock")) }, "", "", "none: .#default flake.nix has no flake.lock; make it (`nix flake lock`), or, where it has no inputs, write `devshell: .` into the profile\n"},
		"a flake without a dev shell": {func(w *world) {
			w.write(t, "project/flake.nix", `{ outputs = { ... }: { packages.x86_64-linux.default = throw "built"; }; }`)
			trial.Lock(t, w.path("project"))
		}, "", "", "none: .#default the flake has no such dev shell\n"},
		"a shell.nix that nobody names": {func(w *world) { w.write(t, "project/shell.nix", `throw "evaluated"`) }, "", "", "\n"},
		"a shell.nix alone is no flake": {func(w *world) { w.flake(t, "project", "") }, "", "devshell: off", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.make(w)
			cmd := w.session(none, "--profile", w.profile(t, tc.profile))
			cmd.Dir = w.path("project/" + tc.dir)
			got := run(t, cmd)
			wantEqual(t, got.stdout, tc.wants)
			// Whoever has a flake or a line in .envrc misses its shell; a flake that has none has none outside either.
			told := strings.HasPrefix(tc.wants, "none: ") && !strings.Contains(tc.wants, "the flake has no such")
			if strings.HasPrefix(got.stderr, "claudebox: no dev shell: ") != told {
				t.Errorf("it says %q", got.stderr)
			}
			if exists(w.path("canary")) {
				t.Error(".envrc was run")
			}
		})
	}
}

// The shell of a strange repository brings tools, and leads neither the agent nor its programs elsewhere. What it is
// that it does not bring is said.
func TestAHostileDevShell(t *testing.T) {
	for name, tc := range map[string]struct{ attributes, script, wants, says string }{
		"another address of the agent":   {`ANTHROPIC_BASE_URL = "http://evil"; OPENAI_BASE_URL = "x"; CLAUDE_CODE_USE_BEDROCK = "1";`, `echo "${ANTHROPIC_BASE_URL-unset}${OPENAI_BASE_URL-}${CLAUDE_CODE_USE_BEDROCK-}"`, "unset\n", "does not bring in ANTHROPIC_BASE_URL, CLAUDE_CODE_USE_BEDROCK, OPENAI_BASE_URL"},
		"a library":                      {`shellHook = "export LD_PRELOAD=/evil.so NODE_OPTIONS=--require=/evil BASH_ENV=/evil";`, `echo "${LD_PRELOAD-}${NODE_OPTIONS-}${BASH_ENV-unset}"`, "unset\n", "LD_PRELOAD"},
		"no PATH":                        {`shellHook = "export PATH=";`, `hello; git --version >/dev/null; nix --version >/dev/null; echo all`, "Hello, world!\nall\n", ""},
		"a relative PATH":                {`shellHook = "export PATH=.:bin:$PATH";`, `case ":$PATH:" in *:.:*|*:bin:*) echo relative;; esac; hello`, "Hello, world!\n", ""},
		"another home":                   {`shellHook = "export HOME=/nowhere USER=root SHELL=/bin/false TMPDIR=/nowhere";`, `echo "$HOME $USER" | sed "s|.*/home-[0-9]*|H|"; test -x $SHELL; test -d $TMPDIR`, "H someone\n", "USER"},
		"a hook of 10 MB":                {`shellHook = "head -c 10000000 /dev/zero | tr '\\\\0' x; export DONE=yes";`, `echo $DONE; test $(stat -c %s /nix/var/claudebox-devshell/*/hook.log) -le 1048576`, "yes\n", ""},
		"a hook without end":             {`shellHook = "export DONE=yes; sleep 1000";`, `echo "${DONE-unset}"; hello; while ps -e -o args | grep -q '[s]leep 1000'; do sleep 0.1; done; echo ended`, "unset\nHello, world!\nended\n", "did not end in 10s"},
		"a hook in the background":       {`shellHook = "sleep 1000 & export DONE=yes";`, `echo "$DONE"; hello`, "yes\nHello, world!\n", ""},
		"a hook that wants a terminal":   {`shellHook = "read -r X </dev/tty || export DONE=no; read -r Y && export DONE=typed";`, `echo "$DONE"`, "no\n", ""},
		"a hook that ends":               {`shellHook = "export DONE=yes; exit 3";`, `echo "$DONE"; hello`, "yes\nHello, world!\n", ""},
		"a hook that is another program": {`shellHook = "export DONE=yes; exec cat";`, `echo "${DONE-unset}"; hello`, "unset\nHello, world!\n", "ended in another program"},
		"text in variables":              {`NAME = "$(touch /tmp/a)'\"\n; touch /tmp/b"; shellHook = ":";`, `ls /tmp/a /tmp/b 2>/dev/null || true; printf %s "$NAME" | wc -l`, "1\n", ""},
		"git's and Nix's":                {`GIT_SSH_COMMAND = "evil"; NIX_CONFIG = "store = dummy://"; NIX_CFLAGS_COMPILE = "-O"; http_proxy = "evil";`, `echo "${GIT_SSH_COMMAND-}${NIX_CONFIG-}$NIX_CFLAGS_COMPILE"; case "${http_proxy-}" in evil) echo proxy;; esac`, "-O\n", "GIT_SSH_COMMAND, NIX_CONFIG, http_proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.flake(t, "project", tc.attributes)
			got := run(t, w.session(tc.script))
			wantEqual(t, got.stdout, tc.wants)
			if got.status != 0 || !strings.Contains(got.stderr, tc.says) || tc.says == "" && got.stderr != "" {
				t.Errorf("status %d, stderr %q", got.status, got.stderr)
			}
		})
	}
}

// Without the dev shell the session starts all the same, says so in one line, and does not wait for the same again.
func TestADevShellThatCannotBeHad(t *testing.T) {
	w := newWorld(t)
	w.flake(t, "project", `NAME = throw "there is no such name";`)
	for range 2 {
		got := run(t, w.session(`echo started`))
		wantEqual(t, got.stdout, "started\n")
		wantEqual(t, got.stderr, "claudebox: the session starts without the dev shell .#default: there is no such name; `claudebox devshell` shows all\n")
	}
	got := run(t, w.session(`echo started`, "--profile", w.profile(t, "devshell: {require: true}")))
	wantRefused(t, got, "enter the dev shell .#default: there is no such name")
	slow := newWorldHere(t)
	slow.flake(t, "project", `NAME = builtins.foldl' (a: b: a + b) 0 (builtins.genList (x: builtins.foldl' (a: b: a + b) x (builtins.genList (y: y) 1000000)) 1000000);`)
	got = run(t, slow.session(`echo started`, "--profile", slow.profile(t, "devshell: {wait: 2s}")))
	wantEqual(t, got.stdout, "started\n")
	if !strings.Contains(got.stderr, "it took longer than 2 s") {
		t.Errorf("an evaluation without end: %q", got.stderr)
	}
}

// A person who does not want to wait goes on by Ctrl-C.
func TestAnEvaluationIsSkippedByCtrlC(t *testing.T) {
	w := newWorld(t)
	w.flake(t, "project", `NAME = builtins.foldl' (a: b: a + b) 0 (builtins.genList (x: builtins.foldl' (a: b: a + b) x (builtins.genList (y: y) 1000000)) 1000000);`)
	terminal, err := pty.Start(w.session(`echo "star""ted"`))
	must.Do(t, err)
	defer terminal.Close()
	shown := ""
	for text := make([]byte, 4<<10); ; {
		n, err := terminal.Read(text)
		was := shown
		shown += string(text[:n])
		const way = "Ctrl-C goes on without it"
		if strings.Contains(shown, way) && !strings.Contains(was, way) {
			_, err := terminal.WriteString("\x03")
			must.Do(t, err)
		}
		if err != nil {
			break
		}
	}
	if !strings.Contains(shown, "you skipped it") || !strings.Contains(shown, "started") {
		t.Errorf("shown: %q", shown)
	}
}

// Two sessions at once have a store each, and so a dev shell each.
func TestTwoSessionsWithADevShell(t *testing.T) {
	w := newWorld(t)
	w.flake(t, "project", "")
	var both sync.WaitGroup
	for range 2 {
		both.Add(1)
		go func() {
			defer both.Done()
			if got := run(t, w.session(`hello; sleep 2`)); got.stdout != "Hello, world!\n" {
				t.Errorf("%+v", got)
			}
		}()
		time.Sleep(100 * time.Millisecond)
	}
	both.Wait()
}

// Where Nix inside can do nothing, that is said, and a required dev shell is refused.
func TestADevShellNeedsNixInside(t *testing.T) {
	w := newWorld(t)
	w.flake(t, "project", "")
	off := w.profile(t, "nix: {daemon: off}")
	if got := run(t, w.session(`hello 2>/dev/null || echo none`, "--profile", off)); got.stdout != "none\n" {
		t.Errorf("%+v", got)
	}
	expect.Contains(t, succeed(t, w.claudebox("plan", "--profile", off)), "no dev shell: ")
	wantRefused(t, run(t, w.session(`:`, "--profile", w.profile(t, "nix: {daemon: off}", "devshell: {require: true}"))), "enter the project's dev shell: it needs `nix: {daemon: own}`")
	closure := w.profile(t, "nix: {store: closure}")
	expect.Contains(t, run(t, w.session(`hello 2>/dev/null || echo "$CLAUDEBOX_DEVSHELL"`, "--profile", closure)).stdout, "none: .#default")
}

// direnv inside has a folder of its own in the place of the user's, and what it was allowed: both are kept, and nothing
// of it is outside (N6). What its links lead to is not collected.
func TestDirenvInside(t *testing.T) {
	w := newWorld(t)
	w.git(t, "project", "init", "-q")
	w.write(t, "project/.gitignore", ".direnv\n")
	w.write(t, "project/.direnv/mine", "mine\n")
	path := strings.TrimSpace(w.inside(t, build+`ls .direnv; path=$(build kept 'echo kept >$out')
		nix build --out-link .direnv/profile $path; mkdir -p ~/.local/share/direnv/allow; echo allowed >~/.local/share/direnv/allow/x
		cached=$(build cached 'echo cached >$out'); nix build --out-link ~/.cache/link $cached; echo $cached`))
	if exists(w.path("project/.direnv/profile")) || w.read(t, "project/.direnv/mine") != "mine\n" {
		t.Error("the user's .direnv was changed")
	}
	succeed(t, w.claudebox("instance", "gc"))
	wantEqual(t, w.inside(t, `cat .direnv/profile `+path+` ~/.local/share/direnv/allow/x; nix path-info `+path+` >/dev/null`), "kept\ncached\nallowed\n")
}

// A linked worktree has its own dev shell, in the one instance of its repository.
func TestTheDevShellOfALinkedWorktree(t *testing.T) {
	w := newWorld(t)
	w.git(t, "project", "init", "-q")
	w.flake(t, "project", `NAME = "main";`)
	w.git(t, "project", "add", "-A")
	w.git(t, "project", "commit", "-qm", "a flake")
	w.git(t, "project", "worktree", "add", "-q", "../tree")
	w.flake(t, "tree", `NAME = "tree";`)
	tree := w.session(hasShell)
	tree.Dir = w.path("tree")
	expect.Contains(t, succeed(t, tree), "Hello, world!\ntree .#default: 1 programs, 2 variables\n")
	expect.Contains(t, w.inside(t, hasShell), "main .#default: 1 programs, 2 variables\n")
}

// A branch's dev shell is its own, and leaves what is kept of the one in the user's folder, at the same path.
func TestTheDevShellOfABranch(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, "project/.envrc", "use flake .#other\n")
	w.flake(t, "project", `NAME = "branch";`)
	w.git(t, "project", "add", "-A")
	w.git(t, "project", "commit", "-qm", "a flake")
	w.write(t, "project/.envrc", "use flake\n") // in the user's folder alone
	expect.Contains(t, w.inside(t, hasShell), "branch .: 1 programs, 2 variables\n")
	onBranch := w.claudebox("shell", "--yes", "--no-report", "--branch", "b", "--", "bash", "-c", hasShell)
	expect.Contains(t, succeed(t, onBranch), ".#other: 1 programs, 2 variables\n")
	expect.Contains(t, succeed(t, w.claudebox("devshell")), " .: 1 programs, 2 variables\n")
	expect.Contains(t, succeed(t, w.claudebox("devshell", "--branch", "b")), ".#other: 1 programs, 2 variables\n")
}

// A branch has a dev shell that the user's folder has not, and the other way round.
func TestADevShellThatOnlyTheBranchHas(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.git(t, "project", "switch", "-qc", "with")
	w.write(t, "project/sub/dir/x", "x\n")
	w.flake(t, "project/sub", `NAME = "branch";`)
	w.write(t, "project/shell.nix", "{}\n")
	w.git(t, "project", "add", "-A")
	w.git(t, "project", "commit", "-qm", "a flake")
	w.git(t, "project", "switch", "-q", "main")
	onBranch := func(name, dir, does string) string {
		cmd := w.claudebox("shell", "--yes", "--no-report", "--branch", name, "--", "bash", "-c", does)
		cmd.Dir = w.path("project/" + dir)
		return succeed(t, cmd)
	}
	must.Do(t, os.MkdirAll(w.path("project/sub/dir"), 0o755))
	expect.Contains(t, onBranch("with", "sub/dir", hasShell), "branch .#default: 1 programs, 2 variables\n")
	expect.Contains(t, succeed(t, w.claudebox("devshell", "--branch", "with")), "no dev shell: shell.nix is not entered unasked")
	w.git(t, "project", "switch", "-qc", "here", "with")
	show := w.claudebox("devshell", "--branch", "without", "--from", "main")
	show.Dir = w.path("project/sub")
	expect.Contains(t, succeed(t, show), "no dev shell: the project has no flake.nix and no .envrc")
	w.write(t, "project/.gitignore", ".envrc\n")
	w.git(t, "project", "add", "-A")
	w.git(t, "project", "commit", "-qm", "what is ignored")
	w.write(t, "project/.envrc", "use flake ./sub#other\n")
	expect.Contains(t, onBranch("copied", ".", "cat .envrc; "+hasShell), "./sub#other: 1 programs, 2 variables\n")
}

// The agent is on PATH behind all else, so that it can be started in another dev shell (`nix develop -c claude`).
func TestTheAgentIsFoundInADevShell(t *testing.T) {
	w := newWorld(t)
	w.flake(t, "project", "")
	wantEqual(t, w.inside(t, `nix develop .#other -c sh -c 'command -v claude; echo $OTHER' 2>/dev/null`), "/run/claudebox/bin/claude\nyes\n")
	profile := w.profile(t, `agent: {command: [nix, develop, ".#other", -c, claude]}`)
	got := run(t, w.claudebox("--yes", "--no-report", "--profile", profile, "list"))
	if got.status != 0 || !strings.Contains(got.stdout, "project") {
		t.Errorf("%+v", got)
	}
}

// Nothing of the project is evaluated or run outside: to look at a launch reads no Nix file of the project, and
// the hook runs where the agent does.
func TestNothingOfADevShellIsReadOrRunOutside(t *testing.T) {
	w := newWorld(t)
	w.flake(t, "project", `shellHook = "readlink /proc/self/ns/pid >$PWD/where; touch ~/canary";`)
	w.write(t, "project/.envrc", "touch "+w.path("canary")+"\nuse flake\n")
	for _, words := range [][]string{{"plan"}, {"shell", "--dry-run", "--", "true"}, {"devshell"}} {
		trace := w.path("trace")
		looked := w.claudebox(words...)
		looked.Path, looked.Args = lineOf(t, "which", "strace"), append([]string{"strace", "-f", "-e", "trace=openat,openat2,open,execve", "-o", trace}, looked.Args...)
		if got := run(t, looked); got.status != 0 {
			t.Fatalf("%+v", got)
		}
		for line := range strings.Lines(w.read(t, trace)) {
			for _, name := range []string{"flake.nix", "flake.lock", "shell.nix", "/bin/nix\""} {
				if strings.Contains(line, name) && !strings.Contains(line, "O_PATH") {
					t.Errorf("%q: %s", words, line)
				}
			}
		}
	}
	inner := w.inside(t, `cat where; readlink /proc/self/ns/pid`)
	if lines := strings.Fields(inner); len(lines) != 2 || lines[0] != lines[1] || lines[0] == lineOf(t, "readlink", "/proc/self/ns/pid") {
		t.Errorf("the hook ran in %q", inner)
	}
	if exists(w.path("canary")) {
		t.Error("something ran outside")
	}
}

// In a shell the functions and arrays of the dev shell are there as well.
func TestAShellHasTheFunctionsOfTheDevShell(t *testing.T) {
	w := newWorld(t)
	w.flake(t, "project", `stdenv = p.runCommand "stdenv" { } "mkdir $out; echo 'greet() { echo \"hello from a function\"; }; list=(a b)' >$out/setup";`)
	shown := atTerminal(t, w.claudebox("shell", "--yes"), "greet; echo ${list[1]}${list[0]}; exit\n")
	expect.Contains(t, shown, "hello from a function\r\n")
	expect.Contains(t, shown, "ba\r\n")
}

// What an earlier session left in the place of what is kept stops no launch, and nothing outside follows it.
func TestWhatIsKeptOfADevShellIsTheAgents(t *testing.T) {
	w := newWorld(t)
	w.flake(t, "project", `shellHook = "export NAME=hooked";`)
	const good = "Hello, world!\nhooked .#default: 1 programs, 2 variables\n"
	wantEqual(t, w.inside(t, hasShell), good)
	for _, harm := range []string{
		`for f in *; do rm -f $f; mkfifo $f; done`, `rm -f record.json; ln -s /etc/passwd record.json`, `echo "{" >record.json`, `rm -rf *; mkdir record.json log hook.log hook.sh`,
		`chmod 000 .`, `rm shell; echo "{}" >shell`,
	} {
		w.inside(t, `cd /nix/var/claudebox-devshell/*; `+harm, "--no-devshell")
		succeed(t, w.claudebox("devshell"))
		if got := run(t, w.session(hasShell)); got.stdout != good && !strings.Contains(harm, `"{}"`) || got.status == 125 {
			t.Errorf("after %q: %+v", harm, got)
		}
	}
}
