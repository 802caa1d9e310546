package project_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/workspace/project"
)

// TestSecretsInTheGitFoldersOfLentFolders: what a session there would not see, no other may read.
func TestSecretsInTheGitFoldersOfLentFolders(t *testing.T) {
	w := newWorld(t)
	w.repo("lent/a", "x")
	w.write("lent/a/.git/config", "[remote \"origin\"]\n\turl = https://u:pw@h/x\n")
	w.write("lent/a/.git/credentials", "https://u:pw@h\n")
	w.write("lent/a/.git/FETCH_HEAD", "0123\tbranch 'x' of https://u:pw@h/x\n")
	w.write("lent/a/.git/git-crypt/keys/default", "x")
	w.write("lent/a/.git/hooks/pre-push", "curl https://u:pw@h/x\n")
	w.write("lent/a/.env", "A=b")
	want := []string{"a/.env", "a/.git/FETCH_HEAD", "a/.git/config", "a/.git/credentials", "a/.git/git-crypt", "a/.git/hooks/pre-push"}
	for dir, in := range map[string]string{"lent": "", "lent/a": "a/", "lent/a/.git": "a/.git/"} {
		lent, err := project.LookLent(w.path(dir), project.LentQuestion{Shown: func(string) bool { return false }})
		must.Do(t, err)
		got := []string{}
		for _, l := range lent.Secrets {
			got = append(got, in+l.Rel)
			if bytes.Contains(l.Content, []byte("pw")) || l.Dir != (path.Base(l.Rel) == "git-crypt") {
				t.Errorf("%+v", l)
			}
		}
		slices.Sort(got)
		want := slices.DeleteFunc(slices.Clone(want), func(rel string) bool { return !strings.HasPrefix(rel, in) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
}

// TestWhatHideNamesIsHidden: tracked or not, a file or a folder (attack f11).
//
// Promise: no secret of the project.
func TestWhatHideNamesIsHidden(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "private/README", "sub/private/README", "a.txt", "b/a.txt", "b/x", "same.env")
	w.write("p/private/customers.csv", "x")
	w.write("p/a.txt", "changed")
	for pattern, tc := range map[string]struct {
		hidden []string
		note   string
	}{
		"private":     {[]string{"private", "sub/private"}, "git has private, sub/private: the agent can read it there"},
		"private/":    {[]string{"private", "sub/private"}, "git has private, sub/private: the agent can read it there"},
		"private/**":  {[]string{"private"}, "git has private: the agent can read it there"},
		"./private/*": {[]string{"private/README", "private/customers.csv"}, "git has private/README: the agent can read it there"},
		"private/*":   {[]string{"private/README", "private/customers.csv"}, "git has private/README: the agent can read it there"},
		"a.txt":       {[]string{"a.txt", "b/a.txt"}, "git has b/a.txt: the agent can read it there; a commit of all changes inside would empty it\ngit has another content of a.txt;"},
		"b/a.txt":     {[]string{"b/a.txt"}, "git has b/a.txt: the agent can read it there"},
		"[!p]":        {[]string{"b"}, "git has b: the agent can read it there"},
		"same.env":    {[]string{"same.env"}, "git has same.env: the agent can read it there"},
		"a.txt/":      {nil, "\"a.txt/\" in `hide` matches nothing here"},
		"gone":        {nil, "\"gone\" in `hide` matches nothing here"},
		"gone/x":      {nil, "\"gone/x\" in `hide` matches nothing here"},
	} {
		t.Run(pattern, func(t *testing.T) {
			req := w.request("p")
			req.Hide = []string{pattern}
			p, err := project.Open(req)
			must.Do(t, err)
			if !slices.Equal(p.Hidden, tc.hidden) || !strings.Contains(notes(p), tc.note) {
				t.Errorf("hidden %q, notes %q; want %q, %q", p.Hidden, notes(p), tc.hidden, tc.note)
			}
			for _, m := range p.Mounts {
				if m.Mode == project.Hidden && m.Why != "the profile's `hide` names it" {
					t.Errorf("%s: %s", m.Path, m.Why)
				}
			}
			req.Show = []string{strings.TrimPrefix(pattern, "./")}
			if p, err = project.Open(req); err != nil || p.Hidden != nil {
				t.Errorf("shown: hidden %q, %v", p.Hidden, err)
			}
		})
	}
	if p := w.open("p"); p.Hidden != nil {
		t.Errorf("named by nobody: hidden %q", p.Hidden)
	}
}

// A secret that git has stays readable, and is named.
func TestASecretThatGitHasIsNamed(t *testing.T) {
	const note = "git has .env, so the agent can read it"
	for content, named := range map[string]bool{"DB_PASSWORD=hunter2xyz9\n": true, "PORT=3000\n": false} {
		w := newWorld(t)
		w.repo("p", "x")
		w.write("p/.env", content)
		w.git("p", "add", ".env")
		if p := w.open("p"); strings.Contains(notes(p), note) != named || len(p.Hidden) > 0 {
			t.Errorf("%q: hidden %q, notes %q", content, p.Hidden, notes(p))
		}
	}
}

// TestWhatProgramsLeaveInTheirFolderIsHidden: the memory of one that crashed has its environment, and so may what it
// printed.
//
// Promise: no secret of the project.
func TestWhatProgramsLeaveInTheirFolderIsHidden(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	const token = "export const key = 'ghp_Zq3vX8nT5kLw1RbY7mHc2DfJ9sGa4PeU6oKi'\n"
	elf := func(kind string) string {
		return "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + kind + strings.Repeat("x", 1<<19)
	}
	for name, content := range map[string]string{
		"core": elf("\x04\x00"), "core.1234": elf("\x04\x00"), "sub/vgcore.7": elf("\x00\x04"), "nohup.out": token, "env.ts": token,
		"bin/core": elf("\x02\x00"), "core.txt": strings.Repeat("core ", 1<<16), "env.js": "export const key = process.env.KEY\n",
	} {
		w.mkdir(path.Dir("p/" + name))
		w.write("p/"+name, content)
	}
	if p := w.open("p"); !slices.Equal(p.Hidden, []string{"core", "core.1234", "env.ts", "nohup.out", "sub/vgcore.7"}) {
		t.Errorf("hidden %q", p.Hidden)
	}
}

// TestWhatProtectNamesIsReadOnly though git tracks it, and is not said to be named by git (attack f12).
func TestWhatProtectNamesIsReadOnly(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "deploy/run.sh", "Makefile")
	for pattern, want := range map[string]string{
		"deploy/**": "ro ~/p/deploy", "deploy": "ro ~/p/deploy", "run.sh": "ro ~/p/deploy/run.sh", "Makefile": "ro ~/p/Makefile",
	} {
		req := w.request("p")
		req.Protect = []string{pattern, "gone"}
		p, err := project.Open(req)
		must.Do(t, err)
		if !slices.Contains(w.mounts(p), want) || slices.Contains(p.Reported, strings.TrimPrefix(want, "ro ~/p/")) {
			t.Errorf("%s: mounts %q, reported %q", pattern, w.mounts(p), p.Reported)
		}
		if !strings.Contains(notes(p), "\"gone\" in `protect` matches nothing here") {
			t.Errorf("notes %q", notes(p))
		}
	}
}

// TestASecretHasANameThatIsNotFound: deeper than paths go, or outside (attack f4). The remedy works as it is written.
//
// Promise: no secret of the project.
func TestASecretHasANameThatIsNotFound(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.write("p/it's/.env", "")
	for name, file := range map[string]string{"in the project": "p/it's/.env"} {
		t.Run(name, func(t *testing.T) {
			top, err := unix.Open(w.path("p"), unix.O_PATH|unix.O_DIRECTORY, 0)
			must.Do(t, err)
			deep := top
			for range 25 {
				name := strings.Repeat("d", 250)
				_ = unix.Mkdirat(deep, name, 0o755)
				deep, err = unix.Openat(deep, name, unix.O_PATH|unix.O_DIRECTORY, 0)
				must.Do(t, err)
			}
			must.Do(t, unix.Linkat(unix.AT_FDCWD, w.path(file), deep, path.Base(file), 0))
			content, _ := os.ReadFile(w.path(file))
			must.Do(t, os.WriteFile(w.path(file), append(content, "DB_PASSWORD=hunter2"...), 0o644))

			_, err = project.Open(w.request("p"))
			var told *diag.Error
			if !errors.As(err, &told) || !strings.Contains(err.Error(), diag.Name(w.path(file))) || !strings.Contains(err.Error(), "2 names") {
				t.Fatalf("got %v", err)
			}
			parts := strings.Split(told.Remedy, "`")
			if out, _ := exec.Command("sh", "-c", parts[1]).Output(); !strings.Contains(string(out), "d/"+path.Base(file)+"\n") {
				t.Errorf("%s finds %.100q", parts[1], out)
			}
			if out, err := exec.Command("sh", "-c", parts[3]).CombinedOutput(); err != nil {
				t.Fatalf("%s: %s", parts[3], out)
			}
			w.open("p")
			fd, err := unix.Openat(deep, path.Base(file), unix.O_RDONLY, 0)
			must.Do(t, err)
			if n, _ := unix.Read(fd, make([]byte, 10)); n != 0 {
				t.Error("the other name has the secret")
			}
		})
	}
}

// TestASecretOfAGitFolderHasANameThatIsNotFound: it is covered by a copy, and the agent could read it elsewhere.
func TestASecretOfAGitFolderHasANameThatIsNotFound(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.git("p", "init", "-q", "--bare", "target/b.git")
	w.git("p/target/b.git", "config", "http.extraHeader", "secret")
	must.Do(t, os.Link(w.path("p/target/b.git/config"), w.path("elsewhere")))
	if _, err := project.Open(w.request("p")); !errors.Is(err, project.ErrUnfound) {
		t.Errorf("got %v", err)
	}
}

// TestShowLetsNoOtherNameOfASecretIn: what lies where `show` matches, the agent chooses (attack f4b).
func TestShowLetsNoOtherNameOfASecretIn(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.write("p/.env", "A=b")
	w.mkdir("p/fixtures")
	must.Do(t, os.Link(w.path("p/.env"), w.path("p/fixtures/a.env")))
	req := w.request("p")
	req.Show = []string{"fixtures/**"}
	p, err := project.Open(req)
	if must.Do(t, err); !slices.Equal(p.Hidden, []string{".env", "fixtures/a.env"}) {
		t.Errorf("hidden %q", p.Hidden)
	}
}

// TestOrdinaryFilesHaveManyNames as pnpm and git make them: nothing is refused.
func TestOrdinaryFilesHaveManyNames(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.write("p/private/node_modules/a.js", "")
	w.write("p/src/.envrc", "")
	must.Do(t, os.Link(w.path("p/private/node_modules/a.js"), w.path("store")))
	must.Do(t, os.Link(w.path("p/src/.envrc"), w.path("backup")))
	must.Do(t, os.Link(w.path("p/.git/config"), w.path("backup2")))
	req := w.request("p")
	req.Hide = []string{"private"}
	_, err := project.Open(req)
	must.Do(t, err)
}
