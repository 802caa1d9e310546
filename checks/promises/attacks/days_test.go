//go:build lab

package attacks_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/trial"
)

// day is an ordinary one: what the user has, what the agent does, and what must
// be there afterwards. Nothing may be moved aside, and at most one line be said,
// unless the way back stands beside it.
type day struct {
	user  string   // in the project, which is a repository with one commit
	agent string   // inside
	after string   // on the host, in the project
	git   string   // part of a line on what waits in the agent's git folder
	says  []string // patterns of the lines of the report; none: nothing is said
	back  bool     // something is taken out, and the command in the report puts it back
	flags []string
	in    string // where claudebox is started, below the project
}

// checkout is the line for a repository that was made inside.
const checkout = `new +%s .*(checkout|repository) that was made inside`

func made(dir string) []string { return []string{strings.Replace(checkout, "%s", dir, 1)} }

// three are commits that change one file, with a branch that is in their way.
const three = `for n in 1 2 3; do echo $n >f; git add f; git commit -qm $n; done; git branch other HEAD~2; `

// checkouts makes the project a bare repository, with checkouts in it.
const checkouts = `cd ..; git clone -q --bare project b; rm -rf project; mv b project; cd project; git worktree add -q main; git worktree add -q dev -b dev; git worktree add -q trees/x -b x
	echo DB_PASSWORD=hunter2xyz9 >dev/.env; cp dev/.env trees/x; echo .env >info/exclude; `

// conflict ends in what it is told to begin.
func conflict(begin string) string {
	return three + `git switch -q other; echo z >f; git commit -qam z; ` + begin + ` && exit 1; true`
}

var days = map[string]day{
	"a branch with commits": {agent: `git switch -qc f/x; echo y >>README; git commit -qam y; git commit -q --amend -m z`, after: `test "$(git log -1 --format=%s f/x)" = z`},
	"a rebase that stopped": {agent: conflict("git rebase main"), after: `test ! -e .git/rebase-merge`, git: "a rebase is under way inside"},
	"an interactive rebase": {agent: three + `GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -qi HEAD~2`, after: `test ! -e .git/rebase-merge`, git: "a rebase is under way inside"},
	"a rebase that is done": {agent: three + `git commit -q --fixup HEAD~1 --allow-empty; GIT_SEQUENCE_EDITOR=true git rebase -qi --autosquash HEAD~3`, after: `git log --oneline`},
	"a merge that stopped":  {agent: conflict("git merge main"), after: `git merge --abort`, git: "a merge is under way since this session"},
	"a cherry-pick that stopped": {
		agent: conflict("git cherry-pick main~1 main"), after: `git status`, git: "a cherry-pick or revert of several commits is under way inside",
	},
	"a revert that stopped": {agent: three + `git revert HEAD~1 && exit 1; true`, after: `git revert --abort`, git: "a revert is under way since this session"},
	"an am that stopped": {
		agent: three + `git format-patch -q -1 --stdout >/tmp/p; git switch -q other; echo z >f; git commit -qam z; git am /tmp/p && exit 1; true`,
		after: `test ! -e .git/rebase-apply`, git: "a rebase or `git am` is under way inside",
	},
	"a bisection":       {agent: three + `git bisect start HEAD HEAD~2`, after: `test ! -e .git/BISECT_LOG`, git: "a bisection is under way inside"},
	"a bisection begun": {agent: three + `git bisect start`, after: `git log -1 --format=%s | grep 3 && test ! -e .git/BISECT_LOG && test -z "$(git status --porcelain)"`},
	"a stash":           {agent: `echo y >>README; git stash -q`, after: `git stash pop && grep y README`},
	"tags and notes":    {agent: `git tag v1; git tag -am x v2; git notes add -m n`, after: `git notes show HEAD && git cat-file -e v2`},
	"gc and repack":     {agent: three + `git gc -q; git repack -adq; git commit-graph write --reachable; git multi-pack-index write`, after: `git fsck`},
	"a detached HEAD":   {agent: three + `git checkout -q HEAD~1`, after: `test -z "$(git branch --show-current)"`},
	"an orphan branch":  {agent: `git switch -q --orphan pages; echo x >index.html; git add .; git commit -qm p; git switch -q main`, after: `git cat-file -e pages:index.html`},
	"a hard reset":      {agent: three + `git reset -q --hard HEAD~2; git reflog >/dev/null`, after: `git reset -q --hard HEAD@{1} && git log --oneline`},
	"a patch":           {agent: three + `git diff HEAD~1 >/tmp/p; git apply -R --index /tmp/p; git commit -qm back`, after: `test "$(git log -1 --format=%s)" = back`},
	"a worktree below the project": {
		agent: `git worktree add -q .worktrees/x -b x; cd .worktrees/x; echo y >y; git add y; git commit -qm y`,
		after: `git -C .worktrees/x status --short && git worktree list | grep -c x && git worktree remove .worktrees/x`, says: made(".worktrees/x"),
	},
	"a worktree that is removed again": {agent: `git worktree add -q w; git worktree remove w; git worktree prune`, after: `test -z "$(git status --short)"`},
	"a submodule that is worked in": {
		user:  `git init -q ../lib; git -C ../lib commit -qm x --allow-empty; git -c protocol.file.allow=always submodule -q add ../lib s; git commit -qm s`,
		agent: `cd s; git switch -qc work; echo y >y; git add y; git commit -qm y; cd ..; git add s; git commit -qm s2`,
		after: `git submodule status | grep -v '^[-+]' && git -C s log -1 --format=%s work | grep y`,
	},
	"a submodule that is switched": {
		user: `git init -q ../lib; git -C ../lib commit -qm x --allow-empty; git -C ../lib commit -qm y --allow-empty; git -c protocol.file.allow=always submodule -q add ../lib s; git commit -qm s
			git -C s checkout -q HEAD~1; git commit -qam older`,
		agent: `git checkout -q HEAD~1; git submodule update -q; git switch -q main; git submodule update -q`,
		after: `git submodule status | grep -v '^[-+]'`,
	},
	"a clone of what is in the project": {
		user:  `git clone -q --bare . b.git; echo b.git >.gitignore`,
		agent: `git clone -q b.git c; cd c; git switch -qc w; echo y >y; git add y; git commit -qm y; git push -q origin w`,
		after: `git -C b.git log -1 --format=%s w | grep y && git -C c fetch -q && git -C c status --short`, says: made("c"),
	},
	"a fetch and a pull": {
		user:  `git clone -q --bare . b.git; git remote add origin $PWD/b.git; git fetch -q; git branch -q -u origin/main; git clone -q b.git ../o; cd ../o; git commit -qm y --allow-empty; git push -q`,
		agent: `git fetch -q; git pull -q --ff-only`, after: `test "$(git log -1 --format=%s)" = y`,
	},
	"a new sub-project":               {agent: `git init -q sub; cd sub; echo y >y; git add y; git commit -qm y`, after: `git -C sub log -1 --format=%s | grep y`, says: made("sub")},
	"a sub-project with its own hook": {agent: `git init -q sub; printf '#!/bin/sh\necho hook\n' >sub/.git/hooks/pre-commit; chmod +x sub/.git/hooks/pre-commit`, after: `! git -C sub commit -m x --allow-empty 2>&1 | grep hook`, says: made("sub"), git: "inside only: hooks/pre-commit"},
	"a sub-project with an alias": {
		agent: `git init -q sub; git -C sub config alias.up 'pull --rebase'; git -C sub config user.name me`, after: `! git -C sub config alias.up`,
		says: made("sub"), git: "inside only: alias.up, user.name",
	},
	"husky in a sub-project": {
		agent: `git init -q sub; mkdir -p sub/.husky/_; git -C sub config core.hooksPath .husky/_; echo 'npm test' >sub/.husky/pre-commit`, after: `! git -C sub config core.hooksPath`,
		says: made("sub"), git: "inside only: core.hookspath",
	},
	"a sub-project with a remote": {agent: `git init -q sub; cd sub; git remote add origin git@github.com:a/b.git; git commit -qm x --allow-empty; git config branch.main.remote origin; git config branch.main.merge refs/heads/main`, after: `git -C sub remote get-url origin | grep github`, says: made("sub")},
	// Who removes one in the very moment in which it is held back is told that a folder is not empty, and removes it again.
	"repositories of a test": {agent: `mkdir t; for n in 1 2 3; do git init -q t/$n; git init -q --bare t/$n.git; done; sleep 0.2; rm -rf t`, after: `test ! -e t`},
	"npm, of a folder": {
		user:  `mkdir -p lib app; echo '{"name":"lib","version":"1.0.0"}' >lib/package.json; echo '{"name":"app","version":"1.0.0"}' >app/package.json; git add .; git commit -qm n`,
		agent: `cd app; HOME=/tmp /opt/node /opt/npm/bin/npm-cli.js install --silent --no-audit --no-fund --offline --install-links ../lib`,
		after: `test -e app/node_modules/lib/package.json && git diff --stat | grep package.json`,
		says:  []string{`changed +app/package.json +tracked, and run when`}, flags: node,
	},
	"npm, with a checkout in it": {
		user:  `mkdir lib; cd lib; git init -q; echo '{"name":"lib","version":"1.0.0"}' >package.json; git add .; git commit -qm l; cd ..; echo '{"name":"app","version":"1.0.0"}' >package.json; printf 'lib\nnode_modules\n' >.gitignore; git add .; git commit -qm n`,
		agent: `HOME=/tmp /opt/node /opt/npm/bin/npm-cli.js install --silent --no-audit --no-fund --offline ./lib; git clone -q lib node_modules/other`,
		after: `test -L node_modules/lib && git -C node_modules/other log --oneline`,
		says:  []string{`changed +package.json +tracked`}, flags: node,
	},
	"pip, editable from git": { // as pip lays it: a clone in src of the environment
		user:  `mkdir ../up; git -C ../up init -q; git -C ../up commit -qm x --allow-empty; git clone -q --bare ../up up.git; printf 'up.git\n.venv\n' >.gitignore; git add .; git commit -qm i`,
		agent: `mkdir -p .venv/bin .venv/src; echo home = /usr >.venv/pyvenv.cfg; git clone -q --filter=blob:none file://$PWD/up.git .venv/src/up; git -C .venv/src/up checkout -q HEAD~0`,
		after: `git -C .venv/src/up status --short && git -C .venv/src/up log --oneline`,
		says:  []string{`new +.venv/bin`, `new +.venv/pyvenv.cfg`},
	},
	"cargo, from git": { // as cargo lays it: a bare repository, and a clone of it for each commit
		user: `git clone -q --bare . up.git; echo up.git >.gitignore`,
		agent: `c=~/.cargo/git; mkdir -p $c/db $c/checkouts; git init -q --bare $c/db/up-1234; git -C $c/db/up-1234 fetch -q $PWD/up.git '+refs/heads/*:refs/remotes/origin/*'
			git clone -q --no-checkout $c/db/up-1234 $c/checkouts/up-1234/abcdef0 2>/dev/null; cd $c/checkouts/up-1234/abcdef0; git fetch -q $c/db/up-1234 '+refs/remotes/origin/*:refs/remotes/origin/*'; git reset -q --hard origin/main; touch .cargo-ok`,
		after: `test -e ~/.claudebox/instances/*/home/.cargo/git/checkouts/up-1234/abcdef0/.cargo-ok -o -e ~/.cargo -o -d ~/.claudebox`,
	},
	"git-lfs": { // as git-lfs lays it: an object, and its pointer in the index
		user: `git config filter.lfs.clean 'git-lfs clean -- %f'; git config filter.lfs.smudge 'git-lfs smudge -- %f'; echo '*.bin filter=lfs diff=lfs merge=lfs -text' >.gitattributes; printf '#!/bin/sh\ntrue\n' >.git/hooks/pre-push; git add .gitattributes; git commit -qm lfs`,
		agent: `echo data >a.bin; s=$(sha256sum a.bin | cut -d' ' -f1); mkdir -p .git/lfs/objects/${s:0:2}/${s:2:2} .git/lfs/tmp; cp a.bin .git/lfs/objects/${s:0:2}/${s:2:2}/$s
			p=$(printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 5\n' $s | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$p,a.bin; git -c filter.lfs.clean=cat commit -qm bin`,
		after: `git cat-file -p HEAD:a.bin | grep oid && ls .git/lfs/objects/*/*/* && test -e .git/hooks/pre-push`,
	},
	"rerere": {
		user:  `git config rerere.enabled true; ` + three + `git switch -q other; echo z >f; git commit -qam z; git merge main || true; echo both >f; git add f; git commit -qm m; git switch -q main`,
		agent: `echo 4 >f; git commit -qam 4; git merge other || true; echo r >f; git add f; git commit -qm m2; git rerere gc`, after: `ls .git/rr-cache`,
	},
	"a sparse checkout":     {user: `mkdir a b; touch a/x b/x; git add .; git commit -qm d; git sparse-checkout set a`, agent: `echo y >a/x; git commit -qam y; git sparse-checkout reapply`, after: `test ! -e b && git sparse-checkout list | grep a`},
	"a tracked fixture":     {user: `git init -q --bare t/r.git; rm -r t/r.git/hooks; touch t/r.git/refs/heads/.keep t/r.git/objects/pack/.keep t/r.git/refs/tags/.keep t/r.git/objects/info/.keep; git add t; git commit -qm f; git commit -qm g --allow-empty; git branch old HEAD~1`, agent: `git switch -q old; git switch -q main`, after: `test -z "$(git status --short)" && git -C t/r.git rev-parse --is-bare-repository`},
	"an edit of the build":  {user: `echo all: >Makefile; echo '{}' >package.json; git add .; git commit -qm b`, agent: `echo x: >>Makefile; echo '{"scripts":{}}' >package.json; git commit -qam b2`, after: `test "$(git log -1 --format=%s)" = b2`, says: []string{`changed +Makefile, package.json +tracked, and run when`}},
	"the output of a build": {user: `printf 'target\nnode_modules\n' >.gitignore; git add .; git commit -qm i`, agent: `mkdir -p target/debug node_modules/x; touch target/debug/app node_modules/x/index.js; mkfifo /tmp/p`, after: `test -e target/debug/app`},
	"another file format":   {user: `cd ..; rm -rf project; git init -q --object-format=sha256 project; cd project; git commit -qm x --allow-empty`, agent: three + `git gc -q`, after: `git fsck`},
	"a project of files":    {user: `rm -rf .git`, agent: `mkdir src; echo x >src/main.c; ln -s main.c src/m.c; rm README`, after: `test -e src/m.c`},
	"a checkout in a bare repository": {
		user: checkouts, agent: `test -z "$(ls -A ../dev; ls -A ../trees/x)"; echo y >y; git add y; git commit -qm y; mkdir new; touch new/y`,
		after: `git -C main log -1 --format=%s | grep y && test -e main/new/y && git -C dev status --short && grep hunter dev/.env`, in: "main",
	},
	"a checkout further down in a bare repository": {
		user: checkouts, agent: `test -z "$(ls -A ../../dev)"; test ! -s .env; echo y >y; git add y; git commit -qm y; git gc -q; touch n`,
		after: `git -C trees/x log -1 --format=%s | grep y && test -e trees/x/n && git worktree list | grep dev`, in: "trees/x",
	},
	"a first repository": {user: `rm -rf .git`, agent: `git init -q; git add .; git commit -qm first; git branch -m trunk`, after: `git log -1 --format=%s | grep first`, says: []string{`new +.git +a repository that was made inside`}},
}

// node has npm's programs inside.
var node = func() []string {
	cache := filepath.Dir(filepath.Dir(os.Getenv("CLAUDEBOX_TEST_CLAUDE"))) // of the lab
	npm, _ := filepath.Glob(cache + "/npm-*/node_modules/npm")
	if len(npm) == 0 {
		return nil
	}
	real, _ := filepath.EvalSymlinks(os.Getenv("CLAUDEBOX_TEST_NODE"))
	return []string{"--mount-ro", real + ":/opt/node", "--mount-ro", npm[0] + ":/opt/npm"}
}()

func TestAnOrdinaryDay(t *testing.T) {
	for what, d := range trial.Some(3, days) {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.write(".gitconfig", "[user]\nname = a\nemail = a@x\n[init]\ndefaultBranch = main\n[core]\neditor = true\n")
			w.write("project/README", "x\n")
			w.onTheHost("cd project; git init -q; git add .; git commit -qm x\n" + d.user)
			w = w.in(filepath.Join("project", d.in))
			got := w.claudebox(slices.Concat([]string{"shell", "--yes"}, d.flags, []string{"--", "bash", "-euc", d.agent})...)
			if got.status != 0 {
				t.Fatalf("it does not work inside\n%s", got)
			}
			_, report, _ := strings.Cut(got.stderr, "was changed while the session ran:\n")
			report = regexp.MustCompile(`(?m)^claudebox: git, .*\n`).ReplaceAllString(report, "")
			if !strings.Contains(got.stderr, d.git) {
				t.Errorf("want %q\n%s", d.git, got)
			}
			w.wantLines(report, d.says)
			if strings.Contains(got.stderr, "DANGER") || strings.Contains(report, "taken out") != d.back {
				t.Errorf("something is taken out, or is not\n%s", got)
			}
			for _, back := range regexp.MustCompile("back: `(.*)`").FindAllStringSubmatch(report, -1) {
				w.onTheHost("cd project; " + back[1])
			}
			w.onTheHost("cd project; " + d.after + "; sleep 1.1") // a file system's clock may be behind by a second
			if again := w.claudebox("shell", "--yes", "--", "true"); again.status != 0 || strings.Contains(again.stderr, "while the session ran") {
				t.Errorf("the next session says something\n%s", again)
			}
		})
	}
}

// wantLines is for the lines of a report, in order.
func (w *world) wantLines(report string, patterns []string) {
	w.t.Helper()
	lines := strings.Split(strings.TrimSuffix(report, "\n"), "\n")
	if report == "" {
		lines = nil
	}
	same := len(lines) == len(patterns)
	for i := 0; same && i < len(lines); i++ {
		same = regexp.MustCompile(patterns[i]).MatchString(lines[i])
	}
	if !same {
		w.t.Errorf("the report says\n%s\nwant %q", report, patterns)
	}
}

// onTheHost runs a script that has to succeed, in the home.
func (w *world) onTheHost(script string) {
	w.t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir, cmd.Env = w.home, append(w.env, "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true")
	if status, stdout, stderr := trial.Run(w.t, cmd); status != 0 {
		w.t.Fatalf("on the host: %s\n%s%s", script, stdout, stderr)
	}
}
