package aftermath_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// world is a home with a project in it. No sandbox runs: what an agent could
// do is done by hand.
type world struct {
	t    testing.TB
	home string
	hide []string // patterns of the profile

	userGit []project.UserGit
}

func newWorld(t *testing.T) world {
	t.Helper()
	t.Parallel()
	return newWorldHere(t)
}

// newWorldHere is a world in a test that says itself whether it runs beside others.
func newWorldHere(t testing.TB) world {
	t.Helper()
	home := must.Folder(t)
	w := world{t: t, home: home}
	must.Do(t, os.MkdirAll(w.path(".claudebox"), 0o700))
	must.Do(t, os.MkdirAll(w.path("p"), 0o755))
	return w
}

func (w world) path(name string) string { return filepath.Join(w.home, name) }

func (w world) write(name, content string) {
	w.t.Helper()
	must.Write(w.t, w.path(name), content)
}

// sh runs a script in the project; EVIL leaves a trace.
func (w world) sh(script string) string {
	w.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		w.t.Skip("NOT RUN: needs git on PATH")
	}
	cmd := exec.Command("sh", "-c", "EVIL='touch "+w.home+"/taken; false'\n"+script)
	cmd.Dir = w.path("p")
	cmd.Env = []string{
		"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Logf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func (w world) taken() bool {
	_, err := os.Lstat(w.path("taken"))
	return err == nil
}

func (w world) wantNotTaken() {
	w.t.Helper()
	if w.taken() {
		w.t.Error("the host obeys what the agent wrote")
	}
}

func (w world) open() project.Project {
	w.t.Helper()
	home := w.path(".claudebox")
	p, err := project.Open(project.Request{
		Dir: w.path("p"), Home: w.home, UID: os.Getuid(), Hide: w.hide, UserGit: w.userGit,
		Memory: aftermath.NewMemory(home),
	})
	must.Do(w.t, err)
	return p
}

func (w world) begin() *aftermath.Session {
	w.t.Helper()
	s := w.prepare()
	s.Follow()
	return s
}

// prepare is before the sandbox begins.
func (w world) prepare() *aftermath.Session {
	w.t.Helper()
	s, err := aftermath.Begin(w.path(".claudebox"), w.open(), aftermath.Agent{Conversations: []string{w.path("conversations")}})
	must.Do(w.t, err)
	return s
}

// session is one from its beginning to its end, with a script for the agent.
func (w world) session(script string) aftermath.Report {
	w.t.Helper()
	s := w.begin()
	s.ReadNow()
	w.sh(script)
	os.Remove(w.path("taken")) // git inside obeys, too
	return w.ended(s, false)
}

// ended is the report of a session that ends by itself, or that is killed, and the next launch looks after it; an
// empty one if there is none.
func (w world) ended(s *aftermath.Session, killed bool) aftermath.Report {
	w.t.Helper()
	if killed {
		s.Kill()
		return slices.Concat(w.sweep(), []aftermath.Report{{}})[0]
	}
	r := s.End()
	r.Told(true)
	return r
}

// sweep is the beginning of a launch, that tells all.
func (w world) sweep(near ...string) []aftermath.Report {
	w.t.Helper()
	reports := aftermath.Sweep(w.path(".claudebox"), near...)
	for _, r := range reports {
		r.Told(true)
	}
	return reports
}

// records are the sizes of the records, in bytes.
func (w world) records() string {
	var sizes []string
	files, err := os.ReadDir(w.path(".claudebox/sessions"))
	must.Do(w.t, err)
	for _, f := range files {
		info, err := f.Info()
		must.Do(w.t, err)
		sizes = append(sizes, fmt.Sprint(info.Size()))
	}
	return strings.Join(sizes, " ")
}

// lines renders a report shortly.
func lines(r aftermath.Report) (list []string) {
	for _, c := range r.Changes {
		list = append(list, c.Change+" "+c.Path)
	}
	return append(list, r.Failures...)
}

func wantLines(t *testing.T, r aftermath.Report, want ...string) {
	t.Helper()
	if got := lines(r); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// wantHidden says which files are hidden from the next session.
func (w world) wantHidden(files ...string) {
	w.t.Helper()
	if p := w.open(); !slices.Equal(p.Hidden, files) {
		w.t.Errorf("hidden: %q; want %q", p.Hidden, files)
	}
}

func TestASessionThatChangesNothingSaysNothing(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; touch Makefile package.json main.go; git add .; git commit -qm x")
	r := w.session("echo x >main.go; git commit -qam y; git switch -qc z; git switch -q -")
	if !r.Silent() || r.Text(w.home, 0) != "" {
		t.Errorf("%+v", r)
	}
	if got := w.records(); got != "" {
		t.Errorf("records of %s bytes", got)
	}
	w.session("true")
	first, second := w.begin(), w.begin()
	second.End()
	first.End()
	w.session("true")
	if got := w.records(); got != "" {
		t.Errorf("records of %s bytes", got)
	}
}

// Promise: nothing planted for your tools, unsaid.
func TestTheReportTellsWhatTheHostRuns(t *testing.T) {
	w := newWorld(t)
	w.sh(`git init -q; mkdir -p .vscode apps/web; echo a >.envrc; echo a >package.json; echo a >Makefile; echo a >justfile; echo a >run.sh
		echo a >.vscode/tasks.json; echo a >apps/web/package.json; echo a >conftest.py; mkdir -p node_modules/.bin; git add .; git commit -qm x`)
	r := w.session(`echo b >>.envrc; echo b >package.json; mkdir -p .github/workflows; echo b >.github/workflows/x.yml; rm justfile
		chmod +x Makefile; echo b >run.sh; echo b >.vscode/new.json; echo b >apps/web/package.json; echo a >conftest.py; touch node_modules/.bin/x; echo b >notes`)
	wantLines(t, r, "changed .envrc", "new .github/workflows/x.yml", "new .vscode/new.json", "made executable Makefile",
		"changed apps/web/package.json", "removed justfile", "changed node_modules/.bin", "changed package.json")
	text := r.Text(w.home, 0)
	for _, c := range r.Changes {
		if c.Means == "" || !strings.Contains(text, c.Path) || !strings.Contains(text, c.Means) && !c.Ordinary {
			t.Errorf("%+v is not in\n%s", c, text)
		}
	}
	if got := strings.Count(text, "\n"); got != len(r.Changes) { // two are one line, below the first
		t.Errorf("%d lines\n%s", got, text)
	}
}

// TestJJAndMercurialAreLedElsewhere: to a configuration that no report was ever
// about.
func TestJJAndMercurialAreLedElsewhere(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir -p .jj/repo/store .hg a/.jj/repo b/.jj/repo; echo ../../../.git >.jj/repo/store/git_target; echo /x >b/.jj/repo/x")
	wantLines(t, w.session("touch .jj/repo/lock .jj/lock .hg/lock; mkdir .jj/working_copy"))
	r := w.session(`mkdir -p n/.hg m/.jj/repo s/.sl; rm -r a/.jj/repo; echo $HOME/evil >a/.jj/repo; echo $HOME/evil >.jj/repo/store/git_target; echo $HOME/evil >.hg/sharedpath; echo $HOME/evil >b/.jj/workspace-config.toml`)
	wantLines(t, r, "new .hg/sharedpath", "changed .jj/repo/store/git_target", "changed a/.jj/repo", "new b/.jj/workspace-config.toml",
		"new m/.jj", "new n/.hg", "new s/.sl")
}

func TestAFileWrittenAnewWithTheSameContentIsNotTold(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; echo a >Makefile; git add .; git commit -qm x; echo b >Makefile; git commit -qam y")
	wantLines(t, w.session("git switch -q --detach HEAD~1; git switch -q -"))
	wantLines(t, w.session("mv Makefile x; cp x Makefile; rm x"))
}

// What is between the beginning and the sandbox may fail, or take its time.
func TestASandboxThatNeverStartedIsLookedAfter(t *testing.T) {
	w := newWorld(t)
	w.sh("echo a >Makefile")
	s := w.prepare()
	w.sh("echo b >Makefile")
	wantLines(t, s.End(), "changed Makefile")
}

func TestNamesInAReportDoNotOrderTheTerminalAbout(t *testing.T) {
	w := newWorld(t)
	r := w.session("mkdir -p \"$(printf 'a\\033[2J\\nclaudebox: all is well')\"; touch \"$(printf 'a\\033[2J\\nclaudebox: all is well')/Makefile\"")
	if text := r.Text(w.home, 0); strings.ContainsAny(text, "\x1b") || strings.Count(text, "\n") != 2 {
		t.Errorf("%q", text)
	}
}

// anew are repositories that the agent makes, and the command by which the
// host's git would obey.
var anew = map[string]struct {
	user, agent, host string
}{
	"in a project that had none":          {"", `git init -q; git config core.fsmonitor "$EVIL"`, "git status"},
	"in a subfolder":                      {"git init -q; mkdir d; touch d/x", `git init -q d; git -C d config core.fsmonitor "$EVIL"`, "git -C d status"},
	"as a submodule in the index":         {"git init -q; git commit -qm x --allow-empty", `git init -q s; git -C s commit -qm x --allow-empty; git add s; git -C s config core.fsmonitor "$EVIL"`, "git status"},
	"as one where no walk comes":          {"git init -q; git commit -qm x --allow-empty", `git init -q node_modules/s; git -C node_modules/s commit -qm x --allow-empty; git add -f node_modules/s; git -C node_modules/s config core.fsmonitor "$EVIL"`, "git status"},
	"by HEAD, refs and objects":           {"git init -q; mkdir d; touch d/x", `git init -q --bare b; git -C b config core.fsmonitor "$EVIL"; git -C b config core.bare false; git -C b config core.worktree .; mv b/* d/`, "git -C d status"},
	"beside a .git that is spoilt":        {"git init -q; git commit -qm x --allow-empty", `rm .git/HEAD; git init -q --bare b; mv b/* .; git config -f config core.fsmonitor "$EVIL"; git config -f config core.bare false; git config -f config core.worktree .`, "git status"},
	"by a .git file":                      {"git init -q; git commit -qm x --allow-empty; mkdir d", `git init -q --separate-git-dir .e d; git -C d config core.fsmonitor "$EVIL"`, "git -C d status"},
	"in a folder that tools fill":         {"git init -q; mkdir node_modules", `git init -q node_modules/s; git -C node_modules/s config core.fsmonitor "$EVIL"`, "git -C node_modules/s status"},
	"in a new one of those, deep":         {"git init -q", `git init -q a/target/b/node_modules/s; git -C a/target/b/node_modules/s config core.fsmonitor "$EVIL"`, "git -C a/target/b/node_modules/s status"},
	"by HEAD, where tools fill":           {"git init -q", `git init -q --bare .venv/b; git -C .venv/b config core.fsmonitor "$EVIL"; git -C .venv/b config core.bare false; git -C .venv/b config core.worktree .`, "git -C .venv/b status"},
	"in a folder that is closed":          {"git init -q", `git init -q d/e; git -C d/e config core.fsmonitor "$EVIL"; chmod 0 d/e; chmod 0 d`, "chmod 755 d; chmod 755 d/e; git -C d/e status"},
	"in a closed folder where tools fill": {"git init -q; mkdir target", `git init -q target/e; git -C target/e config core.fsmonitor "$EVIL"; chmod 0 target/e target`, "chmod 755 target; chmod 755 target/e; git -C target/e status"},
	"with an alias":                       {"git init -q; mkdir d", `git init -q d; git -C d config alias.st "!$EVIL"`, "git -C d st"},
	"with a hook by hooksPath":            {"git init -q; mkdir d", `git init -q d; mkdir h; printf "#!/bin/sh\n$EVIL\n" >h/pre-commit; chmod +x h/*; git -C d config core.hooksPath ../h`, "git -C d commit --allow-empty -m x"},
	"by configuration by worktree":        {"git init -q; mkdir d", `git init -q d; git -C d config extensions.worktreeConfig true; git -C d config --worktree core.fsmonitor "$EVIL"`, "git -C d status"},
}

// TestTheseAttacksAreReal keeps the table honest: without an end of the
// session the host obeys.
func TestTheseAttacksAreReal(t *testing.T) {
	t.Parallel()
	for name, a := range anew {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(a.user)
			w.sh(a.agent)
			os.Remove(w.path("taken"))
			if out := w.sh(a.host); !w.taken() {
				t.Errorf("the attack does not work at all\n%s", out)
			}
		})
	}
}

func TestARepositoryThatTheAgentMakesAnew(t *testing.T) {
	t.Parallel()
	for name, a := range anew {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(a.user)
			s := w.begin()
			w.sh(a.agent)
			os.Remove(w.path("taken"))
			r := s.End()
			w.sh(a.host)
			w.wantNotTaken()
			if r.Silent() {
				t.Error("nothing is said")
			}
			// The next session finds it there, as the user's own, and makes it worse.
			wantLines(t, w.session("true"))
		})
	}
}

// What keeps one repository from being looked at hides neither it nor the next.
func TestARepositoryIsHiddenBehindClosedObjects(t *testing.T) {
	t.Parallel()
	for _, closed := range []string{"a/.git/objects", "a/.git/objects/info a/.git/objects a/.git", "b.git/objects"} {
		w := newWorldHere(t)
		t.Cleanup(func() { exec.Command("chmod", "-R", "u+rwX", w.home).Run() })
		r := w.session(`for r in a z; do git init -q $r; git -C $r config core.fsmonitor "$EVIL"; done
			git init -q --bare b.git; chmod 0 ` + closed)
		if len(r.Failures) > 0 {
			t.Errorf("%s: %q", closed, r.Failures)
		}
		exec.Command("chmod", "-R", "u+rwX", w.path("p")).Run()
		w.sh("git -C a status; git -C z status")
		w.wantNotTaken()
	}
}

func TestARepositoryOfAKilledSessionIsMadeHarmlessByTheNextLaunch(t *testing.T) {
	t.Parallel()
	for name, a := range anew {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(a.user)
			s := w.begin()
			w.sh(a.agent)
			os.Remove(w.path("taken"))
			if r := w.sweep(); len(r) > 0 {
				t.Errorf("a session that lives is swept: %+v", r)
			}
			s.Kill()
			reports := w.sweep()
			w.sh(a.host)
			w.wantNotTaken()
			if len(reports) != 1 || !reports[0].Unfinished || reports[0].Silent() || !strings.Contains(reports[0].Text(w.home, 0), "did not finish") {
				t.Errorf("%+v", reports)
			}
			if again := w.sweep(); len(again) > 0 {
				t.Errorf("a second time: %+v", again)
			}
		})
	}
}

// stubborn is before a session, and in it: what the session could read cannot be remembered, and a link among the
// conversations cannot be removed. As root they can.
const (
	stubbornBefore = "git init -q; echo a >tracked.key; git add .; echo a >hidden.key"
	stubborn       = "echo a >.envrc; echo b >tracked.key; mkdir ../conversations; ln -s x ../conversations/l; chmod 500 ../conversations ../.claudebox/memory"
	mended         = "chmod 700 ../conversations ../.claudebox/memory"
)

// What a session could not settle is told at each launch, with its project and how it ends. The session was not killed.
func TestWhatCouldNotBeSettledIsToldUntilItIs(t *testing.T) {
	w := newWorld(t)
	w.sh(stubbornBefore)
	s := w.begin()
	w.sh(stubborn)
	r := s.End()
	if len(r.Failures) != 1 {
		t.Errorf("at the end: %+v", r)
	}
	defer r.Told(true) // until then its file is open, and nobody else tells of it
	for range 2 {
		reports := w.sweep()
		if len(reports) != 1 {
			t.Fatalf("%+v", reports)
		}
		text := reports[0].Text(w.home, 0)
		for _, want := range []string{
			"claudebox: a session in ~/p that began at ", " did not finish its report",
			"claudebox: DANGER in ~/p: look through your conversations in ",
			"; do not run git there. Each launch tries again, until that is mended or the project removed\n",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
	}
	w.sh(mended)
	if r := w.sweep(); len(r) != 1 || len(r[0].Failures) > 0 {
		t.Errorf("when it is mended: %+v", r)
	}
	if r := w.sweep(); len(r) > 0 {
		t.Errorf("after that: %+v", r)
	}
}

// What one session's agent made is not the user's for a session that begins
// while the other lives.
func TestARepositoryMadeUnderTheEyesOfASecondSession(t *testing.T) {
	w := newWorld(t)
	first := w.begin()
	w.sh(`git init -q d; git -C d config core.fsmonitor "$EVIL"`)
	second := w.begin()
	first.End()
	w.sh(`git -C d config core.fsmonitor "$EVIL"`)
	os.Remove(w.path("taken"))
	second.End()
	w.sh("git -C d status")
	w.wantNotTaken()
}

// TestARepositoryIsPutTogetherWhereToolsFill keeps in an earlier session what
// is none yet, and is older than the next.
func TestARepositoryIsPutTogetherWhereToolsFill(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir node_modules")
	w.session(`git init -q x; git -C x config core.fsmonitor "$EVIL"; mkdir node_modules/s; mv x/.git node_modules/s/none; rm node_modules/s/none/HEAD`)
	time.Sleep(1100 * time.Millisecond) // what is touched a second before a session counts as touched in it
	w.session("echo ref: refs/heads/x >node_modules/s/none/HEAD; mv node_modules/s/none node_modules/s/.git")
	w.sh("git -C node_modules/s status")
	w.wantNotTaken()
}

func TestLinksOfTheUsersInAGitFolderStay(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git commit -qm x --allow-empty; mv .git/logs ../logs; ln -s ../../logs .git/logs")
	time.Sleep(1100 * time.Millisecond)
	wantLines(t, w.session("git commit -qm y --allow-empty"))
}

func TestWhatToolsFillStaysAsItIs(t *testing.T) {
	w := newWorld(t)
	w.sh(`git init -q; git init -q .venv/s; git -C .venv/s config alias.x '!true'; echo x >.venv/s/.git/hooks/pre-push; git init -q --bare target/b; git -C target/b config alias.x '!true'`)
	before := w.sh("cat .venv/s/.git/config target/b/config; ls .venv/s/.git/hooks")
	time.Sleep(1100 * time.Millisecond)
	wantLines(t, w.session("touch .venv/s/x target/x; git -C .venv/s hash-object -w x"))
	if after := w.sh("cat .venv/s/.git/config target/b/config; ls .venv/s/.git/hooks"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestTheUsersOwnRepositoriesStayAsTheyAre(t *testing.T) {
	w := newWorld(t)
	w.sh(`git init -q; git config alias.x '!true'; echo x >.git/hooks/pre-push; git commit -qm x --allow-empty
		git init -q d; git -C d config alias.x '!true'; git init -q --bare b.git; git -C b.git config alias.x '!true'; git worktree add -q ../w`)
	before := w.sh("cat .git/config d/.git/config b.git/config; ls .git/hooks d/.git/hooks b.git/hooks")
	wantLines(t, w.session("git commit -qm y --allow-empty; git -C d commit -qm y --allow-empty"))
	if after := w.sh("cat .git/config d/.git/config b.git/config; ls .git/hooks d/.git/hooks b.git/hooks"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestABareRepositoryThatTheAgentChanges(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git init -q --bare target/b; git -C target/b config core.bare false; git -C target/b config core.worktree .")
	r := w.session(`git -C target/b config core.fsmonitor "$EVIL"`)
	w.sh("git -C target/b status")
	w.wantNotTaken()
	wantLines(t, r, "taken out target/b/HEAD")
}

// TestASecretWithANameOfAnyBytesIsTrackedByForce: what is remembered of it is
// that name, and no other.
func TestASecretWithANameOfAnyBytesIsTrackedByForce(t *testing.T) {
	w := newWorld(t)
	const secret = "schl\xfcssel/.env"
	w.sh("git init -q; mkdir schl\xfcssel; echo SECRET >" + secret)
	w.session("git update-index --add --cacheinfo 100644,$(git hash-object -w /dev/null)," + secret)
	for range 2 {
		if p := w.open(); !slices.Equal(p.Hidden, []string{secret}) || !slices.Contains(p.Seen.All(), secret) {
			t.Errorf("hidden %q, tracked %q", p.Hidden, p.Seen.All())
		}
		w.session("true")
	}
}

// An agent puts the name of a secret that is not there into an index, and the user makes the file.
func TestASecretIsMadeUnderANameThatAnIndexHas(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git commit -q --allow-empty -m x")
	w.session("git update-index --add --cacheinfo 100644,$(git hash-object -w /dev/null),prod.key; git commit -qm y")
	w.write("p/prod.key", "SECRET")
	for range 2 {
		w.wantHidden("prod.key")
		w.session("true")
	}
}

// pushes are what an agent does over several sessions so that an index holds a
// secret of which no session takes note.
var pushes = map[string][]string{
	"a repository made anew, with the same name in its index": {
		"git init -q conf; git -C conf update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,.env",
		"mv conf/.git old; git init -q conf; git -C conf update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,.env",
	},
	"a repository around it that goes later": {
		"git init -q conf; ADD",
		"rm -r conf/.git",
	},
	"an index that cannot be read": {"ADD; chmod 0 .git/index"},
	"an index that is too large": {`ADD; git commit -qm x; truncate -s -20 .git/index; printf 'XXXX\010\100\0\0' >>.git/index
		head -c 138412032 /dev/zero >>.git/index; head -c 20 /dev/zero >>.git/index`},
	"a split index":                          {"ADD; git update-index --split-index; git commit -qm y"},
	"a commit that the user's git resets to": {"ADD; git commit -qm y; git rm -q --cached conf/.env"},
	"an index that is moved to another repository": {
		"git init -q conf; git init -q x; git -C conf update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,.env",
		"mv conf/.git y; mv x/.git conf/.git; mv y/index conf/.git/",
	},
}

func TestAnIndexHoldsASecretAfterSeveralSessions(t *testing.T) {
	t.Parallel()
	for name, sessions := range pushes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; git commit -qm x --allow-empty; mkdir conf; echo SECRET >conf/.env")
			for n, script := range sessions {
				// inside the file is empty
				w.session("git hash-object -w /dev/null\n" + strings.ReplaceAll(script, "ADD", "git update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,conf/.env"))
				w.sh("chmod u+rw .git/index; git update-index --no-split-index; git reset -q; git status")
				if p := w.open(); !slices.Contains(p.Hidden, "conf/.env") {
					t.Fatalf("after session %d hidden: %q", n+1, p.Hidden)
				}
			}
		})
	}
}

// The agent makes files with names of secrets, and tracks them; later the user puts secrets there.
func TestAFileThatTheAgentMadeBecomesASecret(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{
		"empty ones":             "touch .env d/credentials.json; git add -f .env d",
		"ones with something":    "echo x >.env; echo {} >d/credentials.json; git add -f .env d",
		"ones that are changed":  "touch .env d/credentials.json; git add -f .env d; echo x >.env; echo {} >d/credentials.json",
		"ones that are tracked":  "echo x >.env; echo {} >d/credentials.json; git add -f .env d; git commit -qm y",
		"ones that are promised": "touch .env d/credentials.json; git add -fN .env d",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; git commit -qm x --allow-empty; mkdir d")
			w.session(agent)
			if p := w.open(); len(p.Hidden) > 0 {
				t.Errorf("the agent's own are hidden: %q", p.Hidden)
			}
			w.session("test ! -s .env || echo y >>.env")
			if p := w.open(); len(p.Hidden) > 0 {
				t.Errorf("after a second session the agent's own are hidden: %q", p.Hidden)
			}
			w.sh(`echo KEY=x >.env; echo '{"client_secret": "s3cretvalue-24aaaa"}' >d/credentials.json`)
			for range 2 {
				w.session("true")
				w.wantHidden(".env", "d/credentials.json")
			}
		})
	}
}

// A file that is too large to be compared with git's objects is hidden, whoever made it.
func TestALargeFileThatTheAgentMadeBecomesASecret(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git commit -qm x --allow-empty")
	w.session("truncate -s 17M .env; git add -f .env")
	w.sh("echo KEY=x >>.env")
	w.wantHidden(".env")
}

// A repository made inside has a remote that leads to one of the user's, which no agent may read.
func TestTheUsersFetchBringsARepositoryOfTheirs(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q ../private; cd ../private; echo SECRET >x; git add x; git commit -qm x")
	w.session("git init -q; git commit -qm x --allow-empty; git remote add origin " + w.home + "/private")
	if out := w.sh("git fetch -q origin; git log --all --oneline -p"); strings.Contains(out, "SECRET") {
		t.Error(out)
	}
}

func TestFoldersAreClosedInEachOther(t *testing.T) {
	t.Parallel()
	for _, top := range []string{".", "node_modules"} {
		t.Run(top, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; mkdir -p " + top)
			const down = "for i in $(seq 45); do mkdir -p d; cd d; done\n"
			r := w.session("cd " + top + "\n" + down + "git init -q r; git -C r config core.fsmonitor \"$EVIL\"\nfor i in $(seq 45); do chmod 0 ../d; cd ..; done")
			w.sh("cd " + top + "; chmod -R u+rwX .\n" + down + "git -C r status")
			w.wantNotTaken()
			if r.Silent() {
				t.Error("nothing is said")
			}
		})
	}
}

func TestAFolderBecomesALinkToWhereNobodyLooksForSecrets(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir config conf2 plain")
	r := w.session("mkdir -p target .git/lfs/c; mv config target/; ln -s target/config; rmdir conf2; ln -s .git/lfs/c conf2; ln -s plain p; ln -s plain/x x; ln -s target t")
	wantLines(t, r, "new conf2", "new config", "new t")
}

// A copy of a project has git folders of which nothing is remembered.
func TestACoveredFileIsTrackedAndTheProjectIsCopied(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git commit -qm x --allow-empty; echo SECRET >.env")
	w.session("git update-index --add --cacheinfo 100644,$(git hash-object -w /dev/null),.env") // inside it is empty
	w.sh("cd ..; mv p before; cp -a before p; rm -r .claudebox/memory")
	w.wantHidden(".env")
}

// From a submodule git can name files whose paths from the project are longer than the kernel takes (PATH_MAX).
func TestARepositoryAsDeepAsAPathIsLong(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("/tmp", "")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(home) })
	w := world{t: t, home: home}
	w.write("p/x", "")
	w.write(".claudebox/x", "")
	const long = "d=$(printf /%0200d 0); d=$d$d$d$d$d$d$d$d$d; a=a$d/$(printf %0200d 0) b=b$d/$(printf %0253d 0)\n"
	w.session(long + `mkdir -p $a $b/.git/objects $b/.git/refs; echo ref: refs/heads/m >$b/.git/HEAD
		printf '[extensions]\nworktreeconfig = true\n' >$b/.git/config; printf '[core]\nfsmonitor = %s\n' "$EVIL" >$b/.git/config.worktree
		mv b $a`)
	for _, m := range w.open().Mounts {
		if len(m.Path) >= unix.PathMax {
			t.Errorf("nothing can be mounted at %s", m.Path)
		}
	}
	if out := w.sh(long + "mv $a/b .; ls $b/.git; cat $b/.git/config.worktree"); !strings.Contains(out, "HEAD.claudebox-aside") {
		t.Errorf("left: %s", out)
	}
}

// Nothing of the repository is changed when it is moved to where tools fill: what is old there counts as theirs.
func TestARepositoryMadeTooDeepIsMovedToWhereToolsFill(t *testing.T) {
	t.Parallel()
	const deep = "/below/evil"
	for name, tc := range map[string]struct{ moved, to, git string }{
		"with its folder":    {deep, "node_modules/evil", "node_modules/evil"},
		"with one above":     {"/below", "node_modules/x", "node_modules/x/evil"},
		"with all of them":   {"/below", "target", "target/evil"},
		"alone":              {deep + "/.git", "node_modules/.git", "node_modules"},
		"over another":       {deep, "node_modules/there", "node_modules/there"},
		"among a bare one's": {deep, "node_modules/b/refs/heads/evil", "node_modules/b/refs/heads/evil"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; git commit -qm x --allow-empty; git init -q node_modules/there; git init -q --bare node_modules/b")
			tree, err := beneath.Open(w.path("p"))
			must.Do(t, err)
			defer tree.Close()
			s, at := w.begin(), "deep"
			must.Do(t, tree.Mkdir(at, 0o700))
			for range 25 {
				at += "/" + strings.Repeat("d", 200)
				must.Do(t, tree.Mkdir(at, 0o700))
			}
			w.sh(`mkdir below; git init -q below/evil; git -C below/evil config core.fsmonitor "$EVIL"`)
			must.Do(t, tree.Rename("below", at+"/below"))
			s.End()
			time.Sleep(1100 * time.Millisecond)
			s = w.begin()
			w.sh("test -e node_modules/there && test " + tc.to + " = node_modules/there && rm -rf node_modules/there")
			must.Do(t, tree.Rename(at+tc.moved, tc.to))
			s.End()
			if out := w.sh("ls -A " + tc.git + "; git -C " + tc.git + " status"); !strings.Contains(out, "git") {
				t.Fatalf("the attack does not work at all: %s", out)
			}
			w.wantNotTaken()
		})
	}
}

// The name stays a secret's while the file is away: git takes it out of a commit that the agent made meanwhile.
func TestAnIndexGetsTheNameOfASecretThatWasAway(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"conf/.env", "prod.key"} {
		w := newWorldHere(t)
		make := "mkdir -p conf; echo SECRET >" + name
		w.sh("git init -q; git commit -qm x --allow-empty; " + make)
		w.session("true")
		w.sh("rm " + name)
		w.session(`export GIT_INDEX_FILE=$PWD/i
			git update-index --add --cacheinfo 100644,$(echo x | git hash-object -w --stdin),` + name + `
			git update-ref HEAD $(git commit-tree -p HEAD -m y $(git write-tree)); rm i`)
		if out := w.sh("git reset -q; git ls-files; " + make); !strings.Contains(out, name) {
			t.Fatalf("the attack does not work at all: %s", out)
		}
		if p := w.open(); !slices.Contains(p.Hidden, name) {
			t.Errorf("hidden: %q; want %s", p.Hidden, name)
		}
	}
}

// Where tools fill a folder, what lies deep in a repository is looked at, too.
func TestARepositoryAmongTheObjectsOfAnEarlierOne(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir node_modules; git init -q node_modules/x; mkdir -p node_modules/x/.git/refs/heads/d")
	time.Sleep(1100 * time.Millisecond) // what is a second older than a session counts as its own
	w.session(`for d in objects/info refs/heads/d; do git init -q e; git -C e config core.fsmonitor "$EVIL"; mv e/.git node_modules/x/.git/$d/; rm -r e; done`)
	w.sh("for d in objects/info refs/heads/d; do git -C node_modules/x/.git/$d status; done")
	w.wantNotTaken()
}

func TestTheRefsOfAnEarlierRepositoryAreMadeOne(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir node_modules; git init -q node_modules/x")
	time.Sleep(1100 * time.Millisecond)
	w.session(`git init -q e; git -C e config core.fsmonitor "$EVIL"; git -C e config core.worktree .; mv e/.git/* node_modules/x/.git/refs/`)
	w.sh("git -C node_modules/x/.git/refs status")
	w.wantNotTaken()
}

func TestGitWritesThroughALinkInAnEarlierRepositoryWhereToolsFill(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{
		"a link":            "ln -sf $HOME/rc node_modules/x/.git/logs/HEAD",
		"a link made early": "rm node_modules/x/.git/logs/HEAD; mv early node_modules/x/.git/logs/HEAD",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; mkdir node_modules; git init -q node_modules/x; git -C node_modules/x commit -qm x --allow-empty; echo mine >$HOME/rc; ln -s $HOME/rc early")
			time.Sleep(1100 * time.Millisecond)
			w.session(agent)
			if out := w.sh("git -C node_modules/x commit -qm y --allow-empty; cat $HOME/rc"); out != "mine\n" {
				t.Error(out)
			}
		})
	}
}

// Git opens what is called HEAD in every folder that it comes to, and waits where
// that is a pipe.
func TestGitWaitsForAPipeWhereToolsFill(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in a repository":  "git init -q --bare node_modules/x; rm node_modules/x/HEAD; mkfifo node_modules/x/HEAD",
		"and nothing else": "mkdir node_modules/x; mkfifo node_modules/x/HEAD",
		"of attributes":    "mkdir node_modules/x; touch node_modules/x/y; mkfifo node_modules/x/.gitattributes",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; mkdir node_modules")
			w.session(script)
			if out := w.sh("cd node_modules/x && timeout 20 git add -n -f .; echo ended with $?"); strings.Contains(out, "with 124") {
				t.Errorf("it does: %s", out)
			}
		})
	}
}

// A folder that can be listed, and not entered, shows names only: next time it is
// made one again that can.
func TestAFolderIsLeftToListOnly(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir conf; echo SECRET >conf/.env; echo ghp_0123456789abcdefghijklmnopqrstuvwxyz >conf/notes")
	w.session(`mkdir d; git init -q d/x; git -C d/x config core.fsmonitor "$EVIL"; chmod 644 d conf`)
	for range 2 {
		p := w.open()
		for _, name := range []string{"conf/.env", "conf/notes"} {
			if !slices.Contains(p.Hidden, name) && !slices.ContainsFunc(p.Mounts, func(m project.Mount) bool { return m.Mode == project.Hidden && m.Path == w.path("p/conf") }) {
				t.Errorf("%s is shown; hidden: %q", name, p.Hidden)
			}
		}
		w.sh("chmod 644 conf") // as in a session that was killed
	}
	w.sh("chmod 755 d conf; git -C d/x status")
	w.wantNotTaken()
}

// What an agent makes and commits it may go on with.
func TestTrackedHooksThatTheConfigurationNamesAreTold(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir h d; touch h/pre-commit; git add .; git commit -qm x; git config core.hooksPath h; git init -q n; mkdir n/.hooks; touch n/.hooks/x; git -C n add .; git -C n commit -qm x; git -C n config core.hooksPath .hooks")
	wantLines(t, w.session("touch h/pre-commit; cp h/pre-commit x; mv x h/pre-commit"))
	wantLines(t, w.session("echo x >h/pre-commit; echo x >n/.hooks/pre-push"), "changed h", "changed n/.hooks")
	wantLines(t, w.session("chmod +x h/pre-commit"), "changed h")
	wantLines(t, w.session("rm -r h"), "removed h")
}

func TestANameThatTheProfileHidesIsTrackedBeforeItIsThere(t *testing.T) {
	w := newWorld(t)
	w.hide = []string{"deploy/*.yaml", "*.hidden"}
	w.sh("git init -q; mkdir deploy; touch x; git add .; git commit -qm x")
	w.session("for f in deploy/prod.yaml x.hidden; do git update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,$f; done")
	w.write("p/deploy/prod.yaml", "SECRET")
	w.write("p/x.hidden", "SECRET")
	w.wantHidden("deploy/prod.yaml", "x.hidden")
}

func TestALinkToAHiddenFileIsTakenAway(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir d; echo SECRET >d/plain; ln -s d/plain .env; ln -s d/plain .env.local; ln -s d/plain .env.prod; ln -s d/plain harmless")
	w.wantHidden("d/plain")
	wantLines(t, w.session("rm .env harmless; ln -sf x .env.local"), "removed .env", "changed .env.local")
}

func TestAHiddenFileIsTrackedByForceUnderAnotherFolder(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir -p a/b; echo SECRET >a/b/.env; mkdir a/x; git add a/x; git commit -qm x --allow-empty")
	w.session("mv a c; git update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,c/b/.env")
	if p := w.open(); !slices.Contains(p.Hidden, "c/b/.env") {
		t.Errorf("hidden: %q", p.Hidden)
	}
}

func TestAFileMadeAndTrackedInsideIsNotHeldAgainstIt(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git commit -qm x --allow-empty")
	w.session("echo a >CLAUDE.md; mkdir testdata; echo a >testdata/server.key; git add .; git commit -qm y")
	p := w.open()
	if len(p.Hidden) > 0 || !slices.Equal(p.Reported, []string{"CLAUDE.md"}) {
		t.Errorf("hidden %q, reported %q", p.Hidden, p.Reported)
	}
}

func TestACheckoutMadeInsideIsOneLine(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; touch Makefile package.json flake.nix; git add .; git commit -qm x")
	r := w.session("git worktree add -q .claude/worktrees/x")
	wantLines(t, r, "new .claude/worktrees/x")
	if !strings.Contains(r.Changes[0].Means, "would run 3 files") {
		t.Errorf("%q", r.Changes[0].Means)
	}
}

func TestALargeProjectIsWalkedByWhatTheLastSessionSaw(t *testing.T) {
	w := newWorld(t)
	for n := range 300 {
		w.write(fmt.Sprintf("p/%d/x", n), "")
	}
	time.Sleep(50 * time.Millisecond)
	w.session("true")
	p := w.open()
	if aftermath.NewMemory(w.path(".claudebox")).Known(p.Scope) == nil {
		t.Fatal("nothing is known")
	}
	w.sh("git init -q 7; mkdir 8/new; git init -q 8/new; touch 7/.env 8/new/.env; git -C 7 add .env")
	if p := w.openKnown(); !slices.Equal(p.Seen.Git, []string{"7/.git", "8/new/.git"}) || !slices.Equal(p.Hidden, []string{"8/new/.env"}) {
		t.Errorf("got %q, hidden %q", p.Seen.Git, p.Hidden)
	}
	w.session("true")
	w.sh("git -C 8/new add .env; git -C 7 rm -q --cached .env")
	if p := w.openKnown(); !slices.Equal(p.Hidden, []string{"7/.env"}) {
		t.Errorf("hidden %q", p.Hidden)
	}
}

// What was seen is written down anew only where it is not what stands there:
// that takes longer than to look.
func TestALargeProjectIsWrittenDownWhenItChanged(t *testing.T) {
	w := newWorld(t)
	for n := range 300 {
		w.write(fmt.Sprintf("p/%d/x", n), "")
	}
	w.sh("git init -q; git add 7")
	time.Sleep(50 * time.Millisecond)
	written := func(inside, outside string) (anew bool) {
		t.Helper()
		p := w.openKnown()
		before := w.walkFile()
		s, err := aftermath.Begin(w.path(".claudebox"), p, aftermath.Agent{})
		must.Do(t, err)
		w.sh(inside)
		s.End()
		after := w.walkFile()
		anew = before == nil || !os.SameFile(before, after)
		w.sh(outside)
		time.Sleep(50 * time.Millisecond)
		return anew
	}
	for _, tc := range []struct {
		name, inside, outside string
		want                  bool
	}{
		{"the first time", "true", "true", true},
		{"after a session that changed nothing", "true", "touch 8/Makefile", false},
		{"after one before which the user changed something", "true", "true", true},
		{"then", "true", "true", false},
		{"after one that made a file", "touch 9/Makefile", "true", true},
		{"after one that added to the index", "git add 8", "true", true},
		{"in the end", "true", "true", false},
	} {
		if got := written(tc.inside, tc.outside); got != tc.want {
			t.Errorf("%s it was written: %t", tc.name, got)
		}
	}
}

// walkFile is what is kept of a walk; nil when nothing is.
func (w world) walkFile() os.FileInfo {
	files, err := filepath.Glob(w.path(".claudebox/walks/????????????????"))
	must.Do(w.t, err)
	if len(files) == 0 {
		return nil
	}
	info, err := os.Stat(files[0])
	must.Do(w.t, err)
	return info
}

func (w world) openKnown() project.Project {
	p, err := project.Open(project.Request{
		Dir: w.path("p"), Home: w.home, UID: os.Getuid(), Hide: w.hide,
		Memory: aftermath.NewMemory(w.path(".claudebox")),
	})
	must.Do(w.t, err)
	return p
}

func BenchmarkSession(b *testing.B) {
	w := newWorldHere(b)
	w.sh("git init -q; for d in a b c; do mkdir $d; for f in 1 2 3 4 5 6; do touch $d/$f.go; done; done; touch Makefile package.json .envrc .env; git add a b c; git commit -qm x")
	p := w.open()
	for b.Loop() {
		s, err := aftermath.Begin(w.path(".claudebox"), p, aftermath.Agent{})
		must.Do(b, err)
		s.End()
	}
}

// TestAgentRemovesTheLinkToAHiddenFile: by the link alone it is known that the
// file is secret, and a link cannot be mounted over. The session need not end in
// order for it.
func TestAgentRemovesTheLinkToAHiddenFile(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir deploy; echo x >deploy/prod; ln -s deploy/prod prod; ln -s prod .env; ln -s deploy d; ln -s d/test .env.test; echo x >deploy/test")
	w.sh("b=node_modules/b; git init -q --bare $b; git -C $b config http.extraHeader x; echo x >$b/credentials")
	hidden := []string{"deploy/prod", "deploy/test", "node_modules/b/credentials"}
	if got := w.open().Hidden; !slices.Equal(got, hidden) {
		t.Fatalf("hidden: %q", got)
	}
	w.begin().Kill()
	w.sh("rm .env .env.test node_modules/b/HEAD")
	const config = "node_modules/b/config"
	for range 2 {
		got := slices.DeleteFunc(w.open().Hidden, func(rel string) bool {
			return rel == config // as a whole, where node_modules was made a moment before the session
		})
		if !slices.Equal(got, hidden) || !w.covered("p", config) {
			t.Errorf("hidden: %q, want %q", got, hidden)
		}
		w.session("true")
	}
	w.sh("rm -r deploy/prod node_modules/b") // the user
	w.session("true")
	w.sh("echo x >deploy/prod")
	if got := w.open().Hidden; slices.Contains(got, "deploy/prod") {
		t.Error("what was removed is not forgotten")
	}
	var mounts []string
	for _, m := range w.open().Mounts {
		mounts = append(mounts, string(m.Mode)+strings.TrimPrefix(m.Path, w.path("p")))
	}
	// Without the pin the folder can be renamed, and the file in it is seen.
	if want := []string{"pin/deploy", "hidden/deploy/test"}; !slices.Equal(mounts, want) {
		t.Errorf("mounts %q, want %q", mounts, want)
	}
}

// TestAKilledSessionLeavesLinksAmongTheConversations: the user's Claude Code
// would write through them. Whether the project is there does not matter.
func TestAKilledSessionLeavesLinksAmongTheConversations(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"true", "mv ../p ../away"} {
		w := newWorldHere(t)
		w.sh("touch x; mkdir -p ../conversations/deep; echo x >../conversations/mine.jsonl; echo x >../rc")
		s := w.begin()
		w.sh("ln -s ../rc ../conversations/a.jsonl; ln -s ../.. ../conversations/deep/b; mkfifo ../conversations/deep/c")
		w.sh(script)
		s.Kill()
		reports := w.sweep()
		if len(reports) != 1 || !reports[0].Unfinished {
			t.Fatalf("%q: got %+v", script, reports)
		}
		at := w.path("conversations")
		wantLines(t, reports[0], "removed "+at+"/a.jsonl", "removed "+at+"/deep/b", "removed "+at+"/deep/c")
		if content, err := os.ReadFile(at + "/mine.jsonl"); err != nil || string(content) != "x\n" {
			t.Errorf("a conversation of the user's: %q, %v", content, err)
		}
	}
}

func TestPipesOfASessionThatLivesAreLeftToIt(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q .")
	first, second := w.begin(), w.begin()
	w.sh("mkfifo pipe")
	second.End()
	if got := w.sh("ls pipe"); got != "pipe\n" {
		t.Errorf("the second session took them from the first: %s", got)
	}
	first.End()
	if got := w.sh("ls pipe 2>/dev/null"); got != "" {
		t.Errorf("they stay: %s", got)
	}
}

// A name that the agent chose stood in the report as if claudebox had said it.
func TestNoNameReadsLikeARemedy(t *testing.T) {
	const evil = "a\nclaudebox: remedy: run `EVIL`; back: `EVIL` '"
	const make = `mkdir "$E" && cd "$E" && git init -q s && git -C s config core.fsmonitor x && git init -q "s/$E" && mkfifo "$E" s/p &&
		echo x >.mcp.json && echo x >.env && ln -s /tmp l && ln -s "$HOME/p/$E/.mcp.json" "../.$E" && echo x >"../.x$E" && ln -s . "$E .vscode" &&
		mkdir node_modules && ln -s node_modules "l$E" && mkdir c && chmod 0 c && git init -q w && git -C w commit -q --allow-empty -m x &&
		git -C w worktree add -q --detach "../v$E"`
	for _, killed := range []bool{false, true} {
		w := newWorldHere(t)
		s := w.begin()
		t.Setenv("E", evil)
		w.sh("export E='" + strings.ReplaceAll(evil, "'", `'\''`) + "'; " + make)
		r := w.ended(s, killed)
		text := r.Text(w.home, 0)
		if !strings.Contains(text, "EVIL") || strings.Contains(text, "`EVIL") || strings.Contains(text, "\nclaudebox: remedy") {
			t.Errorf("killed %t:\n%s", killed, text)
		}
		for _, c := range r.Changes {
			if strings.Contains(c.Back+c.Means, "`EVIL") {
				t.Errorf("killed %t: %+v", killed, c)
			}
		}
	}
}

// R15: a .env that the agent made was not told, nor were some 240 names that some tool obeys.
func TestNewSettingsAtTheRootAreToldInOneLine(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; echo x >.old; echo x >old.config.js")
	make := `echo y >.old; echo y >old.config.js; mkdir sub .dir; for f in .env .env.local .foorc vite.config.ts compose.override.yml Config.xml \
		barrc deno.jsonc notes.txt main.go sub/.foorc .dir/x; do echo x >$f; done; echo x >'.a; back: ` + "`evil`'"
	for _, killed := range []bool{false, true} {
		s := w.begin()
		w.sh(make)
		r := w.ended(s, killed)
		if killed {
			wantLines(t, r, "changed .", "changed .env", "changed .env.local")
		} else {
			wantLines(t, r, "new .", "new .env", "new .env.local")
		}
		text := strings.Join(strings.Fields(r.Text(w.home, 0)), " ")
		for _, want := range []string{"direnv, Compose, and your programs load the variables in it", `'.a; back: \x60evil\x60'`, ".foorc", "barrc"} {
			if !strings.Contains(text, want) {
				t.Errorf("killed %t: no %s in %s", killed, want, text)
			}
		}
		for _, other := range []string{"notes.txt", "main.go", "sub/", ".dir", "`evil"} {
			if strings.Contains(text, other) {
				t.Errorf("killed %t: %s in %s", killed, other, text)
			}
		}
		if !killed && strings.Contains(text, "old") {
			t.Errorf("what was there before is told: %s", text)
		}
		w.sh("rm -rf .env .env.local .foorc vite.config.ts compose.override.yml Config.xml barrc .a* sub .dir")
	}
}

// D3: pipes that were there before were renamed, if they had been written to meanwhile, or made a moment before.
func TestPipesOfTheUsersStayAndThoseOfTheSessionGo(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		w := newWorldHere(t)
		w.sh("mkdir -p sub node_modules/x; mkfifo pipe sub/pipe node_modules/x/pipe")
		w.sh("sleep 0.1") // the end of a killed session has only the times
		s := w.begin()
		w.sh(`for f in pipe sub/pipe node_modules/x/pipe; do cat $f >/dev/null & echo x >$f; wait; done
			mkfifo made sub/made node_modules/x/made sub/.gitattributes`)
		r := w.ended(s, killed)
		wantLines(t, r, "taken out made", "taken out node_modules/x/made", "taken out sub/.gitattributes", "taken out sub/made")
		w.sh("test -p pipe; test -p sub/pipe; test -p node_modules/x/pipe; ! test -e made")
	}
}

// D3: what was made a moment before.
func TestAPipeThatWasMadeJustBeforeStays(t *testing.T) {
	w := newWorld(t)
	w.sh("mkfifo pipe; mkdir -p .git/objects .git/refs")
	r := w.session("true")
	wantLines(t, r)
	w.sh("test -p pipe")
}

// N14: the mark of an overlay that a file is gone was taken for a pipe.
func TestOnlyAPipeIsTakenForOne(t *testing.T) {
	w := newWorld(t)
	must.Do(t, os.Mkdir(w.path("p/work"), 0o700))
	r := w.session(`mknod '#1aa1' c 0 0; mknod 'work/#1aa2' c 0 0`)
	if slices.ContainsFunc(r.Changes, func(c aftermath.Change) bool { return c.Change == aftermath.TakenOut }) {
		t.Errorf("%+v", r.Changes)
	}
}

func TestEditsOfTrackedFilesAreOrdinary(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q .; touch Makefile package.json .envrc; git add .; git commit -qm x; touch justfile")
	s := w.begin()
	w.sh("for f in Makefile package.json .envrc justfile; do echo b >$f; done")
	ordinary := map[string]bool{}
	for _, c := range s.End().Changes {
		ordinary[c.Path] = c.Ordinary
	}
	want := map[string]bool{"Makefile": true, "package.json": true, ".envrc": false, "justfile": false}
	if !maps.Equal(ordinary, want) {
		t.Errorf("got %v, want %v", ordinary, want)
	}
}

// A git folder that was closed before is hidden inside, so no agent has changed it.
func TestAGitFolderThatTheUserHasClosedStaysAsItIs(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q .; chmod 0 .git")
	t.Cleanup(func() { _ = os.Chmod(w.path("p/.git"), 0o700) })
	s := w.begin()
	if r := s.End(); len(r.Changes)+len(r.Failures) > 0 {
		t.Errorf("told: %+v", r)
	}
	if info, err := os.Stat(w.path("p/.git")); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("it is another: %v, %v", info, err)
	}
}
