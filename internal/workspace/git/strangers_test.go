package git_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/survey"
)

// world is a project without a sandbox: what an agent could do is done by hand.
type world struct {
	*testing.T
	top string
}

func newWorld(t *testing.T) world {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("needs git on PATH")
	}
	top := must.Folder(t)
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwX", top).Run() })
	w := world{t, top}
	w.sh("mkdir p; git init -q p/old; git -C p/old commit -qm x --allow-empty; git clone -q --bare p/old p/fixture 2>&1; git clone -q --bare p/old p/lib.git 2>&1")
	return w
}

// sh runs a script beside the project; EVIL leaves a trace.
func (w world) sh(script string) string {
	w.Helper()
	cmd := exec.Command("bash", "-c", "EVIL='touch "+w.top+"/taken; false'\n"+script)
	cmd.Dir = w.top
	cmd.Env = []string{
		"HOME=" + w.top, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Logf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func (w world) isTaken() bool {
	_, err := os.Lstat(w.top + "/taken")
	return err == nil
}

func (w world) open() *beneath.Folder {
	w.Helper()
	root, err := beneath.Open(w.top + "/p")
	must.Do(w, err)
	w.Cleanup(root.Close)
	return root
}

// look sees all git places; what is closed is opened, as a session's end does.
func look(root *beneath.Folder, open bool) git.Snapshot {
	var seen *survey.Survey
	walk := func() []string {
		seen = survey.Walk(root, survey.Question{Limit: 100_000}, nil)
		return seen.Closed
	}
	if walk(); open {
		survey.OpenUntil(root, walk)
	}
	return git.Gather(root, git.Look{Git: seen.Git, Bare: seen.Bare, Relative: []string{"own/hooks"}, Judge: true})
}

// session runs a script for the agent, and mends what it left. It returns the names that git finds no more.
func (w world) session(script string) (gone []string) {
	w.Helper()
	root := w.open()
	before := look(root, false)
	w.sh("cd p\n" + script)
	_ = os.Remove(w.top + "/taken") // git inside obeys, too
	m := git.Mender{Root: root}
	after := look(root, true)
	after.Deepen(root, before)
	for _, r := range git.Strangers(git.Comparison{
		Before: before, After: after, Users: func(string) bool { return false },
		Fetches: func(at string) bool { return strings.HasPrefix(at, root.Path()+"/") },
	}) {
		if err := m.Apply(r); err != nil {
			w.Error(err)
		}
	}
	for _, c := range m.Changes {
		gone = append(gone, c.Rel)
	}
	return gone
}

// prompt is a prompt that obeys the name of a branch.
const prompt = `eval "echo $(git -C p/n branch --show-current)"`

const monitor = `git config -f $c core.fsmonitor "$EVIL"; `

// What an agent makes of repositories, and the command by which the host's git would obey.
var attacks = map[string]struct{ agent, host string }{
	"a new repository":             {`git init -q n; c=n/.git/config; ` + monitor, "git -C p/n status"},
	"what the next one will obey":  {`mkdir -p n/.git; c=n/.git/config; ` + monitor, "git init -q p/n; git -C p/n status"},
	"hooks of the next one":        {`mkdir -p n/.git/hooks n/.git/refs; printf "#!/bin/sh\n$EVIL\n" >n/.git/hooks/pre-commit; chmod +x n/.git/hooks/*`, "git init -q p/n; git -C p/n commit -m x --allow-empty"},
	"one whose HEAD is a folder":   {`mkdir -p n/.git/HEAD; c=n/.git/config; ` + monitor, "rmdir p/n/.git/HEAD; git init -q p/n; git -C p/n status"},
	"the folder of its submodules": {`git init -q --bare n/.git/modules; c=n/.git/modules/config; git config -f $c core.bare false; git config -f $c core.worktree .; ` + monitor, "git -C p/n/.git/modules status"},
	"that of worktrees":            {`git init -q --bare old/.git/worktrees; c=old/.git/worktrees/config; git config -f $c core.bare false; git config -f $c core.worktree .; ` + monitor, "git -C p/old/.git/worktrees status"},
	"an index that leads elsewhere": {`git init -q $HOME/e; c=$HOME/e/.git/config; ` + monitor + `git -C $HOME/e commit -q --allow-empty -m x; git init -q n
to=$(realpath --relative-to=n $HOME/e); z=${to//?/z}; git -C n update-index --add --cacheinfo 160000,$(git -C $HOME/e rev-parse HEAD),$z; sed -i "s|$z|$to|" n/.git/index`, "git -C p/n status"},
	"an index with a hook": {`git init -q n; cd n; h=$(printf "#!/bin/sh\n$EVIL\n" | git hash-object -w --stdin); to=.git/hooks/post-checkout; z=${to//?/z}
git update-index --add --cacheinfo 100755,$h,$z; sed -i "s|$z|$to|" .git/index`, "git -C p/n restore .; git -C p/n checkout -q -b y"},
	"a submodule where tools fill":        {`git init -q n; mkdir -p n/node_modules; git init -q n/node_modules/m; c=n/node_modules/m/.git/config; ` + monitor + `git -C n/node_modules/m commit -q --allow-empty -m x; git -C n update-index --add --cacheinfo 160000,$(git -C n/node_modules/m rev-parse HEAD),node_modules/m`, "git -C p/n status"},
	"one in another":                      {`git init -q n/m; c=n/m/.git/config; ` + monitor + `git init -q n`, "git -C p/n/m status"},
	"one in its git folder":               {`git init -q n; git init -q n/.git/modules/m; c=n/.git/modules/m/.git/config; ` + monitor, "git -C p/n/.git/modules/m status"},
	"one without .git":                    {`git init -q --bare n; c=n/config; git config -f $c core.bare false; git config -f $c core.worktree .; ` + monitor, "git -C p/n status"},
	"its git folder itself":               {`git init -q n; c=n/.git/config; git config -f $c core.worktree .; ` + monitor, "git -C p/n/.git status"},
	"one that is closed":                  {`git init -q n; c=n/.git/config; ` + monitor + "chmod 0 n/.git", "chmod 755 p/n/.git; git -C p/n status"},
	"one in a closed folder":              {`git init -q n/m; c=n/m/.git/config; ` + monitor + "chmod 0 n", "chmod 755 p/n; git -C p/n/m status"},
	"one behind a .git file":              {`git init -q --separate-git-dir e n; c=e/config; ` + monitor, "git -C p/n status"},
	"one behind a .git link":              {`git init -q e; mkdir n; ln -s ../e/.git n/.git; c=e/.git/config; ` + monitor, "git -C p/n status"},
	"a HEAD that leads to a name twice":   {`git init -q n; git -C n symbolic-ref refs/heads/x 'refs/heads/$(touch${IFS}taken)'; git -C n symbolic-ref HEAD refs/heads/x`, prompt},
	"one that is wide":                    {`git init -q n; (echo -n 'ref: refs/heads/$(touch${IFS}taken)'; head -c 9000 /dev/zero | tr '\0' ' ') >n/.git/refs/heads/x; git -C n symbolic-ref HEAD refs/heads/x`, prompt},
	"a HEAD that is a link":               {`git init -q n; rm n/.git/HEAD; ln -s refs/heads/x n/.git/HEAD; c=n/.git/config; ` + monitor, "git -C p/n status"},
	"settings of one that was there":      {`c=old/.git/config; ` + monitor, "git -C p/old status"},
	"settings of its worktree":            {`git config -f old/.git/config extensions.worktreeConfig true; c=old/.git/config.worktree; ` + monitor, "git -C p/old status"},
	"settings of a fixture":               {`c=fixture/config; git config -f $c core.bare false; git config -f $c core.worktree .; ` + monitor, "git -C p/fixture status"},
	"settings of one that ends in .git":   {`c=lib.git/config; git config -f $c core.bare false; git config -f $c core.worktree .; ` + monitor, "git -C p/lib.git status"},
	"a hook":                              {`printf "#!/bin/sh\n$EVIL\n" >old/.git/hooks/pre-commit; chmod +x old/.git/hooks/*`, "git -C p/old commit -m x --allow-empty"},
	"a filter by attributes":              {`git -C old config filter.x.clean "$EVIL"; echo '* filter=x' >old/.git/info/attributes; touch old/f`, "git -C p/old add f"},
	"another common folder":               {`cp -r old/.git e; c=e/config; ` + monitor + `echo ../../e >old/.git/commondir`, "git -C p/old status"},
	"a list of steps":                     {`mkdir old/.git/rebase-merge; cd old/.git/rebase-merge; echo "exec $EVIL" >git-rebase-todo; : >done; : >head-name; git rev-parse HEAD | tee onto orig-head >/dev/null; touch interactive`, "git -C p/old rebase --continue"},
	"hooks that the user's settings name": {`git init -q n; mkdir -p n/own/hooks; printf "#!/bin/sh\n$EVIL\n" >n/own/hooks/pre-commit; chmod +x n/own/hooks/*`, "git -C p/n -c core.hooksPath=own/hooks commit -m x --allow-empty"},
	"a folder of references as a link":    {`mkdir $HOME/elsewhere; rm -rf old/.git/refs/tags; ln -s $HOME/elsewhere old/.git/refs/tags; rm -r old/.git/logs; ln -s $HOME/elsewhere old/.git/logs`, "git -C p/old commit -qm x --allow-empty; [ -z \"$(ls elsewhere)\" ] || touch taken"},
	"one among the objects":               {`git init -q n; c=n/.git/config; ` + monitor + `mv n/.git old/.git/objects/info/; rm -r n`, "git -C p/old/.git/objects/info status"},
	"one among closed objects":            {`git init -q n; git init -q m; c=m/.git/config; git config -f $c core.worktree .; ` + monitor + `mv m/.git n/.git/objects/pack/e; chmod 0 n/.git/objects/pack`, "chmod 755 p/n/.git/objects/pack; git -C p/n/.git/objects/pack/e status"},
	"one among branches of a known name":  {`git init -q n; c=n/.git/config; ` + monitor + `mkdir -p old/.git/refs/heads/modules; mv n/.git old/.git/refs/heads/modules/; rm -r n`, "git -C p/old/.git/refs/heads/modules status"},
	"a folder of references made one":     {`git init -q n; git -C n config core.worktree .; c=n/.git/config; ` + monitor + `mv n/.git/* old/.git/refs/; rm -r n`, "git -C p/old/.git/refs status"},
	"a hook of a fixture": {`printf "#!/bin/sh
$EVIL
" >fixture/hooks/reference-transaction; chmod +x fixture/hooks/*`, "git -C p/fixture update-ref refs/heads/x HEAD"},
	"a remote beside the project":          {`git init -q n; git -C n remote add origin $PWD/../private; ln -s ../x l; git init -q m; git -C m remote add origin $PWD/l/../private`, "git init -q private; git -C private commit -qm x --allow-empty; mkdir x; for d in n m; do git -C p/$d fetch -q origin && touch taken; done"},
	"one in the place of a file":           {`git init -q n; c=n/.git/config; git config -f $c core.worktree .; ` + monitor + `rm -f old/.git/ORIG_HEAD; mv n/.git old/.git/ORIG_HEAD`, "git -C p/old/.git/ORIG_HEAD status"},
	"a repository that is moved":           {`mv old new; c=new/.git/config; ` + monitor, "git -C p/new status"},
	"a worktree of one that was there":     {`git -C old worktree add -q ../w; git -C old config extensions.worktreeConfig true; git -C w config --worktree core.fsmonitor "$EVIL"`, "git -C p/w status"},
	"a submodule of one that was there":    {`git clone -q old s; c=s/.git/config; ` + monitor + `mkdir -p old/.git/modules; mv s/.git old/.git/modules/s; echo gitdir: $PWD/old/.git/modules/s >s/.git`, "git -C p/s status"},
	"a link where git finds a submodule's": {`git init -q $HOME/e; c=$HOME/e/.git/config; ` + monitor + `mkdir old/.git/modules; ln -s $HOME/e/.git old/.git/modules/s; mkdir s; echo gitdir: $PWD/old/.git/modules/s >s/.git`, "git -C p/s status"},
}

// TestTheseAttacksAreReal keeps the table honest.
func TestTheseAttacksAreReal(t *testing.T) {
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("cd p\n" + a.agent)
			_ = os.Remove(w.top + "/taken")
			if out := w.sh(a.host); !w.isTaken() {
				t.Errorf("the attack does not work at all\n%s", out)
			}
		})
	}
}

func TestTheHostsGitObeysWhatAnAgentMade(t *testing.T) {
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			gone := w.session(a.agent)
			if out := w.sh(a.host); w.isTaken() {
				t.Errorf("it obeys\n%s", out)
			}
			if len(gone) == 0 {
				t.Error("nothing is said")
			}
			if again := w.session("true"); len(again) > 0 {
				t.Errorf("a second time: %q", again)
			}
		})
	}
}

// What git keeps may change in a repository that was there: commits, branches, what is staged.
func TestOrdinaryWorkInARepositoryThatWasThereStays(t *testing.T) {
	w := newWorld(t)
	gone := w.session(`cd old; echo a >a; git add a; git commit -qm a; git switch -qc b; git tag t; git stash -q; git reset -q --hard HEAD~1; git pull -q ../lib.git HEAD
		git gc -q; git repack -adq; git fetch -q ../fixture; git notes add -m n; git update-ref refs/x HEAD; touch .git/index.lock; cd ..; git -C lib.git fetch -q ../old; git -C fixture gc -q`)
	if len(gone) > 0 {
		t.Errorf("%q is gone", gone)
	}
}

// A clone in which git obeys nothing is left, as package managers make it.
// A repository that the user makes while a session runs stays the user's, if git runs nothing by it: clones are.
func TestTheUsersOwnClonesArePlain(t *testing.T) {
	const set = "git clone -q old n; git -C n config "
	for script, want := range map[string]bool{
		"git clone -q old n":                        true,
		"git clone -qs old n":                       true,
		"mkdir n; git clone -q --mirror old n/.git": true,
		"mkdir n; git clone -q --mirror old n/.git; git -C n/.git config core.bare false":                                   false,
		"git clone -q --no-local --filter=blob:none $PWD/old n":                                                             true,
		"git clone -q old n; git -C n symbolic-ref HEAD 'refs/heads/$(x)'":                                                  false,
		"git clone -q old n; git -C n update-index --split-index":                                                           false,
		"git clone -q old n; git -C n update-index --index-version 4":                                                       true,
		"git clone -q old n; git -C n symbolic-ref refs/heads/x refs/heads/master; git -C n symbolic-ref HEAD refs/heads/x": true,
		set + "extensions.refStorage reftable; mkdir n/.git/reftable":                                                       true,
		set + "remote.origin.mirror true":                                                                                   false,
		"git clone -qs old n; echo $PWD/seen >>n/.git/objects/info/alternates":                                              false,
		"mkdir d; cd d; git clone -q ../old ../n":                                                                           true,
		"git -c protocol.file.allow=always -C old submodule -q add $PWD/fixture s; git -C old commit -qm s; git -c protocol.file.allow=always clone -q --recursive old n": true,
		set + "remote.origin.url git@github.com:owner/name.git":                                       true,
		set + "remote.origin.url github.com:owner/name":                                               true,
		set + "remote.origin.url host:/srv/name.git":                                                  true,
		set + "remote.origin.url ssh://git@github.com/owner/name.git":                                 true,
		set + "remote.origin.url 'ext::sh -c evil'":                                                   false,
		set + "remote.origin.url evil://host/name":                                                    false,
		set + "remote.origin.url -oProxyCommand=evil:name":                                            false,
		set + "submodule.s.url 'ext::sh -c evil'":                                                     false,
		set + "submodule.s.update '!evil'":                                                            false,
		set + "core.worktree ../../old":                                                               false,
		set + "core.fsmonitor evil":                                                                   false,
		set + "branch.master.rebase true; git -C n config user.email a@x":                             true,
		"git clone -q old n; echo evil >n/.git/hooks/post-checkout":                                   false,
		set + "remote.origin.url $PWD/seen":                                                           false,
		set + "pull.rebase true; git -C n config core.autocrlf input":                                 true,
		"git clone -q --sparse old n":                                                                 true,
		"git clone -q --sparse old n; git -C n config --worktree core.fsmonitor evil":                 false,
		"git clone -q --sparse old n; git -C n config --worktree remote.origin.url https://host/fork": false,
		set + "branch.master.remote $PWD/seen":                                                        false,
		set + "branch.master.remote seen":                                                             false,
		set + "branch.master.remote .":                                                                true,
		set + "branch.master.remote https://github.com/owner/fork":                                    true,
	} {
		w := newWorld(t)
		w.sh("cd p; " + script)
		sees := func(at string) bool { return strings.HasPrefix(at, w.top+"/p/seen") }
		if got := git.IsPlain(w.open(), "n/.git", git.Users{Sees: sees}); got != want {
			t.Errorf("%s: %v", script, got)
		}
	}
}

// A worktree's HEAD leads on to references of its own, and to those of its repository.
func TestTheHeadOfAWorktreeLeadsToANameThatAPromptObeys(t *testing.T) {
	for _, script := range []string{
		`git symbolic-ref refs/heads/x "refs/heads/$X"; git symbolic-ref HEAD refs/heads/x`,
		`git symbolic-ref refs/worktree/x "refs/heads/$X"; echo ref: refs/worktree/x >../old/.git/worktrees/n/HEAD`,
	} {
		w := newWorld(t)
		w.sh("git -C p/old worktree add -q ../n")
		gone := w.session(`X='$(touch${IFS}taken)'; cd n; ` + script)
		if out := w.sh(prompt); w.isTaken() || len(gone) == 0 {
			t.Errorf("%s: %q is gone\n%s", script, gone, out)
		}
	}
}

// `git status` would ask another machine for what the agent names. In tables a name can lie that a prompt obeys.
func TestARepositoryThatCannotBeJudgedIsTakenOut(t *testing.T) {
	for name, script := range map[string]string{
		"without all objects": "git -C n config remote.o.url https://example.org; git -C n config remote.o.promisor true",
		"with tables":         "git -C n config extensions.refStorage reftable; mkdir n/.git/reftable",
	} {
		w := newWorld(t)
		if gone := w.session("git init -q n; " + script); len(gone) == 0 {
			t.Errorf("one %s stays", name)
		}
	}
}

func TestAPlainCloneStays(t *testing.T) {
	w := newWorld(t)
	gone := w.session(`git clone -q --bare old fetched.git; git clone -q old n; for g in fetched.git/config n/.git/config; do git config -f $g remote.origin.url https://example.org/x.git; done; git -C n commit -qm x --allow-empty; git -C n gc -q; cd old; git clone -q . ../of-this`)
	if len(gone) > 0 {
		t.Errorf("%q is gone", gone)
	}
}

// A repository of the agent's was taken out by its HEAD alone: the user's next `git init` there went on with its
// settings and hooks.
func TestTheNextGitInitGoesOnWithNoRepositoryThatWasTakenOut(t *testing.T) {
	w := newWorld(t)
	w.session(`git init -q n; git -C n config core.fsmonitor evil; git -C n config extensions.worktreeConfig true; git -C n config --worktree core.pager evil; mkdir -p n/.git/hooks; echo evil >n/.git/hooks/pre-commit; chmod +x n/.git/hooks/pre-commit`)
	got := w.sh("git init -q p/n; git -C p/n config --get-regexp 'fsmonitor|pager' || :; cat p/n/.git/hooks/pre-commit 2>/dev/null || :")
	if got != "" {
		t.Errorf("git obeys %s", got)
	}
}

// The way back is one name.
func TestWhatIsTakenOutComesBackByItsName(t *testing.T) {
	w := newWorld(t)
	gone := w.session(`git init -q n; git -C n commit -qm made --allow-empty; git -C n config alias.x y`)
	if strings.Join(gone, " ") != "n/.git/HEAD" {
		t.Errorf("%q", gone)
	}
	w.sh("mv p/n/.git/HEAD.claudebox-aside p/n/.git/HEAD")
	if got := w.sh("git -C p/n log --format=%s"); got != "made\n" {
		t.Error(got)
	}
}
