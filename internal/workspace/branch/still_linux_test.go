package branch

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
)

// Whatever could change what git says gives another state, also where size and time of a file are as before; what git
// does not look at gives the same.
func TestWhatGitLooksAtGivesAnotherState(t *testing.T) {
	t.Parallel()
	const (
		begin             = `git init -q -b main; mkdir -p d/e ign/d; echo 1 >f; echo 2 >d/e/g; ln -s f l; git add .; git commit -qm one; git worktree add -q ../wt`
		same, other, none = "same", "other", "none"
	)
	for name, tc := range map[string]struct{ change, want string }{
		"nothing":                        {":", same},
		"a log and an object":            {"git hash-object -w --stdin <<<x; echo >>.git/logs/HEAD", same},
		"a hook":                         {"echo x >.git/hooks/pre-commit", same},
		"content":                        {"echo 3 >f", other},
		"content of the same time":       {"touch -r f ../r; echo 3 >f; touch -r ../r f", other},
		"content by a mapping":           {"touch -r f ../r; python3 -c 'import mmap; f=open(\"f\",\"r+b\"); m=mmap.mmap(f.fileno(),0); m[0]=51; m.close()'; touch -r ../r f", other},
		"another file in its place":      {"cp -p f n; mv n f", other},
		"a mode":                         {"chmod +x f", other},
		"a mode of a folder":             {"chmod 700 d", other},
		"a new file deep":                {"touch d/e/new", other},
		"an empty folder":                {"mkdir d/x", other},
		"a file gone":                    {"rm d/e/g", other},
		"where a link leads":             {"ln -sfn d l", other},
		"a rule":                         {"echo x >d/.gitignore", other},
		"a rule of the repository's":     {"mkdir -p .git/info; echo x >>.git/info/exclude", other},
		"a setting":                      {"git config a.b c", other},
		"the index":                      {"git rm -q --cached f", other},
		"a lock of the index":            {"touch .git/index.lock", other},
		"a branch":                       {"git branch b", other},
		"a branch in a folder":           {"git branch b/c", other},
		"a branch moved":                 {"git update-ref refs/heads/wt $(git commit-tree -m x HEAD^{tree})", other},
		"references packed":              {"git pack-refs --all", other},
		"HEAD":                           {"git switch -q --detach", other},
		"HEAD of another checkout":       {"git -C ../wt switch -q --detach", other},
		"something under way":            {"touch .git/MERGE_HEAD", other},
		"a checkout more":                {"git worktree add -q ../more", other},
		"a folder in what is ignored":    {"mkdir ign/more; echo x >ign/d/x", same},
		"what is ignored is gone":        {"rm -rf ign", other},
		"what is ignored is empty":       {"rm -rf ign/*", other},
		"a repository in it":             {"git init -q d/e/r", none},
		"a submodule's list":             {"touch .gitmodules", none},
		"a file for a repository in it":  {"echo gitdir: ../.git >d/.git", none},
		"more than is looked at":         {"touch many", none},
		"a folder that cannot be listed": {"chmod 0 d/e", none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if os.Getuid() == 0 && tc.change == "chmod 0 d/e" {
				t.Skip("root lists all folders")
			}
			top := t.TempDir()
			tree := filepath.Join(top, "tree")
			must.Do(t, os.Mkdir(tree, 0o700))
			sh := func(script string) {
				t.Helper()
				cmd := exec.Command("bash", "-ec", script)
				cmd.Dir = tree
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a",
					"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a", "HOME=/nonexistent")
				if text, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", script, err, text)
				}
			}
			look := func() *still {
				s := newStill()
				if _, err := os.Lstat(tree + "/many"); err == nil {
					s.left.Store(20)
				}
				s.open(tree+"/.git", s.takeGit)
				s.open(tree, func(f *beneath.Folder) { s.takeTree(f, []string{"ign"}) })
				return s
			}
			sh(begin)
			before := look().key("script")
			if before == "" || before == look().key("another") || before != look().key("script") {
				t.Fatalf("the state is %q", before)
			}
			sh(tc.change)
			defer sh("chmod 700 d/e || :")
			got := look().key("script")
			if is := map[bool]string{true: same, false: other}[got == before]; got == "" && tc.want != none || got != "" && is != tc.want {
				t.Errorf("the state is %q, was %q", got, before)
			}
		})
	}
}

// An answer is kept only if nothing had changed for a while when it was asked, nor since: what changes within one tick of
// the clock could not be told apart.
func TestAnAnswerOfAStateThatMovesIsNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	look := func() *still {
		s := newStill()
		s.open(dir, func(f *beneath.Folder) { s.takeTree(f, nil) })
		return s
	}
	for _, name := range []string{dir + "/f", dir + "/d/g"} {
		must.Write(t, name, "")
	}
	file := filepath.Join(t.TempDir(), "kept")
	keep(file, time.Now().Add(-time.Second), look(), "script", known{Answer: "answer"})
	if k := find(file); k.Key != "" {
		t.Errorf("kept: %+v, of before a change", k)
	}
	must.Do(t, os.Remove(dir+"/d/g"))
	removed := time.Now()
	later := removed.Add(time.Hour)
	keep(file, removed, look(), "script", known{Answer: "answer"})
	if k := find(file); k.Key != "" {
		t.Errorf("kept: %+v, with a name gone at that time", k)
	}
	unknown := look()
	unknown.fail()
	keep(file, later, unknown, "script", known{Answer: "answer"})
	if k := find(file); k.Key != "" {
		t.Errorf("kept: %+v, of no state", k)
	}
	keep(file, later, look(), "script", known{Answer: "answer"})
	if k := find(file); k.Key != look().key("script") || k.Answer != "answer" {
		t.Errorf("kept: %+v", k)
	}
}
