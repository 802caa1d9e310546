package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
)

// world is a project in a home, with the real git.
type world struct {
	t   testing.TB
	dir string
}

func newWorld(t testing.TB) world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(dir+"/p", 0o755))
	return world{t, dir}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sh is what the agent does, and what the user does afterwards: in the
// project, by a shell. EVIL is a command that leaves a trace.
func (w world) sh(script string) (string, error) {
	w.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		w.t.Skip("NOT RUN: needs git on PATH")
	}
	cmd := exec.Command("sh", "-c", "EVIL='touch "+w.dir+"/taken; false'\n"+script)
	cmd.Dir = w.dir + "/p"
	cmd.Env = []string{
		"HOME=" + w.dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
		"GIT_CONFIG_KEY_1=init.defaultBranch", "GIT_CONFIG_VALUE_1=main",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w world) taken() bool {
	_, err := os.Lstat(w.dir + "/taken")
	return err == nil
}

// look gathers places; before is what was there then.
func (w world) look(before *git.Snapshot, places ...string) git.Snapshot {
	w.t.Helper()
	root, err := beneath.Open(w.dir + "/p")
	must(w.t, err)
	defer root.Close()
	look := git.Look{Before: before}
	for _, rel := range places {
		if filepath.Base(rel) == ".git" {
			look.Git = append(look.Git, rel)
		} else {
			look.Bare = append(look.Bare, rel)
		}
	}
	seen, err := git.Gather(root, look)
	must(w.t, err)
	return seen
}

// defuse makes places harmless that were made since.
func (w world) defuse(before git.Snapshot, places ...string) []git.Change {
	w.t.Helper()
	root, err := beneath.Open(w.dir + "/p")
	must(w.t, err)
	defer root.Close()
	m := git.Mender{Root: root}
	repairs, _ := git.Review(git.Judgement{
		Root: w.dir + "/p", Before: before, After: w.look(&before, places...),
		Elsewhere: func(at string) bool { return filepath.Clean(strings.TrimSuffix(at, "/.git")) == w.dir+"/l" },
	})
	for _, r := range repairs {
		must(w.t, m.Apply(r))
	}
	return m.Changes
}

var none git.Snapshot

// attacks are what an agent leaves, and the host's git command that would obey
// it. Each works when nothing is taken out: the test sees to it.
var attacks = map[string]struct {
	agent  string
	user   string
	places []string // ".git" if empty
}{
	"a file system monitor":     {agent: `git config core.fsmonitor "$EVIL"`, user: "git status"},
	"a name that ends at a NUL": {agent: `printf '[core "fsmonitor\0"]\n\tbare = "%s"\n' "$EVIL" >>.git/config`, user: "git status"},
	"a remote whose name is an option": {
		agent: `git init -q ../l; git remote add origin "$PWD"; printf '#!/bin/sh\n%s\n' "$EVIL" >e; chmod +x e; printf '[remote "--upload-pack=./e"]\n\turl = https://example.org/x\n' >>.git/config`,
		user:  "git fetch --all",
	},
	"a pager of another form":   {agent: `git config alias.st "!$EVIL"`, user: "git st"},
	"an include":                {agent: `git config -f x core.fsmonitor "$EVIL"; git config include.path ../x`, user: "git status"},
	"a hook":                    {agent: `printf "#!/bin/sh\n$EVIL\n" >.git/hooks/pre-commit; chmod +x .git/hooks/*`, user: "git commit --allow-empty -m x"},
	"a folder of hooks":         {agent: `mkdir h; printf "#!/bin/sh\n$EVIL\n" >h/pre-commit; chmod +x h/*; git config core.hooksPath h`, user: "git commit --allow-empty -m x"},
	"a link for hooks":          {agent: `mkdir h; printf "#!/bin/sh\n$EVIL\n" >h/pre-commit; chmod +x h/*; rm -r .git/hooks; ln -s ../h .git/hooks`, user: "git commit --allow-empty -m x"},
	"configuration by worktree": {agent: `git config extensions.worktreeConfig true; git config --worktree core.fsmonitor "$EVIL"`, user: "git status"},
	"a commondir":               {agent: `git init -q e; git -C e config core.fsmonitor "$EVIL"; echo ../e/.git >.git/commondir`, user: "git status", places: []string{".git", "e/.git"}},
	"a filter":                  {agent: `git config filter.x.clean "$EVIL"; echo "* filter=x" >.gitattributes; echo x >f`, user: "git add f"},
	"a remote helper":           {agent: `git config remote.o.url "ext::sh -c touch% ` + "$EVILFILE" + `"; git config protocol.ext.allow always`, user: "git fetch o"},
	"a link for .git":           {agent: `git config core.fsmonitor "$EVIL"; mv .git g; ln -s g .git`, user: "git status"},
	"a .git file":               {agent: `git config core.fsmonitor "$EVIL"; mv .git g; echo "gitdir: g" >.git`, user: "git status"},
	"a .git file out of here":   {agent: `git config core.fsmonitor "$EVIL"; mv .git ../g; echo "gitdir: ../g" >.git`, user: "git status"},
	"a .git file that ends behind what we read": {agent: `git config core.fsmonitor "$EVIL"; mv .git ../g; { printf "gitdir: ../g"; head -c 300000 /dev/zero | tr "\0" "\n"; } >.git`, user: "git status"},
	"a .git file that ends before what we read": {agent: `git config core.fsmonitor "$EVIL"; mv .git ../g; printf "gitdir: ../g\0/../../p/known/.git" >.git`, user: "git status"},
	"a .git file that climbs out of a link": {
		agent: `git config core.fsmonitor "$EVIL"; mkdir -p ../g/d known s; mv .git ../g; ln -s ../../g/d known/l; echo "gitdir: ../known/l/../.git" >s/.git`,
		user:  "git -C s status", places: []string{"s/.git"},
	},
	"a working tree behind a link": {
		agent: `ln -s .. l; echo x >taken; git add taken; rm taken; git config core.worktree ../l`, user: "git checkout -f -- :/",
	},
	"a working tree above a link": {
		agent: `mkdir ../d; ln -s ../d l; echo x >taken; git add taken; rm taken; git config core.worktree ../l/..`, user: "git checkout -f -- :/",
	},
	"a configuration that links": {agent: `git config core.fsmonitor "$EVIL"; mv .git/config c; ln -s ../c .git/config`, user: "git status"},
	"a submodule": {
		agent: `git init -q s; git -C s commit -qm x --allow-empty; git add s; git -C s config core.fsmonitor "$EVIL"`,
		user:  "git status", places: []string{"s/.git"},
	},
	"a submodule's git folder": {
		agent: `git init -q ../l; git -C ../l commit -qm x --allow-empty; git submodule -q add ../l s; git config -f .git/modules/s/config core.fsmonitor "$EVIL"`,
		user:  "git status",
	},
	"a link for a submodule's git folder": {
		agent: `git init -q s; git -C s commit -qm x --allow-empty; git -C s config core.fsmonitor "$EVIL"; git add s; mkdir -p .git/modules; mv s/.git e; ln -s ../../e .git/modules/s; echo "gitdir: ../.git/modules/s" >s/.git`,
		user:  "git status", places: []string{".git", "s/.git", "e"},
	},
	"a submodule with a slash": {
		agent: `git init -q ../l; git -C ../l commit -qm x --allow-empty; git submodule -q add ../l a/b; git config -f .git/modules/a/b/config core.fsmonitor "$EVIL"`,
		user:  "git status",
	},
	"a linked worktree's own configuration": {
		agent: `git commit -qm x --allow-empty; git worktree add -q w; git config extensions.worktreeConfig true; git -C w config --worktree core.fsmonitor "$EVIL"`,
		user:  "git -C w status",
	},
	"a worktree's commondir": {
		agent: `git commit -qm x --allow-empty; git worktree add -q w; git init -q e; git -C e config core.fsmonitor "$EVIL"; echo ../../../e/.git >.git/worktrees/w/commondir`,
		user:  "git -C w status", places: []string{".git", "e/.git"},
	},
	"a folder that is a repository itself": {
		agent: `git init -q --bare b; git -C b config core.fsmonitor "$EVIL"; git -C b config core.bare false; git -C b config core.worktree .`,
		user:  "git -C b status", places: []string{"b"},
	},
	"a folder that is a repository by commondir": {
		agent: `git init -q e; git -C e config alias.st "!$EVIL"; mkdir b; echo ref: refs/heads/x >b/HEAD; echo ../e/.git >b/commondir`,
		user:  "git -C b st", places: []string{"b", "e/.git"},
	},
	"a left-over rebase": {
		agent: `for n in 1 2; do git commit -qm $n --allow-empty; done; GIT_SEQUENCE_EDITOR="printf 'break\nexec $EVIL\n' >" git rebase -qi HEAD~1`,
		user:  "git rebase --continue",
	},
	"a left-over rebase with a strategy": {
		agent: `for n in 1 2; do echo $n >f; git add f; git commit -qm $n; done; git branch o HEAD~1; git checkout -q o; echo z >g; git add g; git commit -qm g
			mkdir git-merge-x; printf "#!/bin/sh\n$EVIL\n" >evil; chmod +x evil
			GIT_SEQUENCE_EDITOR="sed -i '1i break'" git rebase -qi -s ort main; echo x/../../evil >.git/rebase-merge/strategy; mkdir -p git-merge-x; cp evil git-merge-x/evil; echo x/evil >.git/rebase-merge/strategy`,
		user: "git rebase --continue",
	},
}

func TestTheHostsGitObeysWhatAnAgentMade(t *testing.T) {
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := strings.ReplaceAll("git init -q\n"+a.agent, "$EVILFILE", "TAKEN")
			places := a.places
			if places == nil {
				places = []string{".git"}
			}
			open, closed := newWorld(t), newWorld(t)
			for _, w := range []world{open, closed} {
				if out, err := w.sh(strings.ReplaceAll(agent, "TAKEN", w.dir+"/taken")); err != nil {
					t.Logf("the agent: %v\n%s", err, out)
				}
				os.Remove(w.dir + "/taken") // the agent's own git obeys too
			}
			out, _ := open.sh(a.user)
			if !open.taken() {
				t.Fatalf("the attack does not work at all\n%s", out)
			}
			changes := closed.defuse(none, places...)
			out, _ = closed.sh(a.user)
			if closed.taken() {
				t.Errorf("the host obeys\n%s\n%+v", out, changes)
			}
			if len(changes) == 0 {
				t.Error("nothing is said")
			}
			if again := closed.defuse(none, places...); len(again) > 0 {
				t.Errorf("a second look changes %+v", again)
			}
		})
	}
}

// ordinary are repositories that stay as they are, and work.
var ordinary = map[string]string{
	"a new one":                          "git init -q; git commit -qm x --allow-empty",
	"one with another hash":              "git init -q --object-format=sha256; git commit -qm x --allow-empty",
	"one with a remote":                  "git init -q; git remote add origin https://example.org/x.git; git commit -qm x --allow-empty; git config branch.main.remote origin",
	"a clone":                            "git init -q ../l; git -C ../l commit -qm x --allow-empty; git clone -q ../l .",
	"one with a worktree":                "git init -q; git commit -qm x --allow-empty; git worktree add -q w; git -C w commit -qm y --allow-empty",
	"one with a submodule":               "git init -q ../l; git -C ../l commit -qm x --allow-empty; git init -q; git submodule -q add ../l a/s; git commit -qm s",
	"one with sparse checkout":           "git init -q; mkdir d; touch d/x; git add .; git commit -qm x; git sparse-checkout set d",
	"one amid a rebase":                  "git init -q; for n in 1 2 3; do echo $n >f; git add f; git commit -qm $n; done; git checkout -q HEAD~1; echo z >f; git commit -qam z; git rebase main || true",
	"one with a branch that has a slash": "git init -q; git commit -qm x --allow-empty; git switch -qc feature/x/y; git commit -qm y --allow-empty",
	"one with tags and notes":            "git init -q; git commit -qm x --allow-empty; git tag v1; git tag -am x v2; git notes add -m n",
	"one that was packed":                "git init -q; for n in 1 2 3; do git commit -qm $n --allow-empty; done; git gc -q; git repack -adq; git multi-pack-index write; git commit-graph write --reachable",
	"one amid a merge":                   "git init -q; echo 1 >f; git add f; git commit -qm 1; git switch -qc o; echo 2 >f; git commit -qam 2; git switch -q main; echo 3 >f; git commit -qam 3; git merge o || true",
	"one amid a revert":                  "git init -q; for n in 1 2 3; do echo $n >f; git add f; git commit -qm $n; done; git revert HEAD~1 || true",
	"one amid an interactive rebase":     "git init -q; for n in 1 2 3; do git commit -qm $n --allow-empty; done; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -qi HEAD~2",
	"one amid a rebase that applies":     "git init -q; for n in 1 2 3; do echo $n >f; git add f; git commit -qm $n; done; git checkout -q HEAD~1; echo z >f; git commit -qam z; git rebase --apply main || true",
	"one amid an am":                     "git init -q; for n in 1 2; do echo $n >f; git add f; git commit -qm $n; done; git format-patch -q -1 --stdout >../patch; git reset -q --hard HEAD~1; echo z >f; git commit -qam z; git am ../patch || true",
	"one amid a bisect":                  "git init -q; for n in 1 2 3 4 5; do git commit -qm $n --allow-empty; done; git bisect start -q HEAD HEAD~4",
	"one amid a bisect with terms":       "git init -q; for n in 1 2 3 4 5; do git commit -qm $n --allow-empty; done; git bisect start --term-old=fast --term-new=slow; git bisect slow HEAD; git bisect fast HEAD~4",
	"one with a stash":                   "git init -q; echo 1 >f; git add f; git commit -qm 1; echo 2 >f; git stash -q",
	"a shallow clone":                    "git init -q ../l; for n in 1 2 3; do git -C ../l commit -qm $n --allow-empty; done; git clone -q --depth 1 file://$(realpath ../l) .",
	"a clone that was fetched into":      "git init -q ../l; git -C ../l commit -qm x --allow-empty; git clone -q ../l .; git -C ../l commit -qm y --allow-empty; git fetch -q; git merge -q --ff-only",
	"one with a remote by ssh":           "git init -q; git remote add origin git@github.com:a/b.git; git commit -qm x --allow-empty",
	"one with two worktrees":             "git init -q; git commit -qm x --allow-empty; git worktree add -q w; git worktree lock w; git worktree prune",
	"one with exclusions":                "git init -q; echo '*.o' >.git/info/exclude; git commit -qm x --allow-empty",
	"one with a replaced commit":         "git init -q; for n in 1 2; do git commit -qm $n --allow-empty; done; git replace HEAD HEAD~1",
	"one with an orphaned branch":        "git init -q; git commit -qm x --allow-empty; git switch -q --orphan o",
	"one with a squashed merge":          "git init -q; git commit -qm x --allow-empty; git switch -qc o; touch f; git add f; git commit -qm f; git switch -q main; git merge -q --squash o",
	"one with a commit amended":          "git init -q; git commit -qm x --allow-empty; git commit -q --amend -m y --allow-empty; git reflog >/dev/null",
	"one amid a cherry-pick":             "git init -q; for n in 1 2 3; do echo $n >f; git add f; git commit -qm $n; done; git checkout -q HEAD~2; git cherry-pick main~1 main || true",
}

func TestAnOrdinaryRepositoryStaysAsItIs(t *testing.T) {
	for name, script := range ordinary {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if out, err := w.sh("set -e\n" + script); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			before, _ := w.sh("git status; git log --oneline --all; git config --list; find . -type f -not -name 'commit-graph' -not -name 'multi-pack-index' | sort")
			if changes := w.defuse(none, ".git", "w/.git", "a/s/.git"); len(changes) > 0 {
				t.Errorf("changed: %+v", changes)
			}
			after, err := w.sh("git status; git log --oneline --all; git config --list; find . -type f -not -name 'commit-graph' -not -name 'multi-pack-index' | sort")
			if before != after || err != nil {
				t.Errorf("before:\n%s\nafter: %v\n%s", before, err, after)
			}
			if name == "one with a replaced commit" {
				return // fsck wants the original
			}
			if out, err := w.sh("git fsck"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestWhatIsTakenOutIsKept(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh(`git init -q; git config core.fsmonitor "$EVIL"; git config user.name me; printf x >.git/hooks/pre-push`)
	must(t, err)
	changes := w.defuse(none, ".git")
	var places []string
	for _, c := range changes {
		places = append(places, c.Rel)
	}
	if want := []string{".git/config", ".git/hooks/pre-push"}; !slices.Equal(places, want) {
		t.Errorf("got %+v", changes)
	}
	for _, file := range []string{"claudebox-aside/config", "claudebox-aside/hooks-pre-push"} {
		if _, err := os.Stat(w.dir + "/p/.git/" + file); err != nil {
			t.Error(err)
		}
	}
	if out, _ := w.sh("git config user.name"); out != "me\n" {
		t.Errorf("the harmless rest is gone: %q", out)
	}
}

func TestTheUsersOwnRepositoryIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh(`git init -q known; git -C known config core.fsmonitor mine; git -C known commit -qm x --allow-empty; git -C known worktree add -q ../w`)
	must(t, err)
	if changes := w.defuse(w.look(nil, "known/.git", "w/.git"), "known/.git", "w/.git"); len(changes) > 0 {
		t.Errorf("changed: %+v", changes)
	}
}

// hindrances are what an agent does so that a repository cannot be made
// harmless.
var hindrances = map[string]struct{ agent, user string }{
	"a read-only folder":          {`echo "gitdir: ../g" >.git.new; mv .git ../g; mv .git.new .git; git config core.fsmonitor "$EVIL"; chmod 555 .`, "git status"},
	"read-only folders":           {`git config core.fsmonitor "$EVIL"; chmod 555 .git .git/hooks .`, "git status"},
	"a read-only list of steps":   {`for n in 1 2; do git commit -qm $n --allow-empty; done; GIT_SEQUENCE_EDITOR="printf 'break\nexec $EVIL\n' >" git rebase -qi HEAD~1; chmod 555 .git/rebase-merge .git`, "chmod 755 .git .git/rebase-merge; git rebase --continue"},
	"more hooks than are counted": {`printf "#!/bin/sh\n$EVIL\n" >.git/hooks/pre-commit; chmod +x .git/hooks/*; cd .git/hooks; seq 100001 | xargs touch`, "git commit --allow-empty -m x"},
	"submodules too deep": {
		`d=.git/modules/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a; mkdir -p $d s; git init -q --bare $d/x; git -C $d/x config core.fsmonitor "$EVIL"; git -C $d/x config core.bare false; git -C $d/x config core.worktree $PWD/s; echo "gitdir: ../$d/x" >s/.git`,
		"git -C s status",
	},
}

func TestAnAgentHinders(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root is stopped by no mode: run by checks/as-user")
	}
	for name, a := range hindrances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if out, err := w.sh("git init -q\n" + a.agent); err != nil {
				t.Logf("the agent: %v\n%s", err, out)
			}
			defer exec.Command("chmod", "-R", "u+rwX", w.dir+"/p").Run()
			w.sh(a.user)
			if !w.taken() {
				t.Fatal("the attack does not work at all")
			}
			os.Remove(w.dir + "/taken")
			w.defuse(none, ".git")
			if out, _ := w.sh(a.user); w.taken() {
				t.Errorf("the host obeys\n%s", out)
			}
		})
	}
}

func TestAFolderThatWasClosedIsOpened(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh(`git init -q; git config core.fsmonitor "$EVIL"; chmod 0 .git/config .git/hooks; chmod 0 .git`)
	must(t, err)
	w.defuse(none, ".git")
	if _, err := w.sh("chmod -R u+rwX .git; git status"); err != nil || w.taken() {
		t.Errorf("taken %v, %v", w.taken(), err)
	}
}
