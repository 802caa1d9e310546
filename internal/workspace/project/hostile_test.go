package project_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/workspace/project"
)

// hostile are .git files and folders that want something mounted, read or
// executed. "~" stands for home. None may end in a mount outside the project.
var hostile = map[string]struct {
	make func(w world)
	dir  string // "p" if empty
}{
	"a .git file that points at another repository": {make: func(w world) {
		w.repo("victim", "x")
		w.write("p/.git", "gitdir: "+w.path("victim/.git")+"\n")
	}},
	"a .git file that points at another's worktree": {make: func(w world) {
		w.repo("victim", "x")
		w.git("victim", "worktree", "add", "-q", "../l")
		w.write("p/.git", "gitdir: "+w.path("victim/.git/worktrees/l")+"\n")
	}},
	"a .git file that points at home": {make: func(w world) {
		w.write("p/.git", "gitdir: "+w.home+"\n")
		w.write("HEAD", "")
		w.mkdir("objects")
		w.mkdir("refs")
		w.write("config", "[core]\nworktree = "+w.path("p")+"\n")
	}},
	"a .git file that points at a secret folder": {make: func(w world) {
		w.write(".ssh/HEAD", "")
		w.mkdir(".ssh/objects")
		w.mkdir(".ssh/refs")
		w.write(".ssh/config", "[core]\nworktree = "+w.path("p")+"\n")
		w.write("p/.git", "gitdir: ../.ssh\n")
	}},
	"a .git file that points at no git folder": {make: func(w world) {
		w.write("data/config", "[core]\nworktree = "+w.path("p")+"\n")
		w.write("p/.git", "gitdir: ../data\n")
	}},
	"a .git file that points back only in words": {make: func(w world) {
		w.repo("victim", "x")
		w.write("victim/.git/worktrees/e/gitdir", w.path("other/.git")+"\n")
		w.write("victim/.git/worktrees/e/commondir", "../..\n")
		w.write("p/.git", "gitdir: ../victim/.git/worktrees/e\n")
	}},
	"a commondir that leads elsewhere": {make: func(w world) {
		w.repo("victim", "x")
		w.repo("m", "x")
		w.git("m", "worktree", "add", "-q", "../p")
		w.write("m/.git/worktrees/p/commondir", w.path("victim/.git")+"\n")
	}},
	"a commondir that is a link": {make: func(w world) {
		w.repo("victim", "x")
		w.repo("m", "x")
		w.git("m", "worktree", "add", "-q", "../p")
		w.write("text", w.path("victim/.git"))
		must.Do(w.t, os.Remove(w.path("m/.git/worktrees/p/commondir")))
		w.link(w.path("text"), "m/.git/worktrees/p/commondir")
	}},
	"a .git file of another form":  {make: func(w world) { w.write("p/.git", "gitdir:../x\n") }},
	"a .git file with a NUL":       {make: func(w world) { w.write("p/.git", "gitdir: /etc\x00\n") }},
	"a .git file of a mebibyte":    {make: func(w world) { w.write("p/.git", "gitdir: "+strings.Repeat("x/", 1<<19)) }},
	"a .git file that leads round": {make: func(w world) { w.write("p/.git", "gitdir: .git\n") }},
	"an empty .git file":           {make: func(w world) { w.write("p/.git", "") }},
}

func TestHostileGitFilesGetNothingMounted(t *testing.T) {
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.make(w)
			p := w.open("p")
			for _, m := range p.Mounts {
				if !strings.HasPrefix(m.Path, w.path("p")+"/") {
					t.Errorf("%s %s", m.Mode, m.Path)
				}
			}
			if len(p.Notes) == 0 {
				t.Error("nothing is said about it")
			}
		})
	}
}

// unprotectable are repositories whose protection cannot be set up.
var unprotectable = map[string]struct {
	make     func(w world)
	want     string
	writable bool // `config: writable` lets it pass
}{
	".git is a link": {func(w world) {
		w.repo("r", "x")
		w.link("../r/.git", "p/.git")
	}, "no plain file or folder", true},
	".git leads through a link": {func(w world) {
		w.mkdir("p")
		w.git(".", "init", "-q", "--separate-git-dir", "p/.store", "p")
		w.link(".store", "p/l")
		w.write("p/.git", "gitdir: l\n")
	}, "leads through a link", true},
	".git is a pipe": {func(w world) {
		w.mkdir("p")
		must.Do(w.t, syscall.Mkfifo(w.path("p/.git"), 0o600))
	}, "no plain file or folder", true},
	"a commondir was planted": {func(w world) {
		w.repo("p", "x")
		w.write("p/.git/commondir", "../evil\n")
	}, "from elsewhere", false},
	"a commondir is a link": {func(w world) {
		w.repo("p", "x")
		w.link("../evil", "p/.git/commondir")
	}, "from elsewhere", false},
}

func TestWhatCannotBeProtectedIsRefused(t *testing.T) {
	for name, tc := range unprotectable {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.make(w)
			wantRefusal(t, w.request("p"), tc.want)
			req := w.request("p")
			req.WritableConfig = true
			if _, err := project.Open(req); (err == nil) != tc.writable {
				t.Errorf("with `config: writable`: %v", err)
			}
		})
	}
}

// held are repositories whose parts cannot be held one by one, and what is held
// instead.
var held = map[string]struct {
	make func(w world)
	want string
}{
	"the configuration is a link": {func(w world) {
		must.Do(w.t, os.Rename(w.path("p/.git/config"), w.path("p/c")))
		w.link("../c", "p/.git/config")
	}, "ro ~/p/.git"},
	"a submodule's git folder is a link": {func(w world) { w.link("../../evil", "p/.git/modules/sub") }, "ro ~/p/.git"},
	"a worktree's git folder is a link":  {func(w world) { w.link("../../evil", "p/.git/worktrees/l") }, "ro ~/p/.git"},
	"the folder of submodules is a link": {func(w world) { w.link("../evil", "p/.git/modules") }, "ro ~/p/.git"},
	"it has lost its HEAD":               {func(w world) { must.Do(w.t, os.Remove(w.path("p/.git/HEAD"))) }, "ro ~/p/.git"},
}

func TestWhatCannotBeHeldByNameIsHeldAsAWhole(t *testing.T) {
	for name, tc := range held {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repo("p", "x")
			tc.make(w)
			if got := w.mounts(w.open("p")); !slices.Contains(got, tc.want) {
				t.Errorf("got %q, want %s among them", got, tc.want)
			}
		})
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.write("outside/x", "")
	w.write("p/inside.envrc", "")
	w.link("../outside", "p/.vscode")
	w.link(w.path("outside/x"), "p/.mcp.json")
	w.link("inside.envrc", "p/.envrc")
	w.link("../outside", "p/.claude")
	w.link("..", "p/.idea")
	w.link(".", "p/.zed")
	w.link("/etc/passwd", "p/.git/hooks2")
	p := w.open("p")
	want := []string{"inner ~/p/.git", "ro ~/p/inside.envrc"}
	if got := w.mounts(p); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range []string{".vscode", ".mcp.json", ".envrc"} {
		if !strings.Contains(notes(p), w.path("p/"+name)+" is a link") {
			t.Errorf("%s is not named in %q", name, notes(p))
		}
	}
}

func TestAGuardedFileIsGuardedByItsOtherNames(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.write("p/.envrc", "")
	w.write("p/.env", "A=b")
	w.write("p/secrets/db", "A=b")
	w.write("p/node_modules/x", "")
	w.write("elsewhere", "")
	w.write("p/.git/hooks/pre-push", "#!/bin/sh\n")
	for name, other := range map[string]string{
		"p/other": "p/.envrc", "p/notes": "p/.env", "p/node_modules/n": "p/.env", "p/.git/n": "p/.env", "p/db": "p/secrets/db", "p/tool": "p/.git/hooks/pre-push",
	} {
		must.Do(t, os.Link(w.path(other), w.path(name)))
	}
	p := w.open("p")
	got := w.mounts(p)
	for _, want := range []string{"ro ~/p/other", "hidden ~/p/notes", "hidden ~/p/node_modules/n", "hidden ~/p/db", "pin ~/p/node_modules", "ro ~/p/tool"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
	if strings.Contains(notes(p), "elsewhere") || !slices.Contains(p.Hidden, "notes") {
		t.Errorf("hidden %q; notes %q", p.Hidden, notes(p))
	}
	must.Do(t, os.Link(w.path("p/.env"), w.path("outside")))
	if _, err := project.Open(w.request("p")); err == nil || !strings.Contains(err.Error(), ".env: it has 5 names") {
		t.Errorf("got %v", err)
	}
}

// The host's git obeys what is in a bare repository.
func TestABareRepositoryDoesNotEnter(t *testing.T) {
	w := newWorld(t)
	w.git(".", "init", "-q", "--bare", "b.git")
	req := w.request("b.git")
	wantRefusal(t, req, "git folders do not enter")
	req.Beside = true
	p, err := project.Open(req)
	must.Do(t, err)
	if got := w.mounts(p); !slices.Equal(got, []string{"inner ~/b.git"}) || len(p.Places) != 1 {
		t.Errorf("got %q, places %+v", got, p.Places)
	}
	w.lent("b.git")
}

func TestFoldersInAHiddenFolderAreNoHardLinks(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.write("p/secrets/deep/deeper/db", "A=b")
	w.write("p/.git/claudebox-aside/worktrees-x/refs/x", "")
	if got := notes(w.open("p")); strings.Contains(got, "hard link") {
		t.Errorf("got %q", got)
	}
}

func TestMoreGitFoldersThanHaveOneOfTheAgentsOwn(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	for n := range 105 {
		at := fmt.Sprintf("p/.git/modules/m%03d", n)
		w.write(at+"/HEAD", "")
		w.write(at+"/config", "")
		w.mkdir(at + "/objects")
		w.mkdir(at + "/refs")
	}
	p := w.open("p")
	if got := notes(p); !strings.Contains(got, "100 git folders: 6 of them are read-only inside") || strings.Contains(got, "m103") {
		t.Errorf("want one note on six: %q", got)
	}
	if got := w.mounts(p); slices.Contains(got, "inner ~/p/.git/modules/m104") || !slices.Contains(got, "inner ~/p/.git/modules/m098") {
		t.Errorf("not the first 100: %q", got)
	}
}

func TestProtectTakesGlobs(t *testing.T) {
	w := newWorld(t)
	for _, file := range []string{"a/secret.sh", "a/b/secret.sh", "a/b/c.sh", "secret.sh", "x/y/z", ".git2/secret.sh"} {
		w.write("p/"+file, "")
	}
	w.link("a", "p/l")
	for pattern, want := range map[string][]string{
		"./secret.sh":     {"ro ~/p/secret.sh"},
		"z":               {"pin ~/p/x", "pin ~/p/x/y", "ro ~/p/x/y/z"},
		"y/":              {"pin ~/p/x", "ro ~/p/x/y"},
		"z/":              nil,
		"a/*.sh":          {"pin ~/p/a", "ro ~/p/a/secret.sh"},
		"*/secret.sh":     {"pin ~/p/.git2", "ro ~/p/.git2/secret.sh", "pin ~/p/a", "ro ~/p/a/secret.sh"},
		"a/**/secret.sh":  {"pin ~/p/a", "pin ~/p/a/b", "ro ~/p/a/b/secret.sh", "ro ~/p/a/secret.sh"},
		"a/**/*.sh":       {"pin ~/p/a", "pin ~/p/a/b", "ro ~/p/a/b/c.sh", "ro ~/p/a/b/secret.sh", "ro ~/p/a/secret.sh"},
		"x/**":            {"ro ~/p/x"},
		"x/":              {"ro ~/p/x"},
		"gone/*.sh":       nil,
		"gone":            nil,
		"secret.sh/*":     nil,
		"**/y":            {"pin ~/p/x", "ro ~/p/x/y"},
		"[ab]/b/[!s]*.sh": {"pin ~/p/a", "pin ~/p/a/b", "ro ~/p/a/b/c.sh"},
	} {
		req := w.request("p")
		req.Protect = []string{pattern}
		p, err := project.Open(req)
		if got := w.mounts(p); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v; want %q", pattern, got, err, want)
		}
	}
}

// S3: another session exchanges folders while this one is set up.
func TestASecretThatCameWhileTheSandboxWasSetUp(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.write("p/conf/.env", "A=b")
	w.write("p/other/x", "")
	w.write("p/.env", "A=b")
	p := w.open("p")
	if got := p.Appeared(); got != "" {
		t.Errorf("%s was there before", got)
	}
	must.Do(t, unix.Renameat2(unix.AT_FDCWD, w.path("p/conf"), unix.AT_FDCWD, w.path("p/other"), unix.RENAME_EXCHANGE))
	if got := p.Appeared(); got != "other/.env" {
		t.Errorf("got %q", got)
	}
}

// Promise: no secret of the project.
func TestTokensThatToolsLeftInAGitFolderAreNotInside(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	const token = "ghp_Zq3vX8nT5kLw1RbY7mHc2DfJ9sGa4PeU6oKi"
	secrets := map[string]string{
		"hooks/pre-push":           "#!/bin/sh\ncurl -H 'Authorization: Bearer " + token + "'\n",
		"hooks/pre-receive.sample": "#!/bin/sh\nTOKEN='" + token + "'\n",
		"aws/1":                    "AKIAQYLPMN5HFIQR7XYA\nhunter2\n", "gk/config": "token = " + token + "\n", "info/notes": token,
		"token.txt": "hunter2horse9\n", "credentials.bak": "https://u:hunter2@example.org\n",
		"old-config": "[remote \"o\"]\n url = https://u:hunter2@example.org/x\n", "x.inc": "[http]\n extraHeader = Authorization: Bearer " + token + "\n",
	}
	for name, content := range secrets {
		w.write("p/.git/"+name, content)
	}
	w.write("p/.git/hooks/pre-commit", "#!/bin/sh\n")
	w.write("p/.git/svn/.rev_map", strings.Repeat("x", 1<<20+1))
	got := w.mounts(w.lent("p"))
	for name := range secrets {
		if want := "hidden ~/p/.git/" + name; !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
	if slices.Contains(got, "hidden ~/p/.git/hooks/pre-commit") || slices.Contains(got, "hidden ~/p/.git/svn/.rev_map") {
		t.Errorf("too much is hidden: %q", got)
	}
}

// F7: a git folder is judged by names like a project, and folders of keys are hidden whole.
func TestSecretsByNameInAGitFolderAreNotInside(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	hidden := map[string]string{
		"mytool/.env": "A=b\n", "mytool/password": "hunter2horse9\n", "mytool/deep/key.pem": "-----BEGIN PRIVATE KEY-----\n",
		"mytool/keys.json": strings.Repeat("x", 1<<20+1), "mytool/big.key": strings.Repeat("x", 1<<20+1), "mytool/token.txt": "https://u:hunter2@example.org\n",
		"mytool/secrets/db": "A=b\n", "info/.env": "A=b\n", "info/lib/id_rsa": "x", "hooks/lib/.env": "A=b\n", "lfs/token": "hunter2horse9\n",
		"git-crypt": "", "annex/creds": "",
	}
	shown := map[string]string{
		"mytool/password.txt": "see the manual\n", "mytool/cert.pem": "-----BEGIN CERTIFICATE-----\n", "mytool/.env.example": "A=b\n",
		"mytool/index": strings.Repeat("x", 1<<20+1), "annex/index": "x", "mytool/x.env/data": "x", "crypt/transcrypt": "#!/bin/sh\n", "info/exclude": "*.token\n",
	}
	for name, content := range hidden {
		if content != "" {
			w.write("p/.git/"+name, content)
		}
	}
	for name, content := range shown {
		w.write("p/.git/"+name, content)
	}
	w.write("p/.git/git-crypt/keys/default", "\x00GITCRYPTKEY\x00\x00\x00\x02secretbytes")
	w.write("p/.git/annex/creds/1.key", "login\npass\n")
	var got []string
	for _, rel := range w.lent("p").Hidden {
		got = append(got, strings.TrimPrefix(rel, ".git/"))
	}
	if want := slices.Sorted(maps.Keys(hidden)); !slices.Equal(got, want) {
		t.Errorf("hidden are %q, want %q", got, want)
	}
	req := w.request("p")
	req.Lent, req.Beside, req.Show = true, true, []string{".git/git-crypt"}
	if p, err := project.Open(req); err != nil || slices.Contains(p.Hidden, ".git/git-crypt") {
		t.Errorf("shown, it is hidden: %q, %v", p.Hidden, err)
	}
}

func TestPasswordsThatGitAndLFSWroteDownAreNotInside(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	const address = "https://user:hunter2hunter2@example.org/x"
	w.write("p/.git/FETCH_HEAD", "0123\tnot-for-merge\tbranch 'x' of "+address+"\n")
	w.write("p/.git/logs/HEAD", "0 1 a <a@x> 1 +0\tclone: from "+address+"\n")
	w.write("p/.git/logs/refs/heads/main", "0 1 a <a@x> 1 +0\tclone: from "+address+"\n")
	w.write("p/.git/lfs/logs/1.log", "GET "+address+"\n")
	w.write("p/.git/lfs/cache/locks", "{}\n")
	p := w.lent("p")
	got := w.mounts(p)
	for _, want := range []string{
		"made ~/p/.git/FETCH_HEAD", "made ~/p/.git/logs/HEAD", "made ~/p/.git/logs/refs/heads/main", "hidden ~/p/.git/lfs/logs/1.log",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
	for _, m := range p.Mounts {
		if strings.Contains(string(m.Content), "hunter2") {
			t.Errorf("%s shows it", m.Path)
		}
	}
	if slices.Contains(got, "hidden ~/p/.git/lfs/cache/locks") || !strings.Contains(notes(p), "take the password out") {
		t.Errorf("got %q; notes %q", got, notes(p))
	}
}

// A name that an agent chose stood in a remark, or in a refusal, as if claudebox had said it.
func TestNoNameInARemarkReadsLikeARemedy(t *testing.T) {
	const evil = "a\nclaudebox: remedy: run `EVIL`; '"
	says := func(t *testing.T, text string) {
		t.Helper()
		if !strings.Contains(text, "EVIL") || strings.Contains(text, "`EVIL") || strings.Contains(text, "\nclaudebox: remedy") {
			t.Errorf("it says %s", text)
		}
	}
	w := newWorld(t)
	w.repo("p", "README")
	w.write("p/x"+evil+".pem", "-----BEGIN PRIVATE KEY-----\n")
	w.write("p/"+evil+"/id_rsa", "x\n")
	w.mkdir("p/closed" + evil)
	must.Do(t, os.Chmod(w.path("p/closed"+evil), 0))
	must.Do(t, os.Symlink(evil+"/id_rsa", w.path("p/.envrc")))
	must.Do(t, os.Link(w.path("p/"+evil+"/id_rsa"), w.path("p/y"+evil)))
	w.mkdir("p/sub" + evil)
	w.git("p/sub"+evil, "init", "-q")
	must.Write(t, w.path("p/sub"+evil+"/.git/config.worktree"), "[")
	said := notes(w.open("p"))
	says(t, said)
	expect.Contains(t, said, "hidden inside", "is a link", "by another name", "cannot be read")
	must.Do(t, os.Chmod(w.path("p/closed"+evil), 0o700))
	outside := w.path("deep" + evil)
	must.Do(t, os.Link(w.path("p/"+evil+"/id_rsa"), outside))
	_, err := project.Open(w.request("p"))
	var refused *diag.Error
	if !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
	says(t, refused.Error()+refused.Remedy)
}
