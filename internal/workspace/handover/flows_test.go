package handover

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// world is a project with a repository, a user who runs plain git in it, and an agent in a sandbox.
type world struct {
	*testing.T
	project string
	places  []Place
	hidden  []string
	session *Session
	tools   Tools
	mount   string // what the agent has in the project's place; empty: the project
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, project: t.TempDir()}
	for _, name := range []string{"bwrap", "bash", "git"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatal(err)
		}
	}
	bwrap, _ := exec.LookPath("bwrap")
	bash, _ := exec.LookPath("bash")
	git, _ := exec.LookPath("git")
	w.tools = Tools{Bwrap: bwrap, Bash: bash, Git: git, Path: strings.Split(os.Getenv("PATH"), ":")}
	w.user(`git init -q -b main . && echo a >a && git add a && git commit -qm one`)
	w.places = []Place{{
		Outer: w.project + "/.git", Folder: filepath.Join(t.TempDir(), "place"), Own: true,
		Trees: []Tree{{".", w.project}},
	}}
	return w
}

var persons = []string{
	"LC_ALL=C", "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true",
	"GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e@e", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e@e",
}

// user runs a script in the project on the host.
func (w *world) user(script string) string {
	w.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir, cmd.Env = w.project, append([]string{"PATH=" + os.Getenv("PATH")}, persons...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("user: %s: %v\n%s", script, err, text)
	}
	return strings.TrimSpace(string(text))
}

// agent runs a script in the project, in a sandbox with the inner folders.
func (w *world) agent(script string) string {
	w.Helper()
	args := []string{"--unshare-all", "--die-with-parent"}
	for _, dir := range append([]string{"/nix/store"}, system...) {
		args = append(args, "--ro-bind-try", dir, dir)
	}
	args = append(args, "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", cmp.Or(w.mount, w.project), w.project)
	for _, p := range w.places {
		for _, dir := range p.Borrows() {
			args = append(args, "--ro-bind", dir, dir)
		}
		objects := p.Objects()
		args = append(args, "--bind", p.Inner(), p.Outer, "--ro-bind", objects.Source, objects.Destination)
	}
	args = append(args, "--chdir", w.project, "--", "bash", "-ec", script)
	cmd := exec.Command(w.tools.Bwrap, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, persons...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("agent: %s: %v\n%s", script, err, text)
	}
	return strings.TrimSpace(string(text))
}

func (w *world) begin() {
	w.Helper()
	var err error
	if w.session, err = Begin(Request{Places: w.places, Tools: w.tools, Hidden: w.hidden, Given: []string{w.project}}); err != nil {
		w.Fatal(err)
	}
}

// sync hands over as the session does while it runs.
func (w *world) sync() {
	w.Helper()
	for _, l := range w.session.places {
		if err := l.sync(l.facts()); err != nil {
			w.Errorf("hand over: %v", err)
		}
	}
}

func (w *world) end() (told []string) {
	w.Helper()
	for _, t := range w.session.End(true) {
		told = append(told, t.line(""))
	}
	return told
}

// look shows all that both sides should have in common.
const look = `git symbolic-ref -q HEAD || git rev-parse HEAD; git for-each-ref --format='%(objectname) %(refname)' | grep -v -e /stash$ -e remotes/user/ || :
git ls-files -s; git stash list --format=%H; git status --porcelain`

func (w *world) same(told []string) {
	w.Helper()
	outside, inside := w.user(look), w.agent(look)
	if outside != inside {
		w.Errorf("outside:\n%s\ninside:\n%s\ntold: %q", outside, inside, told)
	}
	if text := w.user("git fsck --strict --no-dangling 2>&1"); text != "" {
		w.Errorf("git fsck: %s", text)
	}
}

// Each is done in one session: by the agent or by the user. Then both sides must be the same, and what the user sees.
func TestWhatOneSideDoesTheOtherHas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, agent, user, then, want string // then is the user's, after the session; it must print want
	}{
		"commit":            {agent: "echo b >b; git add b; git commit -qm two", then: "git log --format=%s", want: "two\none"},
		"amend":             {agent: "git commit -q --amend -m uno", then: "git log --format=%s", want: "uno"},
		"reset --hard":      {before: "git commit -q --allow-empty -m two", agent: "git reset -q --hard HEAD~", then: "git log --format=%s; git reset -q --hard 'HEAD@{1}'; git log --format=%s", want: "one\ntwo\none"},
		"switch":            {before: "git branch other", agent: "git switch -q other", then: "git branch --show-current; git switch -q -; git branch --show-current", want: "other\nmain"},
		"new branch":        {agent: "git switch -qc topic; echo b >b; git add b; git commit -qm two", then: "git log --format=%s topic", want: "two\none"},
		"detached":          {agent: "git checkout -q --detach; git commit -q --allow-empty -m two", then: "git log --format=%s", want: "two\none"},
		"branch for a/b":    {before: "git branch a", agent: "git branch -q -D a; git branch a/b", then: "git branch --list 'a*'", want: "a/b"},
		"rename":            {agent: "git branch -m trunk", then: "git branch --show-current", want: "trunk"},
		"tags":              {agent: "git tag light; git tag -a -m full full", then: "git tag", want: "full\nlight"},
		"notes":             {agent: "git notes add -m said", then: "git notes show", want: "said"},
		"staged":            {agent: "echo b >b; git add b; chmod +x a; git add a", then: "git status --porcelain", want: "M  a\nA  b"},
		"rm --cached":       {agent: "git rm -q --cached a", then: "git status --porcelain", want: "D  a\n?? a"},
		"stash":             {agent: "echo b >a; git stash push -q -m x; echo c >a; git stash push -q -m y", then: "git stash list", want: "stash@{0}: On main: y\nstash@{1}: On main: x"},
		"stash pop":         {before: "echo b >a; git stash push -q; echo c >a; git stash push -q", agent: "git stash pop -q", then: "git stash list | wc -l; git status --porcelain", want: "1\n M a"},
		"merge":             {before: "git switch -qc o; echo b >b; git add b; git commit -qm o; git switch -q main; git commit -q --allow-empty -m m", agent: "git merge -q --no-edit o", then: "git log -1 --format=%s", want: "Merge branch 'o'"},
		"rebase":            {before: "git switch -qc o; echo b >b; git add b; git commit -qm o; git switch -q main; git commit -q --allow-empty -m m; git switch -q o", agent: "git rebase -q main", then: "git log --format=%s", want: "o\nm\none"},
		"remote":            {agent: "git remote add up https://git.example/x.git", then: "git remote get-url up", want: "https://git.example/x.git"},
		"config":            {agent: "git config core.fsmonitor 'touch /tmp/x; false'; git config alias.x '!touch PWNED'", then: "git config core.fsmonitor || echo none", want: "none"},
		"user commits":      {user: "echo b >b; git add b; git commit -qm two", then: "git log --format=%s", want: "two\none"},
		"user switches":     {user: "git switch -qc topic", then: "git branch --show-current", want: "topic"},
		"user stages":       {user: "echo b >b; git add b", then: "git status --porcelain", want: "A  b"},
		"user removes":      {before: "git branch gone", user: "git branch -q -D gone", then: "git branch", want: "* main"},
		"user resets":       {before: "echo b >a; git add a", user: "git reset -q", then: "git status --porcelain", want: "M a"},
		"user stashes":      {user: "echo b >a; git stash push -q", then: "git stash list | wc -l", want: "1"},
		"odd names":         {agent: "git branch 'fix/#1'; git branch größe; echo x >'a b'; echo x >$'n\\xff'; git add .; git commit -qm two", then: "git branch --list | wc -l; git ls-files | wc -l", want: "3\n3"},
		"conflict":          {before: "git switch -qc o; echo b >a; git commit -qam o; git switch -q main; echo c >a; git commit -qam m", agent: "git merge -q o || :", then: "git status --porcelain; echo d >a; git commit -qam merged; git log -1 --format=%P | wc -w", want: "UU a\n2"},
		"merge outside":     {before: "git switch -qc o; echo b >a; git commit -qam o; git switch -q main; echo c >a; git commit -qam m; git merge -q o || :", agent: "echo d >a; git commit -qam merged", then: "git log -1 --format=%P | wc -w; git status --porcelain", want: "2"},
		"rebase outside":    {before: "git switch -qc o; echo b >a; git commit -qam o; git switch -q main; echo c >a; git commit -qam m; git rebase -q o || :", agent: "echo d >a; git add a; git rebase --continue", then: "git log --format=%s; git status --porcelain", want: "m\no\none"},
		"worktree":          {agent: "git worktree add -q -b w wt; cd wt; echo b >b; git add b; git commit -qm two; echo c >c; git add c", then: "cd wt; git log --format=%s; git status --porcelain; git branch --show-current", want: "two\none\nA  c\nw"},
		"worktree detached": {agent: "git worktree add -q --detach wt; cd wt; git commit -q --allow-empty -m two", then: "cd wt; git log --format=%s; git status --porcelain", want: "two\none"},
		"worktree removed":  {agent: "git worktree add -q -b w wt; git worktree remove wt", then: "git worktree list | wc -l; git branch --list w", want: "1\n  w"},
		"submodule":         {agent: "git init -q -b main /tmp/lib; cd /tmp/lib; git commit -q --allow-empty -m l; cd - >/dev/null; git -c protocol.file.allow=always submodule --quiet add /tmp/lib sm; git commit -qm two; cd sm; git commit -q --allow-empty -m inner; cd ..; git commit -qam three", then: "git log --format=%s; git status --porcelain; git submodule status | cut -c1,43-44; git -C sm log --format=%s", want: "three\ntwo\none\n sm\ninner\nl"},
		"objects elsewhere": {before: "cd ..; git clone -q --bare 001 borrowed; cd -; rm -rf .git; git clone -q --shared --no-checkout ../borrowed x; mv x/.git .; rmdir x; git reset -q", agent: "echo b >b; git add b; git commit -qm two", then: "git log --format=%s", want: "two\none"},
		"bisect outside":    {before: "git bisect start", agent: "echo b >b; git add b; git commit -qm two", then: "git log --format=%s; git status --porcelain; git bisect log | wc -l", want: "two\none\n2"},
		"user in a bisect":  {before: "git bisect start", user: "echo b >b; git add b; git commit -qm two", then: "git log --format=%s; git status --porcelain", want: "two\none"},
		"agent in a bisect": {agent: "git bisect start; echo b >b; git add b; git commit -qm two", then: "git log --format=%s; git status --porcelain", want: "two\none"},
		"user bisects":      {user: "git bisect start; echo b >b; git add b; git commit -qm two", then: "git log --format=%s; git status --porcelain; git bisect log | wc -l", want: "two\none\n2"},
		"bisect ended":      {before: "git bisect start", agent: "git commit -q --allow-empty -m two; git bisect reset", then: "git log --format=%s; git bisect log 2>/dev/null || echo none", want: "two\none\nnone"},
		"nothing committed": {before: "rm -rf .git; git init -q -b main", agent: "git add a; git commit -qm first", then: "git log --format=%s", want: "first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.before != "" {
				w.user(c.before)
			}
			w.begin()
			if c.user != "" {
				w.user(c.user)
			}
			if c.agent != "" {
				w.agent(c.agent)
			}
			w.sync()
			told := w.end()
			if name != "submodule" { // the next session has a place for it
				w.same(told)
			}
			if got := w.user(c.then); got != c.want {
				t.Errorf("the user sees\n%s\nwant\n%s\ntold: %q", got, c.want, told)
			}
			if _, err := os.Lstat(w.project + "/PWNED"); err == nil {
				t.Error("a program of the agent's ran")
			}
		})
	}
}

// picks of the two commits of picked: stopped does so at the second one, atOnce at the first.
const (
	picked  = "git switch -qc o; echo b >b; git add b; git commit -qm b; echo o >a; git commit -qam o; git switch -q main; echo m >a; git commit -qam m"
	stopped = "git cherry-pick main..o >/dev/null 2>&1 || :"
	atOnce  = "git cherry-pick o o~1 >/dev/null 2>&1 || :"
)

// A pick of several commits stops: what it has committed comes with the index that goes with it, or not at all. The
// other side's next commit would take it back.
func TestACommitBesideAnUnfinishedPickTakesNothingBack(t *testing.T) {
	const takenBack = "git log --all --diff-filter=D --format=%s"
	for name, c := range map[string]struct{ user, agent, goOn, users, want string }{
		"the agent's": {agent: stopped, goOn: "echo d >a; git add a; git -c core.editor=true cherry-pick --continue", users: "git status --porcelain -uno; echo u >u; git add u; git commit -qm u", want: "a b u"},
		"the user's":  {user: atOnce, goOn: "git log -1 --format=%s", users: "echo d >a; git add a; git -c core.editor=true cherry-pick --continue >/dev/null", want: "a b z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.user(picked)
			w.begin()
			w.user(cmp.Or(c.user, ":"))
			w.agent(cmp.Or(c.agent, "echo z >z; git add z; git commit -qm z"))
			w.sync()
			if got := w.user(c.users); c.user == "" && got != "M a" {
				t.Errorf("the user's index has %q", got)
			}
			w.agent(c.goOn)
			w.sync()
			told := w.end()
			if got := w.user(takenBack); got != "" {
				t.Errorf("taken back: %s; told %q", got, told)
			}
			if got := w.user("git log --branches --format= --name-only | sort -u | tr '\\n' ' '"); got != c.want {
				t.Errorf("committed are %q, want %q; told %q", got, c.want, told)
			}
		})
	}
}

// What both sides did at once: nothing is lost, yours stays, and a line says so.
func TestBothSidesCommitAtOnceAndNothingIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	w.agent("echo b >b; git add b; git commit -qm theirs")
	w.user("echo c >c; git add c; git commit -qm yours")
	w.sync()
	if got := w.user("git log --format=%s main; git log --format=%s claudebox/main"); got != "yours\none\ntheirs\none" {
		t.Errorf("outside: %s", got)
	}
	if got := w.agent("git log --format=%s user/main; git log -1 --format=%s"); got != "yours\none\ntheirs" {
		t.Errorf("inside: %s", got)
	}
	w.agent("git reset -q --soft user/main; git commit -qm theirs")
	told := w.end()
	w.same(told)
	if got := w.user("git log --format=%s; git status --porcelain"); got != "theirs\nyours\none" {
		t.Errorf("after the agent's rebase, outside: %s; told %q", got, told)
	}
}

// The agent may do anything to its own folder. The user's git then runs nothing of it, is whole, and the next session
// begins.
func TestWhatTheAgentPlantsInItsGitFolderDoesNotCross(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]string{
		"a gitlink whose repository has a program":       `git init -q sub; git -C sub commit -q --allow-empty -m x; git -C sub config core.fsmonitor "touch $PWD/PWNED; false"; git add sub; git commit -qm sub`,
		"a gitlink in a middle commit":                   `git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub; git commit -qm sub; git rm -q --cached sub; git commit -qm gone`,
		"hooks and settings":                             `echo "touch $PWD/PWNED" >.git/hooks/post-checkout; chmod +x .git/hooks/*; git config core.pager "touch $PWD/PWNED"; git config core.hooksPath "$PWD"; echo '* filter=x' >.git/info/attributes; git config filter.x.clean "touch $PWD/PWNED"`,
		"logs/HEAD as a link to a file of the user's":    `rm .git/logs/HEAD 2>/dev/null || :; mkdir -p .git/logs; ln -s "$PWD/a" .git/logs/HEAD`,
		"HEAD as a pipe":                                 `rm .git/HEAD; mkfifo .git/HEAD`,
		"an index as a pipe":                             `rm .git/index; mkfifo .git/index`,
		"names to ignore as a pipe":                      `rm -f .git/info/exclude; mkfifo .git/info/exclude`,
		"a pipe that is included":                        `mkfifo .git/pipe; git config include.path pipe`,
		"a pipe in place of an object":                   `h=$(git commit-tree -m x HEAD^{tree}); git update-ref refs/heads/x $h; f=.git/objects/${h:0:2}/${h:2}; rm -f $f; mkfifo $f`,
		"a pipe in a folder called .git":                 `mkdir .git/.git; mkfifo .git/.git/pipe; git config include.path .git/pipe`,
		"HEAD that names no branch":                      `echo 'ref: refs/../../x' >.git/HEAD`,
		"everything is gone":                             `rm -rf .git/* || :`,
		"an index that is garbage":                       `echo DIRC >.git/index`,
		"an index with odd paths":                        `printf '100644 %s 0\t%s\0' $(git hash-object -w a) .git/config $(git hash-object -w a) ../x | git update-index -z --index-info || :`,
		"objects that are wrong":                         `o=$(git hash-object -w --stdin <<<x); git update-index --add --cacheinfo 100644,$o,x; git commit -qm x; f=.git/objects/${o:0:2}/${o:2}; chmod u+w $f; echo garbage >$f`,
		"a tree with .git in it":                         `o=$(git hash-object -w a); t=$(printf "100644 blob $o\t.git\n" | git mktree --missing); git update-ref refs/heads/evil $(git commit-tree -m x $t)`,
		"a branch that is a blob":                        `git update-ref --no-deref refs/tags/blob $(git hash-object -w a); echo $(git hash-object -w a) >.git/refs/heads/blob`,
		"replaced commits":                               `git commit -q --allow-empty -m two; git replace HEAD HEAD~`,
		"names of branches that a prompt would evaluate": `git update-ref 'refs/heads/$(touch${IFS}PWNED)' HEAD; git symbolic-ref HEAD 'refs/heads/$(touch${IFS}PWNED)'`,
		"a remote that is a program":                     `git remote add x 'ext::sh -c "touch PWNED"'; git config branch.main.remote x; git config branch.main.merge refs/heads/main`,
		"alternates":                                     `echo /nowhere/objects >>.git/objects/info/alternates`,
		"a lie in shallow":                               `git commit -q --allow-empty -m two; git rev-parse HEAD >.git/shallow`,
		"a commit-graph and a split index":               `git commit -q --allow-empty -m two; git commit-graph write --reachable; git update-index --split-index`,
		"merge state with a program":                     `mkdir .git/rebase-merge; echo '$(touch PWNED)' >.git/rebase-merge/msgnum; echo 'exec touch PWNED' >.git/rebase-merge/git-rebase-todo`,
		"many branches":                                  `for i in {1..300}; do echo "create refs/heads/b$i $(git rev-parse HEAD)"; done | git update-ref --stdin`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			before := w.user("cat .git/config; find .git/hooks | sort")
			w.begin()
			w.agent(plant)
			for _, l := range w.session.places {
				if err := l.sync(l.facts()); err != nil && strings.Contains(err.Error(), "did not answer") { // else refused
					t.Error(err)
				}
			}
			const everyday = `git status >/dev/null; git log --oneline -3 >/dev/null; git diff >/dev/null; git stash list; git branch >/dev/null; git fetch -q 2>&1 || :
git fsck --strict --no-dangling 2>&1; [ ! -e PWNED ]; [ "$(cat a)" = a ]; cat .git/config; find .git/hooks | sort`
			if after := w.user(everyday); after != before {
				t.Errorf("the user's git folder was\n%s\nand is\n%s", before, after)
			}
			_ = w.session.End(false)
			if after := w.user(everyday); after != before {
				t.Errorf("at the end, the user's git folder was\n%s\nand is\n%s", before, after)
			}
			w.begin()
			w.agent("git status >/dev/null; git commit -q --allow-empty -m after")
			w.end()
		})
	}
}

// A file that is hidden from the agent does not become tracked by what the agent stages or commits.
func TestAnEntryForAHiddenFileDoesNotCross(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hidden = []string{w.project + "/.env"}
	w.begin()
	w.agent("echo >.env; git add -f .env; echo b >b; git add b; git commit -qm two")
	told := w.end()
	if got := w.user("git ls-files; git log -1 --format=%s"); got != "a\nb\ntwo" {
		t.Errorf("%s; told %q", got, told)
	}
}

// While the session runs a commit comes across by itself, both ways.
func TestCommitsCrossWhileTheSessionRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	w.session.Follow()
	w.agent("echo b >b; git add b; git commit -qm theirs; for i in {1..300}; do [ \"$(git log -1 --format=%s)\" = theirs ] && exit; sleep 0.1; done; exit 1")
	w.user("for i in {1..300}; do [ \"$(git log -1 --format=%s)\" = theirs ] && break; sleep 0.1; done; [ \"$(git log -1 --format=%s)\" = theirs ]; [ -z \"$(git status --porcelain)\" ]; git commit -q --allow-empty -m yours")
	w.agent("for i in {1..300}; do [ \"$(git log -1 --format=%s)\" = yours ] && exit; sleep 0.1; done; exit 1")
	w.same(w.end())
}

// While the session runs nothing leads the user's git to a repository that the agent made. At its end, when that was
// judged, it crosses.
func TestARepositoryThatTheAgentMadeWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	w.agent("git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub")
	w.sync()
	if got := w.user("git ls-files"); got != "a" {
		t.Errorf("when it is staged the user has %q", got)
	}
	w.agent("git branch before; git commit -qm sub; git tag t")
	w.sync()
	if got := w.user("git ls-files; git log --format=%s --all"); got != "a\none" {
		t.Errorf("while it runs the user has %q", got)
	}
	w.end()
	if got := w.user("git ls-files; git log --format=%s main; git tag"); got != "a\nsub\nsub\none\nt" {
		t.Errorf("at the end the user has %q", got)
	}
}

// What brings a submodule to where tools fill a folder crosses once that is taken out of the commits, or was fetched
// outside.
func TestASubmoduleWhereToolsFillCrossesOnceItIsTakenOut(t *testing.T) {
	t.Parallel()
	const link = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),node_modules/x; git commit -qm sub"
	for name, do := range map[string]func(w *world){
		"taken out": func(w *world) {
			w.agent("git rm -q --cached node_modules/x; git commit -q --amend --allow-empty -m sub")
		},
		"outside": func(w *world) { w.agent("git reset -q --hard HEAD~"); w.sync(); w.user(link) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.begin()
			w.agent(link)
			w.sync()
			if got := w.user("git log --format=%s"); got != "one" {
				t.Errorf("the user has %q", got)
			}
			do(w)
			told := w.end()
			if got := w.user("git log --format=%s") + "\n" + w.agent("git log --format=%s"); got != "sub\none\nsub\none" || len(told) > 0 {
				t.Errorf("both have %q; told %q", got, told)
			}
		})
	}
}

func TestWhichNamesCross(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"refs/heads/main": true, "refs/heads/fix/#12": true, "refs/heads/größe": true, "refs/tags/v1.0+x": true, "refs/remotes/o/x": true,
		"refs/heads/$(touch${IFS}x)": false, "refs/heads/`x`": false, "refs/heads/a b": false, "refs/heads/%F{red}": false, "refs/heads/-rf": false,
		"refs/heads/a/-x": false, "refs/heads/.x": false, "refs/heads/a..b": false, "refs/heads/x.lock": false, "refs/heads/HEAD": false,
		"refs/heads/\x1b[2J": false, "refs/replace/x": false, "refs/bisect/bad": false, "refs/remotes/user/main": false, "HEAD": false, "refs/heads/": false,
		"refs/heads/a\nb": false, "refs/heads/\u202ex": false,
	} {
		if crosses(name) != want {
			t.Errorf("%q crosses: %t", name, !want)
		}
	}
}

func TestANameThatDoesNotCrossIsToldWhy(t *testing.T) {
	t.Parallel()
	for branch, want := range map[string]string{
		"a..b": "range", "": "empty", "a//b": "empty", "-x": "begins", "x.lock": "ends", "a b": `" "`, "$(x)": `"$"`, "c0ffee": "commit", "main": "",
	} {
		if why := Flaw(branch); !strings.Contains(why, want) || (why == "") != (want == "") {
			t.Errorf("%q: %q, want %q", branch, why, want)
		}
	}
}

// The agent makes names that git takes for those of the user's, in full or for short, or says of those that they are
// ambiguous: then `git log main` shows the agent's, and a script that asks for a name gets none.
func TestTheAgentMakesANameThatGitTakesForTheUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("git tag v1; git update-ref refs/remotes/origin/main HEAD; git branch up")
	w.begin()
	w.agent(`git commit -qm evil --allow-empty; git branch fine; for name in heads/heads/main heads/refs/heads/main tags/main tags/heads/main tags/refs/heads/main \
		remotes/main/HEAD remotes/up/HEAD heads/v1 heads/tags/v1 heads/origin/main tags/origin/main heads/remotes/origin/main; do git update-ref refs/$name HEAD; done`)
	told := strings.Join(w.end(), "\n")
	for _, name := range []string{"refs/heads/main", "heads/main", "main", "v1", "tags/v1", "refs/tags/v1", "origin/main", "remotes/origin/main", "up", "fine"} {
		if got := w.user("git rev-parse --symbolic-full-name " + name + " 2>&1"); !strings.HasPrefix(got, "refs/") || strings.Contains(got, "ambiguous") {
			t.Errorf("%s is %q", name, got)
		}
	}
	if !strings.Contains(told, "git would take it for") {
		t.Errorf("told %q", told)
	}
}

// `git add -N` makes a file known to git; a commit has nothing of it. The other side's had an empty file.
func TestAnIntentionToAddIsNoEmptyFileOfTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("echo v >v; git add -N v") // before the session
	w.begin()
	w.agent("mkdir d; echo x >d/x; : >empty; git add -N d; git add empty")
	w.sync()
	if got := w.user("echo u >u; git add u; git commit -qm u; git show --format= --name-only HEAD; git status --porcelain"); got != "empty\nu\n A v\n?? d/" {
		t.Errorf("the user commits\n%s", got)
	}
	w.sync()
	w.user("echo w >w; git add -N w; git rm -q --cached a; git add -N a")
	w.sync()
	if got := w.agent("git commit -q --amend -m all; git show --format= --name-only HEAD; git status --porcelain"); got != "empty\nu\n A d/x\n A v\n?? w" {
		t.Errorf("the agent commits\n%s", got)
	}
	w.agent("git add w")
	w.user("git add d/x; git restore --staged a")
	w.sync()
	w.user("git add v")
	w.sync()
	w.same(w.end())
	if got := w.user("git status --porcelain"); got != "A  d/x\nA  v\nA  w" {
		t.Errorf("the user has\n%s", got)
	}
}

// What the user takes away again does not come back from inside, in that session or a later one.
func TestARemoteThatTheUserTakesAwayStaysAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	w.agent("git remote add up https://git.example/x.git; git config branch.main.remote up; git config branch.main.merge refs/heads/main")
	w.end()
	w.user("git remote get-url up")
	w.begin()
	w.user("git remote remove up")
	w.end()
	for range 2 {
		if got := w.user("git remote; git config branch.main.remote || :"); got != "" {
			t.Errorf("the user has %q", got)
		}
		w.begin()
		if got := w.agent("git remote"); got != "" {
			t.Errorf("the agent has %q", got)
		}
		w.agent("echo x >>a; git commit -qam more")
		w.end()
	}
	w.begin()
	w.agent("git remote add up https://git.example/y.git")
	w.end()
	if got := w.user("git remote get-url up"); got != "https://git.example/y.git" {
		t.Errorf("another one of that name is %q", got)
	}
}

// The user's next `git pull` on a branch of theirs merges what the agent's remote has, and `git push` goes there.
func TestTheAgentHasABranchOfTheUsersFollowItsRemote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("git branch other; git branch own; git remote add up https://git.example/x.git; git config branch.own.remote up; git config branch.own.merge refs/heads/own")
	w.begin()
	w.agent("git remote add evil https://evil.example/x.git; for b in main other own; do git config branch.$b.remote evil; git config branch.$b.merge refs/heads/x; done")
	if told, want := strings.Join(w.end(), "\n"), "evil.example/x.git; `git pull` and `git push` use it on main, other"; !strings.Contains(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if got := w.user("git config branch.own.remote"); got != "up" {
		t.Errorf("a branch that followed another one follows %q", got)
	}
}

func TestAFullDiskHasARemedy(t *testing.T) {
	t.Parallel()
	s := side{place: Place{Outer: "/work/it", Folder: "/home/f"}}
	err := s.fault(os.ErrInvalid, []byte("error: unable to write file x: No space left on device\nfatal: failed to write object"))
	if !strings.Contains(err.Error(), "free some space: `df -h --output=avail,iavail,target '/work/it' '/home/f'`") {
		t.Error(err)
	}
}

// What the agent does to its own git folder takes nothing of the user's away.
func TestAnAgentThatLosesItsGitFolderTakesNothingAway(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{
		"made anew":                  "rm -rf .git/*; git init -q -b main; git add a; git commit -qm anew",
		"made anew, without commits": "rm -rf .git/*; git init -q -b main",
		"its references are gone":    "rm -rf .git/refs .git/packed-refs; mkdir .git/refs",
		"they are a link":            "rm -rf .git/refs; ln -s /tmp .git/refs",
		"its index is gone":          "rm -f .git/index",
		"its objects are a file":     "rm -rf .git/objects; touch .git/objects",
		"a link on the way to them":  "rm -rf .git/objects/info; ln -s /nowhere .git/objects/info",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.user("git branch keep; git tag t; echo b >a; git stash push -q; echo c >c; git add c")
			const all = "git for-each-ref; git stash list; git ls-files -s; git log --oneline --all"
			before := w.user(all)
			for range 2 {
				w.begin()
				w.agent(agent)
				_ = w.session.places[0].sync(w.session.places[0].facts())
				told := w.session.End(true)
				if after := w.user(all); after != before {
					t.Errorf("the user had\n%s\nand has\n%s\ntold %v", before, after, told)
				}
			}
			w.begin() // and the agent has a whole one again
			w.agent("git status >/dev/null; git log --oneline keep >/dev/null")
			w.end()
		})
	}
}

// What the agent removes is named, with the way back.
func TestABranchThatIsRemovedInsideIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("git switch -qc gone; git commit -q --allow-empty -m two; git switch -q main; echo b >a; git stash push -q -m mine")
	id := w.user("git rev-parse gone")
	w.begin()
	w.agent("git branch -q -D gone; git stash drop -q")
	told := strings.Join(w.end(), "\n")
	if !strings.Contains(told, "removed inside; it was "+id) || !strings.Contains(told, "dropped inside; it was ") {
		t.Errorf("told %q", told)
	}
}

// A checkout that the user has made since the agent got its git folder.
func TestACheckoutThatCameLaterIsHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	w.end()
	w.user("git worktree add -q -b side side")
	w.places[0].Trees = []Tree{{"worktrees/side", w.project + "/side"}}
	w.begin()
	w.agent("cd side; git status --porcelain; echo b >b; git add b; git commit -qm two")
	told := w.end()
	if got := w.user("git -C side log --format=%s; git -C side status --porcelain"); got != "two\none" {
		t.Errorf("the user has %q, told %q", got, told)
	}
}

// What the user's git folder has as a link, or includes, enters once: without its secrets, and the file outside stays.
func TestASecretInAnOddPlaceDoesNotEnter(t *testing.T) {
	t.Parallel()
	const header = "[http]\n\textraHeader = Authorization: Basic aGVsbG86d29ybGQ=\n"
	for name, script := range map[string]string{
		"an include in info":        `git config include.path info/own; printf '%s' "$H" >.git/info/own; ln .git/info/own kept`,
		"a configuration by a link": `printf '%s' "$H" >kept; ln -s "$PWD/kept" .git/config.worktree`,
		"one of a linked worktree":  `printf '%s' "$H" >kept; git worktree add -q w; ln -s "$PWD/kept" .git/worktrees/w/config.worktree`,
		"HEAD is a link":            `printf '%s' "$H" >kept; git config core.preferSymlinkRefs true; git symbolic-ref HEAD refs/heads/main`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.user("H='" + header + "'; " + script)
			w.begin()
			if inside := w.agent("grep -rl aGVsbG86 .git || :"); inside != "" {
				t.Errorf("it is inside, in %s", inside)
			}
			if kept := w.user("cat kept"); kept != strings.TrimSpace(header) {
				t.Errorf("the user's file holds %q", kept)
			}
			w.agent("git status")
			w.end()
		})
	}
}

func TestAProjectWithSignsOfAPatternInItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project += "/x[1]"
	must.Do(t, os.Mkdir(w.project, 0o700))
	w.user("git init -q -b main; git commit -q --allow-empty -m x; git worktree add -q w; touch .git/worktrees/file")
	w.places[0].Outer, w.places[0].Trees = w.project+"/.git", []Tree{{".", w.project}}
	w.begin()
	if list := w.agent("git worktree list"); strings.Count(list, "\n") != 1 {
		t.Errorf("inside: %s", list)
	}
	w.end()
}
