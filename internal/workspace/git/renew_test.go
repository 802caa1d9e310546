package git_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
)

// renew ends a session in which an index may have changed.
func (w world) renew(before git.Snapshot, staged git.KnownEntries, places ...string) error {
	w.t.Helper()
	w.defuse(before, places...)
	root, err := beneath.Open(w.dir + "/p")
	must(w.t, err)
	defer root.Close()
	m := git.Mender{Root: root}
	return m.Renew(w.look(&before, places...), staged, func(string) bool { return false })
}

// forge is a program of the agent's: it writes one text for another in the index, and drops the cache of trees if told.
const forge = `forge() { python3 - "$@" <<'X'
import sys, hashlib
index = open(".git/index", "rb").read()[:-20]
index = index.replace(bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2]))
if sys.argv[3:] and b"TREE" in index:
    index = index[:index.index(b"TREE")]
open(".git/index", "wb").write(index + hashlib.sha1(index).digest())
X
}
`

// hooked is a repository whose hooks are tracked, with files that are older than its index.
const hooked = `git init -q; git config core.hooksPath hooks; mkdir hooks; printf '#!/bin/sh\n' >hooks/post-checkout; chmod +x hooks/post-checkout
echo fine >a; touch -d '1 hour ago' a hooks/*; git add .; git commit -qm x; git branch old`

func TestAForgedIndexSaysNothingByItself(t *testing.T) {
	for name, tc := range map[string]struct{ agent, user, want string }{
		"another tree in the cache of trees": {
			`t=$(printf "100755 blob $(printf "#!/bin/sh\n$EVIL" | git hash-object -w --stdin)\tpost-checkout\n" | git mktree)
			forge $(git rev-parse HEAD:hooks) $t`,
			`echo b >>a; git commit -qam "the user's"; git show --format= --name-only; git switch -q old; git switch -q main`, "a\n",
		},
		"another file with the times of the new one": {
			`old=$(git rev-parse :a); echo OWNED >a; touch -d '1 hour ago' a; git add a; forge $(git rev-parse :a) $old tree`,
			`git status --porcelain`, " M a\n",
		},
		"another content in the index and in HEAD, while the file stays": {
			`forge $(git rev-parse :hooks/post-checkout) $(printf "#!/bin/sh\n$EVIL" | git hash-object -w --stdin) tree
			git update-ref refs/heads/main $(git commit-tree -p HEAD -m x $(git write-tree))`,
			`git status --porcelain; git switch -q old 2>/dev/null; git switch -q main`, " M hooks/post-checkout\n",
		},
	} {
		for _, renewed := range []bool{false, true} {
			w := newWorld(t)
			_, err := w.sh(hooked)
			must(t, err)
			before := w.look(nil, ".git")
			staged := before.ReadIndexes(t.Context())
			if out, err := w.sh(forge + tc.agent + "\ngit status --porcelain"); err != nil || out != "" {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
			if renewed {
				must(t, w.renew(before, staged, ".git"))
			}
			out, _ := w.sh(tc.user)
			if good := out == tc.want && !w.taken(); good != renewed {
				t.Errorf("%s: renewed %t, taken %t, %q; want %q", name, renewed, w.taken(), out, tc.want)
			}
		}
	}
}

// Whatever an index holds, git does with it what it did before: only that it looks at more files. A copy of the
// project, whose index is left, shows what git does.
func TestARenewedIndexIsTheSameToGit(t *testing.T) {
	many := `seq 21000 | sed "s,.*,100644 $(git rev-parse :a)	d/&," | git update-index --index-info; git ls-files d | git update-index --skip-worktree --stdin`
	conflict := `git checkout -q -b o; echo y >a; git commit -qam y; git checkout -q main; echo z >a; git commit -qam z; git merge -q o; `
	for name, tc := range map[string]struct{ before, agent string }{
		"nothing but entries": {``, `echo y >b; git add b; git rm -q --cached c`},
		"version 4":           {`git update-index --index-version 4`, `echo y >b; git add b; echo z >c`},
		"intent to add":       {``, `echo y >n; git add -N n; echo y >b; git add b`},
		"hushed files":        {``, `git update-index --skip-worktree b; git update-index --assume-unchanged c; echo n >b; echo n >c`},
		"a conflict":          {``, conflict + `true`},
		"a conflict ended":    {``, conflict + `git add a`},
		"a submodule":         {`git init -q sub; git -C sub commit -qm x --allow-empty; git add sub 2>&1`, `git -C sub commit -qm y --allow-empty; echo y >b; git add b`},
		"links":               {``, `ln -s b l; git add l; chmod +x c`},
		"an untracked cache":  {`git update-index --force-untracked-cache; git status`, `mkdir u; echo x >u/x; git status; echo y >b; git add b`},
		"a split one":         {`git update-index --split-index`, `echo y >b; git add b; echo n >n; git add n; git rm -q c`},
		"a sparse one":        {`git sparse-checkout set --cone --sparse-index s`, `echo y >s/b; git add s/b`},
		"no sum at its end":   {`git config index.skipHash true`, `echo y >b; git add b`},
		"blocks":              {`git config index.threads 2; ` + many, `echo y >b; git add b; echo y >c`},
		"nothing":             {``, `git rm -rqf .`},
		"SHA-256":             {`rm -rf .git; git init -q --object-format=sha256; git add .; git commit -qm x`, `echo y >b; git add b`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			out, err := w.sh("git init -q; mkdir s t; for f in a b c s/a t/a; do echo $f >$f; done; git add .; git commit -qm x\n" + tc.before)
			if err != nil {
				t.Fatal(out)
			}
			before := w.look(nil, ".git")
			staged := before.ReadIndexes(t.Context())
			if out, err := w.sh(tc.agent); err != nil {
				t.Fatal(out)
			}
			was, err := os.ReadFile(w.dir + "/p/.git/index")
			must(t, err)
			_, err = w.sh("cp -a . ../copy")
			must(t, err)
			must(t, w.renew(before, staged, ".git"))
			if now, err := os.ReadFile(w.dir + "/p/.git/index"); err != nil || string(now) == string(was) {
				t.Fatal("it was not renewed")
			}
			const user = `git ls-files -stv; git ls-files --resolve-undo; git status --porcelain=v2 -b; git diff; git diff --cached; GIT_INDEX_FILE=$PWD/.git/index git write-tree
				git stash -q && git stash pop -q; git status --porcelain=v2; git checkout -q -m a; git ls-files -s; git commit -qam z; git status --porcelain=v2; git rev-parse HEAD:; git fsck --no-dangling 2>&1`
			const dated = "export GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000'; "
			got, _ := w.sh(dated + user)
			want, _ := w.sh("cd ../copy; " + dated + user)
			want = strings.ReplaceAll(want, "warning: untracked cache is disabled on this system or location\n", "")
			if got = strings.ReplaceAll(got, "/p/", "/copy/"); got != want || strings.Contains(got, "fatal: index") {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// What git noted of a file before the session stays, so that it need not read all files anew.
func TestARenewedIndexKeepsWhatStoodThere(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh(hooked)
	must(t, err)
	before := w.look(nil, ".git")
	staged := before.ReadIndexes(t.Context())
	_, err = w.sh("echo new >a; git add a")
	must(t, err)
	must(t, w.renew(before, staged, ".git"))
	out, err := w.sh("git ls-files --debug | grep -c 'mtime: 0:0'; git diff-files --name-only; git update-index --refresh; git status --porcelain")
	if want := "1\na\nM  a\n"; err != nil || out != want {
		t.Errorf("%v: %q; want %q", err, out, want)
	}
}

// A file that was written as late as the index is one that git reads: an index of a later time would not tell it to.
func TestAFileAsNewAsItsIndexIsReadAnew(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh(`git init -q; echo one >a; git add a; git commit -qm x; touch -d '1 hour ago' .git/index`)
	must(t, err)
	before := w.look(nil, ".git")
	staged := before.ReadIndexes(t.Context())
	_, err = w.sh("echo b >b; git update-index --add b")
	must(t, err)
	must(t, w.renew(before, staged, ".git"))
	if out, _ := w.sh("git ls-files --debug | grep -c 'mtime: 0:0'"); out != "2\n" {
		t.Errorf("%s entries are read anew", out)
	}
}

// An agent is as quick as the look at what was there before.
func TestAnIndexThatChangedMeanwhileIsNotKnown(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh(hooked)
	must(t, err)
	before := w.look(nil, ".git")
	_, err = w.sh("touch -d now a; git update-index --refresh")
	must(t, err)
	if staged := before.ReadIndexes(t.Context()); len(staged) != 0 {
		t.Errorf("%d entries are known", len(staged))
	}
}

func TestALockedIndexIsLeft(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh(`git init -q; echo one >a; git add a; touch .git/index.lock`)
	must(t, err)
	before := w.look(nil, ".git")
	_, err = w.sh("rm .git/index; cp .git/HEAD /dev/null; GIT_INDEX_FILE=$PWD/i git add a; mv i .git/index")
	must(t, err)
	if w.renew(before, nil, ".git") == nil {
		t.Error("it is renewed")
	}
	if _, err := os.Lstat(w.dir + "/p/.git/index.lock"); err != nil {
		t.Error("the lock is gone")
	}
}

// Nobody waits at the end of a session, but not for long.
func TestALargeIndexIsRenewedAtOnce(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh(`git init -q; b=$(echo x | git hash-object -w --stdin); seq 50000 | sed "s,.*,100644 $b	d/&/a-file-with-a-name," | git update-index --index-info`)
	must(t, err)
	before := w.look(nil, ".git")
	begun := time.Now()
	staged := before.ReadIndexes(t.Context())
	read := time.Since(begun)
	_, err = w.sh("git rm -q --cached d/1/a-file-with-a-name")
	must(t, err)
	root, err := beneath.Open(w.dir + "/p")
	must(t, err)
	defer root.Close()
	after := w.look(&before, ".git")
	begun = time.Now()
	must(t, (&git.Mender{Root: root}).Renew(after, staged, func(string) bool { return false }))
	t.Logf("read in %v, renewed in %v", read, time.Since(begun))
	if took := time.Since(begun); took > time.Second {
		t.Errorf("it took %v", took)
	}
}
