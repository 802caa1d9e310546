//go:build lab

package attacks_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// live is a session that runs: a shell that takes lines.
type live struct {
	w       *world
	cmd     *exec.Cmd
	in      *os.File
	out     *os.File
	said    bytes.Buffer // on standard error
	pending string
}

// begin starts a session beside others.
func (w *world) begin(flags ...string) *live {
	w.t.Helper()
	l := &live{w: w}
	stdin, in, err := os.Pipe()
	must.Do(w.t, err)
	out, stdout, err := os.Pipe()
	must.Do(w.t, err)
	l.in, l.out = in, out
	words := slices.Concat([]string{"shell", "--yes"}, flags, []string{"--", "bash"})
	l.cmd = exec.Command(os.Getenv("CLAUDEBOX_BIN"), words...)
	l.cmd.Dir, l.cmd.Env, l.cmd.Stdin, l.cmd.Stdout, l.cmd.Stderr = w.project, w.env, stdin, stdout, &l.said
	must.Do(w.t, l.cmd.Start())
	stdin.Close()
	stdout.Close()
	if got := l.sh("echo there"); got != "there\n" {
		w.t.Fatalf("no session: %q\n%s", got, l.said.String())
	}
	return l
}

// sh runs a line in the session and gives what it prints.
func (l *live) sh(line string) string {
	l.w.t.Helper()
	if _, err := l.in.WriteString(line + "\necho; echo END\n"); err != nil {
		l.w.t.Fatal(err)
	}
	l.out.SetReadDeadline(time.Now().Add(trial.Patience))
	for {
		if said, rest, found := strings.Cut(l.pending, "\nEND\n"); found {
			l.pending = rest
			return said
		}
		piece := make([]byte, 4096)
		n, err := l.out.Read(piece)
		if err != nil {
			return l.pending
		}
		l.pending += string(piece[:n])
	}
}

// until asks again for a while.
func (l *live) until(line, want string) {
	l.w.t.Helper()
	got := ""
	for range 100 {
		if got = l.sh(line); got == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	l.w.t.Errorf("inside, %q gives %q, want %q\n%s", line, got, want, l.said.String())
}

// watched waits until claudebox watches over what it covers.
func (l *live) watched() {
	l.w.t.Helper()
	for range 100 {
		infos, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", l.cmd.Process.Pid))
		for _, name := range infos {
			if info, err := os.ReadFile(name); err == nil && bytes.Contains(info, []byte("inotify wd:")) {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.w.t.Fatal("nothing is watched")
}

// end closes the session's input, and gives what claudebox said.
func (l *live) end() string {
	l.w.t.Helper()
	l.in.Close()
	l.cmd.Wait()
	l.out.Close()
	return l.said.String()
}

// kill ends claudebox as nothing else would, and waits for what is inside.
func (l *live) kill() {
	l.w.t.Helper()
	l.cmd.Process.Signal(syscall.SIGKILL)
	l.end()
	time.Sleep(200 * time.Millisecond)
}

// Promise: nothing planted for your tools, unsaid.
func TestTheReportOfASession(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.write("project/.envrc", "a\n")
	w.write("project/package.json", "{}\n")
	w.git("project", "add", ".")
	w.git("project", "commit", "-qm", "x")
	script := `echo b >>.envrc; echo '{"scripts": {}}' >package.json; printf '#!/bin/sh\n' >.git/hooks/pre-commit
		mkdir -p .github/workflows; echo 'on: push' >.github/workflows/x.yml; echo x >main.go`
	got := w.claudebox("shell", "--yes", "--report-json", "../report.json", "--", "bash", "-c", script)
	want := strings.ReplaceAll(`claudebox: what your own tools run was changed while the session ran:
  changed  .envrc                   direnv runs it when you enter the folder, once you allow it
  new      .github/workflows/x.yml  your forge runs it when you push
  changed  package.json             tracked, and run when you build, test or install: see 'git diff HEAD', or 'git log -p' if committed
`, "'", "`")
	if got.status != 0 || got.stderr != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var report struct {
		Changes []struct{ Path, Change, Means string }
	}
	if err := json.Unmarshal([]byte(w.read("report.json")), &report); err != nil || len(report.Changes) != 3 || report.Changes[1].Path != ".github/workflows/x.yml" {
		t.Errorf("%v\n%s", err, w.read("report.json"))
	}
	if got := w.claudebox("shell", "--yes", "--no-report", "--", "bash", "-c", "echo c >>.envrc"); got.stderr != "" {
		t.Error(got)
	}
	if got := w.claudebox("shell", "--yes", "--", "true"); got.stderr != "" {
		t.Errorf("nothing was changed\n%s", got)
	}
}

// Where there was no repository the same attempt succeeds inside, and is told.
func TestAHookInARepositoryThatTheAgentMakes(t *testing.T) {
	w := newWorld(t)
	got := w.claudebox("shell", "--yes", "--", "bash", "-c", "git init -q; printf '#!/bin/sh\n"+w.orders()+"\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit")
	if !strings.Contains(got.stderr, "inside only: hooks/pre-commit\n") || strings.Count(got.stderr, "\n") != 3 {
		t.Error(got)
	}
	w.git("project", "commit", "-q", "--allow-empty", "-m", "x")
	w.wantNotTaken()
}

func TestTheReportIsWrittenThroughALinkOfTheAgent(t *testing.T) {
	w := newWorld(t)
	w.folder("project/out")
	w.claudebox("shell", "--yes", "--report-json", "out/report.json", "--", "bash", "-c", "mv out old; ln -s ../documents out; ln -s ../documents/letter old/report.json; touch Makefile")
	if w.exists("documents/report.json") || w.read("documents/letter") != canary {
		t.Error("the report was led elsewhere")
	}
	if !strings.Contains(w.read("project/old/report.json"), "Makefile") {
		t.Error("there is no report")
	}
}

func TestARepositoryOfASessionThatWasKilled(t *testing.T) {
	w := newWorld(t)
	l := w.begin()
	l.sh("git init -q; git config core.fsmonitor '" + w.orders() + "'")
	l.kill()
	os.Remove(w.path(taken)) // the agent's own git obeyed
	got := w.in("other").claudebox("shell", "--yes", "--", "true")
	isSaid := strings.Contains(got.stderr, "held back  .git") ||
		strings.Contains(got.stderr, "taken out  .git/HEAD") // it was killed before it held that back
	if !strings.Contains(got.stderr, "did not finish its report") || !isSaid {
		t.Error(got)
	}
	w.git("project", "status")
	w.wantNotTaken()
}

// The agent leaves settings and hooks in a .git that is no repository yet. The user's own `git init` took them, and
// nothing was said.
//
// Promise: nothing planted for your tools, unsaid.
func TestTheNextGitInitTakesNothingOfAnAgents(t *testing.T) {
	const plant = `for d in . sub node_modules/x; do mkdir -p $d/.git/hooks; git config -f $d/.git/config core.fsmonitor "$0"
		printf '#!/bin/sh\n%s\n' "$0" >$d/.git/hooks/pre-commit; chmod +x $d/.git/hooks/pre-commit; done`
	for name, killed := range map[string]bool{"it ends": false, "it is killed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			l := w.begin()
			l.sh(strings.ReplaceAll(plant, "$0", w.orders()))
			said := ""
			if killed {
				l.kill()
				said = w.in("other").claudebox("shell", "--yes", "--", "true").stderr
			} else {
				said = l.end()
			}
			for _, folder := range []string{"", "sub/", "node_modules/x/"} {
				if !strings.Contains(said, "taken out  "+folder+".git") {
					t.Errorf("%q is not told\n%s", folder, said)
				}
				for _, words := range [][]string{{"init", "-q"}, {"status"}, {"commit", "-qm", "x", "--allow-empty"}} {
					w.git("project/"+folder, words...)
				}
			}
			w.wantNotTaken()
		})
	}
}

// The same, while the session runs: the user's own git counted as who made the repository, with all that was in it.
func TestAGitInitMeanwhileTakesNothingOfAnAgents(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.git("project", "commit", "-qm", "mine", "--allow-empty")
	l := w.begin()
	l.sh("mkdir -p sub/.git/hooks; git config -f sub/.git/config core.fsmonitor '" + w.orders() + "'")
	for range 200 { // until it is held back
		if _, err := os.Readlink(w.path("project/sub/.git")); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, words := range [][]string{{"init", "-q"}, {"status"}, {"commit", "-qm", "x", "--allow-empty"}} {
		if got := w.git("project/sub", words...); !strings.Contains(got.stderr, "claudebox holds this .git back") {
			t.Errorf("your git did not stop: %v", got) // and it goes to the repository above
		}
	}
	// A link that looks as if it led there.
	l.sh("mkdir two; git init -q node_modules/bad; git -C node_modules/bad config core.fsmonitor '" + w.orders() +
		"'; ln -s $(readlink sub/.git | sed 's,/held-back/.*,/held-back,')/../../project/node_modules/bad/.git two/.git")
	l.sh("mkdir three; ln -s $(readlink sub/.git | sed 's,/held-back/.*,/held-back,')/three three/.git")
	time.Sleep(time.Second)
	w.git("project/two", "status")
	w.git("project/three", "init")
	if w.exists(".claudebox/held-back/three") {
		t.Error("your repository is made where claudebox removes it")
	}
	w.wantNotTaken()
	if got := l.sh("ls sub/.git"); got != "config\nhooks\n" {
		t.Errorf("inside there is %q", got)
	}
	l.kill()
	if w.git("project/sub", "add", ".").status == 0 {
		t.Error("your git does not stop after a kill")
	}
	if said := w.claudebox("shell", "--yes", "--", "true").stderr; !strings.Contains(said, "held back  sub/.git") ||
		strings.Contains(said, "is a link") {
		t.Error(said)
	}
	must.Do(t, os.Remove(w.path("project/sub/.git"))) // as claudebox says
	w.git("project/sub", "init", "-q")
	if got := w.git("project/sub", "rev-parse", "--show-toplevel").stdout; got != w.path("project/sub")+"\n" {
		t.Error(got)
	}
	w.attack("true")
	if left, _ := os.ReadDir(w.path(".claudebox/held-back")); len(left) > 0 {
		t.Errorf("what stops git is left: %s", left)
	}
}

// What claudebox says while the agent runs breaks its neck when nobody reads
// it, and nothing would judge what the agent made.
func TestWhoReadsTheReportIsGone(t *testing.T) {
	w := newWorld(t)
	w.write("project/conf/.env", canary)
	script := "git init -q; git config core.fsmonitor '" + w.orders() + "'; sleep 1.5; mv conf away; sleep 1; rm -f " + w.path(taken)
	w.write("script", script)
	got := w.run(nil, "bash", "-c", `{ "$0" shell --yes -- bash -c "$(cat ../script)"; echo $? >../status; } 2>&1 | true`, os.Getenv("CLAUDEBOX_BIN"))
	if status := w.read("status"); status != "0\n" {
		t.Errorf("status %q\n%s", status, got)
	}
	w.git("project", "status")
	w.wantNotTaken()
}

// A second session begins under the eyes of the first, whose agent exchanges
// what is about to be protected.
func TestASecondSessionIsLaunchedWhileTheFirstExchangesTheRepository(t *testing.T) {
	w := newWorld(t)
	w.folder("project/d")
	first := w.begin()
	w.git("project/d", "init", "-q") // the user's, made while the session runs: the first does not protect it
	first.sh("cp -r d e; git -C e config core.fsmonitor '" + w.orders() + "'; (while :; do mv d x; mv e d; mv d e; mv x d; done) >/dev/null 2>&1 &")
	for range 20 {
		w.attack("git -C d config core.fsmonitor '" + w.orders() + "'; git -C e config core.fsmonitor '" + w.orders() + "'")
	}
	first.end()
	os.Remove(w.path(taken))
	for _, dir := range []string{"d", "e", "x"} {
		w.git("project/"+dir, "status")
	}
	w.wantNotTaken()
}

func TestAFileIsTrackedByForceToBeWrittenNextTime(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.git("project", "commit", "-q", "--allow-empty", "-m", "x")
	w.write("project/.envrc", "a\n")
	w.write("project/.env", canary)
	w.prepared("git add -f .envrc .env; git -c user.name=a -c user.email=a@b commit -qm y")
	got := w.attack("cat .env; echo evil >>.envrc")
	w.wantNoCanary(got)
	if w.read("project/.envrc") != "a\n" {
		t.Error("it was written to")
	}
}

// What a profile extends lies in the project as well.
func TestAProfileThatIsExtendedIsWidened(t *testing.T) {
	for name, tracked := range map[string]bool{"tracked": true, "untracked": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.git("project", "init", "-q")
			w.write("project/conf/base.yaml", "name: base\nextends: default\n")
			if tracked {
				w.git("project", "add", "conf")
			}
			w.write("profile.yaml", "name: test\nextends: ./project/conf/base.yaml\n")
			wider := `name: base\nextends: default\nmounts: [{host: ~/documents}]\n`
			for range 2 { // the second time by the plan that was kept
				w.attack("printf '"+wider+"' >conf/base.yaml; mv conf old; mkdir conf; printf '"+wider+"' >conf/base.yaml", "--profile", w.path("profile.yaml"))
				time.Sleep(1200 * time.Millisecond)
			}
			w.wantNoCanary(w.attack("cat ~/documents/letter", "--profile", w.path("profile.yaml")))
		})
	}
}

func TestAProfileThatIsALinkInTheProject(t *testing.T) {
	w := newWorld(t)
	w.write("project/real.yaml", "name: test\nextends: default\n")
	w.link("real.yaml", "project/profile.yaml")
	w.wantRefused(w.attack("true", "--profile", "./profile.yaml"), "is a link in the project")
}

func TestASocketOfTheHostInTheProject(t *testing.T) {
	w := newWorld(t)
	w.folder("project/run")
	l, err := net.Listen("unix", w.path("project/run/s"))
	must.Do(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 4096)) // what is asked; else the answer may be lost
				c.Write([]byte(canary))
			}()
		}
	}()
	const connect = "curl -sS --max-time 5 --http0.9 --unix-socket run/s http://x/"
	w.wantNoCanary(w.attack(connect))
	flags := w.profile("show: [run/s]")
	if got := w.attack(connect, flags...); !strings.Contains(got.stdout, canary) {
		t.Errorf("the attack does not work at all\n%s", got)
	}
}

// hidden are secret files of a project, and others that only look so.
//
// Promise: no secret of the project.
func TestSecretFilesOfTheProject(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.write("project/testdata/server.key", "tracked\n")
	w.write("project/.env.example", "example\n")
	w.git("project", "add", ".")
	w.git("project", "commit", "-qm", "x")
	secret := []string{".env", ".env.local", "deploy/prod.key", "deploy/id_ed25519", "a/b/c/terraform.tfstate", ".npmrc", "vault/deep/x", "x.secret"}
	for _, name := range secret {
		w.write("project/"+name, "_authToken="+canary)
	}
	w.write("project/cacert.pem", "certificate\n")
	secret = append(secret, "settings.xml") // a name that asks, and nothing in it that tells
	w.write("project/settings.xml", "<x>\n"+canary+" "+canary)
	flags := w.profile("hide: [vault/**, '*.secret', settings.xml]")
	got := w.attack("cat "+strings.Join(secret, " ")+"; ls vault; cat testdata/server.key .env.example cacert.pem; git status --porcelain", flags...)
	w.wantNoCanary(got)
	if want := "tracked\nexample\ncertificate\n"; !strings.HasPrefix(got.stdout, want) {
		t.Errorf("want %q\n%s", want, got)
	}
	plan := w.claudebox(append([]string{"plan"}, flags...)...)
	for _, name := range []string{".env", ".env.local", "deploy/prod.key", "vault", "x.secret"} {
		if !strings.Contains(plan.stdout+plan.stderr, name) {
			t.Errorf("%s is not named\n%s", name, plan)
		}
	}
	if got := w.attack("cat .env.local", w.profile("show: [.env.local]")...); !strings.Contains(got.stdout, canary) {
		t.Errorf("show does not show\n%s", got)
	}
	made, _ := filepath.Glob(w.path("project/.env*"))
	if len(made) != 3 {
		t.Errorf("something was made: %q", made)
	}
}

// The user fills in what the agent has made a second name of.
func TestASecretFileHasAnotherNameFromBefore(t *testing.T) {
	w := newWorld(t)
	w.prepared("echo '# fill in' >.env; ln .env notes; mkdir node_modules; ln .env node_modules/n; mkdir .git; ln .env .git/n || :")
	file, err := os.OpenFile(w.path("project/.env"), os.O_WRONLY|os.O_APPEND, 0)
	must.Do(t, err)
	file.WriteString(canary)
	file.Close()
	w.wantNoCanary(w.attack("cat .env notes node_modules/n .git/n; grep -r . ."))
}

// A configuration of git is read-only by the name that git knows.
func TestAConfigurationIsWrittenByAnotherName(t *testing.T) {
	w := newWorld(t)
	w.prepared("git init -q sub")
	must.Do(t, os.Link(w.path("project/sub/.git/config"), w.path("project/config")))
	w.attack("printf '[core]\n\tfsmonitor = \"" + w.orders() + "\"\n' >>config")
	if strings.Contains(w.read("project/config"), "fsmonitor") {
		t.Error("it was written")
	}
}

// The host's git obeys a repository that is given away beside the project.
func TestARepositoryBesideTheProjectIsTurnedAgainstTheHost(t *testing.T) {
	for name, inside := range map[string]string{"at its own path": "", "elsewhere": ":/srv/lib"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.folder("lib")
			w.git("lib", "init", "-q")
			w.git("lib", "commit", "-qm", "x", "--allow-empty")
			w.write("lib/.env", canary)
			script := `cd "$0"; cat .env; git config core.fsmonitor "$1"; mkdir -p .git/hooks; printf '#!/bin/sh\n%s\n' "$1" >.git/hooks/pre-commit
				chmod +x .git/hooks/pre-commit; mv .git .git2; mv .git2 .git; git init -q new; git -C new config core.fsmonitor "$1"
				echo x >f; git add f; git -c user.name=a -c user.email=a@b commit -qm y; git log --oneline | wc -l`
			at := strings.TrimPrefix(inside, ":")
			if at == "" {
				at = w.path("lib")
			}
			got := w.claudebox("shell", "--yes", "--mount-rw", w.path("lib")+inside, "--", "bash", "-c", script, at, w.orders())
			w.wantNoCanary(got)
			if !strings.Contains(got.stderr, "core.fsmonitor") || got.stdout != "1\n" { // the agent's own hook stops its commit
				t.Error(got)
			}
			os.Remove(w.path(taken)) // the agent's own git obeyed
			w.git("lib", "status")
			w.git("lib", "commit", "-qm", "x", "--allow-empty")
			w.git("lib/new", "status")
			w.wantNotTaken()
		})
	}
}

// People call files as they like.
func TestSecretFilesThatAreCalledOtherwise(t *testing.T) {
	for name, content := range map[string]string{
		"prod.env": "A=" + canary, ".env~": canary, ".env-prod": canary, ".ENV": canary, "tls/SERVER.KEY": canary, "secrets/db": canary,
		"home/.ssh/config": canary, "home/.kube/config": canary, ".bash_history": canary,
		"token.txt": canary + "\n", "vault_pass": canary + "1\n", "deploy_key": "-----BEGIN OPENSSH PRIVATE KEY-----\n" + canary + "\n",
		".envrc":                   "use flake\nexport MY_TOKEN='" + canary + "1'\n",
		".mcp.json":                `{"mcpServers":{"x":{"command":"npx","env":{"X_API_KEY":"` + canary + `1"}}}}`,
		"firebase-adminsdk.json":   `{"private_key": "` + canary + `"}`,
		"appsettings.Staging.json": `{"Db":"Host=x;Password=` + canary + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("project/"+name, content)
			w.wantNoCanary(w.attack("cat '" + name + "'"))
			if w.read("project/"+name) != content {
				t.Error("it was changed")
			}
		})
	}
}

// The user's editor would write the next secret where nothing covers it.
func TestTheFolderOfAHiddenFileIsMovedAway(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.write("project/conf/.env", canary)
	w.write("project/.env", canary)
	l := w.begin()
	w.write("project/.env.new", canary)
	must.Do(t, os.Rename(w.path("project/.env.new"), w.path("project/.env")))
	l.until("cat .env", "") // the watch has begun
	if got := l.sh("mv conf other 2>&1; mkdir conf 2>/dev/null; cat conf/.env other/.env 2>/dev/null"); !strings.Contains(got, "busy") || strings.Contains(got, canary) {
		t.Errorf("it is moved: %s", got)
	}
	l.end()
}

// An editor or `git config` of the host replaces a covered file by rename.
func TestACoveredFileIsReplacedByTheHost(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.write("project/.env", canary)
	w.write("project/.envrc", "a\n")
	l := w.begin()
	if got := l.sh("cat .env"); got != "" {
		t.Fatalf("%q", got)
	}
	for range 2 {
		for name, content := range map[string]string{".env": canary + " new", ".envrc": "b\n"} {
			w.write("project/"+name+".new", content)
			must.Do(t, os.Rename(w.path("project/"+name+".new"), w.path("project/"+name)))
		}
		w.git("project", "config", "remote.origin.url", "https://"+canary+"@example.org/x")
		l.until("cat .env", "")
		l.until("[[ -w .envrc ]] || echo no", "no\n")
		l.until("echo evil 2>/dev/null >>.envrc; cat .envrc", "b\n")
		l.until("grep -c "+canary+" .git/config", "0\n")
	}
	if said := l.end(); strings.Contains(said, "not covered") {
		t.Error(said)
	}
	w.git("project", "status")
	w.wantNotTaken()
}
