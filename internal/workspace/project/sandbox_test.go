package project_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/project"
)

// box runs shell commands in a sandbox that has the project's mounts and
// nothing else of claudebox.
type box struct {
	w     world
	words []string
	dir   string
}

// box puts a project into bwrap as the launch will.
func (w world) box(p project.Project) box {
	w.t.Helper()
	program, err := exec.LookPath("bwrap")
	if err != nil {
		w.t.Skip("NOT RUN: needs bwrap on PATH")
	}
	words := []string{program, "--unshare-user", "--unshare-pid", "--cap-drop", "ALL", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}
	words = append(words, "--bind", p.Path, p.Path)
	for i, m := range p.Mounts {
		switch m.Mode {
		case project.Inner: // what the agent does to its own does not matter here
			own := filepath.Join(w.t.TempDir(), "git")
			if out, err := exec.Command("cp", "-a", m.Path, own).CombinedOutput(); err != nil {
				w.t.Fatalf("%v\n%s", err, out)
			}
			words = append(words, "--bind", own, m.Path)
		case project.Pin:
			words = append(words, "--bind", m.Path, m.Path)
		case project.ReadOnly:
			words = append(words, "--ro-bind", m.Path, m.Path)
		case project.Made, project.Hidden:
			made := filepath.Join(w.t.TempDir(), string(rune('a'+i)))
			must.Do(w.t, os.WriteFile(made, m.Content, 0o600))
			words = append(words, "--ro-bind", made, m.Path)
		}
	}
	if out, err := exec.Command(program, append(words[1:], "--", "true")...).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "namespace") {
			w.t.Skipf("NOT RUN: needs user namespaces: %s", out)
		}
		w.t.Fatalf("%v\n%s", err, out)
	}
	return box{w, words[:len(words):len(words)], p.Dir}
}

// sh runs a command inside and gives its output and whether it succeeded.
func (b box) sh(command string) (string, bool) {
	b.w.t.Helper()
	cmd := exec.Command(b.words[0], append(b.words[1:], "--chdir", b.dir, "--", "sh", "-ec", command)...)
	cmd.Env = []string{
		"HOME=" + b.w.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=i", "GIT_AUTHOR_EMAIL=i@x", "GIT_COMMITTER_NAME=i", "GIT_COMMITTER_EMAIL=i@x",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func (b box) works(command string) {
	b.w.t.Helper()
	if out, ok := b.sh(command); !ok {
		b.w.t.Errorf("inside, %q fails:\n%s", command, out)
	}
}

func (b box) fails(command string) {
	b.w.t.Helper()
	if out, ok := b.sh(command); ok {
		b.w.t.Errorf("inside, %q succeeds:\n%s", command, out)
	}
}

// hold makes the stand-ins until the end of the test.
func (w world) hold(p project.Project) *project.Hold {
	w.t.Helper()
	h, err := p.Hold()
	must.Do(w.t, err)
	w.t.Cleanup(h.Release)
	return h
}

// work is what git must be able to do inside.
var work = []string{
	"git status", "git log -1", "echo x >new; git add new; git commit -qm inside", "git switch -qc topic; git switch -q main",
	"git branch -D topic", "git stash list", "git tag v1", "git gc -q", "git fsck", "git diff HEAD~1", "git reset -q --soft HEAD~1; git commit -qm again",
}

func TestGitWorksInside(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	p := w.open("p")
	w.hold(p)
	b := w.box(p)
	for _, command := range work {
		b.works(command)
	}
}

func TestGitWorksInALinkedWorktree(t *testing.T) {
	w := newWorld(t)
	w.repo("m", "x")
	w.git("m", "switch", "-qc", "base")
	w.git("m", "worktree", "add", "-q", "../p", "main")
	p := w.open("p")
	w.hold(p)
	b := w.box(p)
	for _, command := range work {
		b.works(command)
	}
	b.fails("echo x >" + w.path("m/x"))
	b.fails("echo x >.git")
	b.fails("rm .git")
}

func TestGitWorksInASubmodule(t *testing.T) {
	w := newWorld(t)
	w.repo("lib", "x")
	w.repo("s", "x")
	w.git("s", "submodule", "--quiet", "add", w.path("lib"), "sub")
	p := w.open("s/sub")
	w.hold(p)
	b := w.box(p)
	for _, command := range work {
		b.works(command)
	}
}

// escapes are ways to have the host's tools run something from the working tree; each has worked
// against a sandbox that lacked the protection in question. "EVIL" is a
// configuration that makes git run a program.
var escapes = map[string]string{
	".git renamed away":                             "mv .git .git2; mkdir .git",
	"a submodule's git folder":                      "mv .git/modules/sub .git/modules/sub2",
	"a submodule's .git file":                       "echo 'gitdir: ../evil' >sub/.git",
	"a submodule's folder":                          "mv sub sub2",
	"an editor's tasks":                             "echo x >.vscode/tasks.json",
	"an editor's folder":                            "mv .vscode .vscode2",
	"direnv's file":                                 "echo x >.envrc",
	"direnv's file, replaced":                       "echo x >new; mv new .envrc",
	"Claude's local settings":                       "echo x >.claude/settings.local.json",
	"the folder of those settings":                  "mv .claude .claude2",
	"a hooks folder git names":                      "echo x >tools/hooks/pre-push",
	"an included configuration":                     "EVIL >team.gitconfig",
	"a configuration that an included one includes": "EVIL >more.gitconfig",
	"a hooks folder that a nested repository names": "echo x >nested/.githooks/pre-push",
	"a configuration that a nested one includes":    "EVIL >nested/more.gitconfig",
}

// victim is a project with all that the escapes are after.
func (w world) victim() project.Project {
	w.repo("lib", "x")
	w.repo("p", "x")
	w.git("p", "submodule", "--quiet", "add", w.path("lib"), "sub")
	w.git("p", "commit", "-qm", "sub")
	w.git("p", "worktree", "add", "-q", "../l")
	w.git("p", "config", "core.hooksPath", "tools/hooks")
	w.git("p", "config", "include.path", "../team.gitconfig")
	w.git("p", "config", "--add", "include.path", "more")
	w.write("p/.git/more", "")
	w.git("p", "config", "alias.x", "!.git/monitor")
	w.write("p/.git/monitor", "")
	must.Do(w.t, os.Chmod(w.path("p/.git/monitor"), 0o755))
	w.write("p/.git/more-hooks/x", "")
	w.git("p", "config", "--add", "core.hooksPath", ".git/more-hooks")
	w.write("p/more.gitconfig", "")
	for _, nested := range []string{"nested", "nested2"} {
		w.repo("p/"+nested, "x")
	}
	w.git("p/nested", "config", "core.hooksPath", ".githooks")
	w.git("p/nested", "config", "include.path", "../more.gitconfig")
	w.git("p/nested2", "config", "core.hooksPath", ".git/h")
	for _, file := range []string{"nested/.githooks/x", "nested/more.gitconfig", "nested2/.git/h/x"} {
		w.write("p/"+file, "")
	}
	for _, file := range []string{".vscode/tasks.json", ".envrc", ".claude/settings.local.json", "tools/hooks/pre-push"} {
		w.write("p/"+file, "")
	}
	w.write("p/team.gitconfig", "[include]\npath = more.gitconfig\n")
	return w.open("p")
}

func escape(command string) string {
	return strings.ReplaceAll(command, "EVIL", "printf '[core]\\nfsmonitor = touch /tmp/evil\\n'")
}

func TestAgentCannotReachTheHostThroughGit(t *testing.T) {
	w := newWorld(t)
	p := w.victim()
	w.hold(p)
	b := w.box(p)
	for name, command := range escapes {
		t.Run(name, func(t *testing.T) {
			b := b
			b.w.t = t
			b.fails(escape(command))
		})
	}
	b.works("git status")
}

// TestEscapesAreReal keeps the table honest: without the mounts each works.
func TestEscapesAreReal(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: -short")
	}
	template := newWorld(t)
	template.victim()
	for name, command := range escapes {
		if strings.Contains(name, "mount") {
			continue // there is nothing to unmount
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if out, err := exec.Command("cp", "-a", template.path("p"), w.path("p")).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			p := w.open("p")
			w.hold(p)
			p.Mounts = nil
			w.box(p).works(escape(command))
		})
	}
}

// TestAFilledFolderIsFilledAnew: what is kept of an earlier look must not hide
// a checkout with a token that pip or npm has made since.
func TestAFilledFolderIsFilledAnew(t *testing.T) {
	w := newWorld(t)
	w.mkdir("p/node_modules")
	w.mkdir("p/.venv/src")
	looks := 0
	var kept project.Filled
	covered := func() (covered []string) {
		time.Sleep(50 * time.Millisecond) // so that stamps count
		req := w.request("p")
		req.Memory = memory{kept}
		p, err := project.Open(req)
		must.Do(t, err)
		if p.Filled.State != kept.State {
			looks++
		}
		kept = p.Filled
		for _, m := range w.mounts(p) {
			if strings.HasPrefix(m, "made ") {
				covered = append(covered, m)
			}
		}
		return covered
	}
	for i, dir := range []string{"", "", "node_modules/a", ".venv/src/b"} {
		if dir != "" {
			w.mkdir("p/" + dir)
			w.git("p/"+dir, "init", "-q")
			w.git("p/"+dir, "config", "remote.o.url", "https://u:canary@example.org/x")
		}
		if got, want := len(covered()), max(0, i-1); got != want {
			t.Errorf("%q: %d are covered, want %d", dir, got, want)
		}
	}
	if looks != 3 {
		t.Errorf("looked %d times, want 3", looks)
	}
}

// TestABareRepositoryThatIsReadOnlyAsAWhole: one of the agent's own in its place would not do.
func TestABareRepositoryThatIsReadOnlyAsAWhole(t *testing.T) {
	for at, settings := range map[string]string{"p/.jj/repo/store/git": "", "p/tree": "core.worktree ."} {
		w := newWorld(t)
		w.repo("p", "x")
		w.git(".", "init", "-q", "--bare", at)
		if settings != "" {
			w.git(at, "config", "core.bare", "false")
			w.git(at, append([]string{"config"}, strings.Fields(settings)...)...)
		}
		p := w.open("p")
		if got := w.mounts(p); !slices.Contains(got, "ro ~/"+at) || len(p.Places) != 1 {
			t.Errorf("%s: got %q", at, got)
		}
	}
}

// TestTheAgentChangesABareRepository, where it lies, and those around it: none of the user's is its own to change, nor
// one of the files that git has, as tests have them.
func TestTheAgentChangesABareRepository(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.git("p", "init", "-q", "--bare", "a/plain.git")
	w.git("p", "init", "-q", "--bare", "t/fixture.git")
	w.git("p", "-C", "t/fixture.git", "config", "http.extraHeader", "of a test")
	w.git("p", "add", "t/fixture.git")
	p := w.open("p")
	w.hold(p)
	want := []string{"inner ~/p/.git", "pin ~/p/a", "inner ~/p/a/plain.git", "pin ~/p/t", "ro ~/p/t/fixture.git"}
	if got := w.mounts(p); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, script := range []string{
		"rm -r a/plain.git", "mv a b", "mv t u", "mv t/fixture.git t/f", "mkdir t/fixture.git/worktrees", "echo >t/fixture.git/HEAD",
	} {
		w.box(p).fails(script)
	}
	if got := notes(p); !strings.Contains(got, "t/fixture.git: read-only inside") {
		t.Errorf("notes %q", got)
	}
}
