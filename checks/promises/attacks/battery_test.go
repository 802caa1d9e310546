//go:build lab

package attacks_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// The battery plants what git obeys, file by file of git's table, in every kind
// of place where an agent can write, in every kind of session. Then the user's
// own git and prompt run in every folder, and nothing that was planted may run.

// site is a kind of place. Its script makes what the user has; it runs in the
// home, and the project is ~/project.
type site struct {
	user  string
	git   string   // the git folder that the agent plants in, from the project
	tree  string   // its working tree, from the project
	flags []string // of the session
	at    string   // the folder where the session is, below the home; empty: project
}

var sites = map[string]site{
	"the project":       {user: `git init -q project; cd project; git commit -qm x --allow-empty`, git: ".git", tree: "."},
	"a subfolder of it": {user: `git init -q project; mkdir project/sub; cd project; git commit -qm x --allow-empty`, git: "../.git", tree: "..", at: "project/sub"},
	"a linked worktree": {user: `git init -q main; git -C main commit -qm x --allow-empty; git -C main worktree add -q ../project`, git: "../main/.git", tree: "../main"},
	"a submodule": {
		user: `git init -q lib; git -C lib commit -qm x --allow-empty; git init -q project; git -C project -c protocol.file.allow=always submodule -q add ../lib s; git -C project commit -qm s`,
		git:  ".git/modules/s", tree: "s",
	},
	"a nested repository": {user: `git init -q project; cd project; git commit -qm x --allow-empty; git init -q n; git -C n commit -qm x --allow-empty`, git: "n/.git", tree: "n"},
	"a bare repository":   {user: `git init -q project; cd project; git commit -qm x --allow-empty; git init -q --bare b.git; git push -q b.git HEAD`, git: "b.git", tree: "b.git"},
	"a folder beside":     {user: `git init -q project; git init -q beside; cd beside; git commit -qm x --allow-empty`, git: "../beside/.git", tree: "../beside", flags: []string{"--mount-rw", "../beside"}},
	"a repository made inside": {
		user: `git init -q project; cd project; git commit -qm x --allow-empty`, git: "made/.git", tree: "made",
	},
	"the agent's own folder": {user: `git init -q project; cd project; git commit -qm x --allow-empty`, git: "$HOME/.cache/made/.git", tree: "$HOME/.cache/made"},
}

// plants are what the agent does, for each name in git's table and each way to
// lead git elsewhere. G is the git folder, W its working tree, EVIL a program
// that leaves a trace, INSTANCE the host's path of the agent's own folder.
// clean is what must hold afterwards on the host, in W with G.
var plants = map[string]struct{ plant, clean string }{
	"config":            {plant: `git config -f $G/config core.fsmonitor "$EVIL"`},
	"config, exchanged": {plant: `cp $G/config x; git config -f x core.fsmonitor "$EVIL"; mv -f x $G/config`},
	"config, by its folder": {
		plant: `mv $G g2 && cp -r g2 $G && git config -f $G/config core.fsmonitor "$EVIL"`,
	},
	"a dormant config.worktree": {plant: `git config -f $G/config.worktree core.fsmonitor "$EVIL"`, clean: `git config extensions.worktreeConfig true; git status`},
	"commondir":                 {plant: `git init -q e; git -C e config core.fsmonitor "$EVIL"; echo $PWD/e/.git >$G/commondir`},
	"hooks":                     {plant: `for h in post-index-change reference-transaction pre-push pre-auto-gc; do evil $G/hooks/$h; done`},
	"hooks, exchanged":          {plant: `mkdir h; evil h/post-index-change; evil h/reference-transaction; mv $G/hooks h3; mv h $G/hooks`},
	"hooks, a link":             {plant: `mkdir $W/h; evil $W/h/post-index-change; evil $W/h/reference-transaction; rm -r $G/hooks; ln -s $(realpath $W/h) $G/hooks`},
	"remotes":                   {plant: `evilremote; mkdir -p $G/remotes; echo "URL: $INSTANCE/evil.git" >$G/remotes/origin`, clean: `git push origin HEAD:x`},
	"branches":                  {plant: `evilremote; mkdir -p $G/branches; echo "$INSTANCE/evil.git" >$G/branches/origin`, clean: `git push origin HEAD:x`},
	"alternates":                {plant: `evilremote; mv ~/.cache/evil.git/HEAD ~/.cache/evil.git/NOHEAD; mkdir -p $G/objects/info; echo $INSTANCE/evil.git/objects >$G/objects/info/alternates`, clean: `test ! -e $G/objects/info/alternates`},
	"modules":                   {plant: `mkdir -p $G/modules $W/m; git init -q e; git -C e commit -qm x --allow-empty; git -C e config core.fsmonitor "$EVIL"; git -C e config core.worktree ../../../m; mv e/.git $G/modules/m; echo "gitdir: $PWD/$G/modules/m" >$W/m/.git`, clean: `git -C m status`},
	"worktrees": {plant: `mkdir -p $G/worktrees/e $W/e; cp $G/HEAD $G/worktrees/e/; git init -q x; git -C x config core.fsmonitor "$EVIL"; echo $PWD/x/.git >$G/worktrees/e/commondir
		echo $PWD/$W/e/.git >$G/worktrees/e/gitdir; echo "gitdir: $PWD/$G/worktrees/e" >$W/e/.git`, clean: `git -C e status`},
	"a worktree to be repaired":    {plant: `mkdir -p $G/worktrees/e; cp $G/HEAD $G/worktrees/e/; echo ../.. >$G/worktrees/e/commondir; echo $HOME/victim/.git >$G/worktrees/e/gitdir; touch $G/worktrees/e/index`, clean: `mkdir -p ~/victim; git worktree repair; test ! -e ~/victim/.git`},
	"lfs, a repository in it":      {plant: `mkdir -p $W/y; git init -q --separate-git-dir=$G/lfs/evil $W/y; git -C $W/y config core.fsmonitor "$EVIL"`, clean: `git -C y status; git -C $G/lfs/evil status`},
	"refs, a repository in it":     {plant: `git init -q --bare $G/refs/evil; git -C $G/refs/evil config core.fsmonitor "$EVIL"; git -C $G/refs/evil config core.bare false; git -C $G/refs/evil config core.worktree .`, clean: `git -C $G/refs/evil status`},
	"rebase-merge, for the prompt": {plant: `mkdir -p $G/rebase-merge; echo '$(touch TAKEN)' >$G/rebase-merge/msgnum; echo 9 >$G/rebase-merge/end; echo refs/heads/x >$G/rebase-merge/head-name`},
	"rebase-apply, for the prompt": {plant: `mkdir -p $G/rebase-apply; echo '$(touch TAKEN)' >$G/rebase-apply/next; echo 9 >$G/rebase-apply/last; touch $G/rebase-apply/applying`},
	"rebase-apply, to write":       {plant: `mkdir -p $G/rebase-apply; cd $G/rebase-apply; echo " '--build-fake-ancestor=$HOME/victim'" >apply-opt; echo 1 >next; echo 1 >last; touch applying`, clean: `test ! -e $G/rebase-apply`},
	"a list of steps":              {plant: `mkdir -p $G/rebase-merge; cd $G/rebase-merge; git rev-parse HEAD >onto; cp onto orig-head; echo refs/heads/x >head-name; echo "exec $EVIL" >git-rebase-todo; touch interactive done`, clean: `git rebase --continue`},
	"sequencer":                    {plant: `mkdir -p $G/sequencer; echo "exec $EVIL" >$G/sequencer/todo; cp $G/HEAD $G/CHERRY_PICK_HEAD`, clean: `test ! -e $G/sequencer`},
	"info/attributes":              {plant: `mkdir -p $G/info; echo '* filter=mine' >$G/info/attributes`, clean: `! grep filter=mine $G/info/attributes`},
	"info/grafts":                  {plant: `mkdir -p $G/info; git rev-parse HEAD >$G/info/grafts`, clean: `test ! -e $G/info/grafts`},
	"rr-cache":                     {plant: `mkdir -p $G/rr-cache/x; touch $G/rr-cache/x/postimage`, clean: `test ! -e $G/rr-cache`},
	"index": {plant: `o=$(printf '#!/bin/sh\n%s\n' "$EVIL" | git -C $W hash-object -w --stdin); n=.git/hooks/post-index-change; cd $G
		{ printf 'DIRC\0\0\0\2\0\0\0\1'; head -c 24 /dev/zero; printf '\0\0\201\355'; head -c 12 /dev/zero; printf "$(echo $o | sed 's/../\\x&/g')\0\\$(printf %03o ${#n})$n"; head -c $((8-(62+${#n})%8)) /dev/zero; } >i
		{ cat i; printf "$(sha1sum <i | cut -c1-40 | sed 's/../\\x&/g')"; } >index; rm i`, clean: `git restore .; git checkout-index -a -f; git status; true`},
	"index.lock":                    {plant: `touch $G/index.lock $G/HEAD.lock $G/config.lock $G/packed-refs.lock`, clean: `test ! -e $G/index.lock -a ! -e $G/HEAD.lock`},
	"a lock on a branch":            {plant: `touch $G/refs/heads/$(git rev-parse --abbrev-ref HEAD).lock`, clean: `test ! -e $G/refs/heads/*.lock`},
	"objects, a link":               {plant: `rm -rf $G/objects/pack; ln -s $HOME/documents $G/objects/pack`, clean: `test ! -L $G/objects/pack`},
	"objects, a link deep":          {plant: `mkdir -p $G/objects/00; ln -s $HOME/documents $G/objects/00/x; ln -s $HOME/documents $G/objects/ff`, clean: `test ! -L $G/objects/00/x -a ! -L $G/objects/ff`},
	"logs, a link":                  {plant: `mkdir -p $G/logs; ln -sf $HOME/documents/letter $G/logs/HEAD`, clean: `test ! -L $G/logs/HEAD`},
	"HEAD, a link":                  {plant: `rm $G/HEAD; ln -s $HOME/documents/letter $G/HEAD`, clean: `test ! -L $G/HEAD`},
	"a message that is a link":      {plant: `ln -sf $HOME/documents/letter $G/COMMIT_EDITMSG`, clean: `test ! -L $G/COMMIT_EDITMSG`},
	"files of other tools":          {plant: `echo x >$G/lazygit.yml; mkdir -p $G/glab-cli $G/sl; echo x >$G/glab-cli/config.yml; echo x >$G/sl/config`, clean: `test ! -e $G/lazygit.yml -a ! -e $G/glab-cli -a ! -e $G/sl`},
	"a pipe for attributes":         {plant: `rm -f $W/.gitattributes; mkfifo $W/.gitattributes`, clean: `test ! -p .gitattributes`},
	"a pipe in it":                  {plant: `rm -f $G/MERGE_MSG; mkfifo $G/MERGE_MSG`, clean: `test ! -p $G/MERGE_MSG`},
	"a folder called like a remote": {plant: `evilremote; ln -s $INSTANCE/evil.git $W/nosuch; git init -q --bare $W/other; evil $W/other/hooks/pre-receive`, clean: `git push nosuch HEAD:x; git push other HEAD:x`},
	"a .git file":                   {plant: `mkdir -p $W/f; git init -q $W/f; git -C $W/f config core.fsmonitor "$EVIL"; mv $W/f/.git $W/f/g; echo "gitdir: g" >$W/f/.git`, clean: `git -C f status`},
	"a .git link":                   {plant: `mkdir -p $W/f; git init -q $W/f; git -C $W/f config core.fsmonitor "$EVIL"; mv $W/f/.git $W/f/g; ln -s g $W/f/.git`, clean: `git -C f status`},
	"a link to the agent's own":     {plant: `git init -q ~/.cache/l; git -C ~/.cache/l config core.fsmonitor "$EVIL"; ln -s $INSTANCE/l $W/l`, clean: `git -C l status`},
	"a gitlink":                     {plant: `git init -q $W/k; git -C $W/k commit -qm x --allow-empty; git -C $W add k; git -C $W/k config core.fsmonitor "$EVIL"`},
	"a repository by commondir":     {plant: `git init -q $W/e; git -C $W/e config core.fsmonitor "$EVIL"; mkdir $W/d; ln -s refs/heads/x $W/d/HEAD; echo ../e/.git >$W/d/commondir`, clean: `git -C d status`},
	"a remote's address":            {plant: `evilremote; git init -q $W/n2; git -C $W/n2 commit -qm x --allow-empty; git -C $W/n2 config remote.origin.url $INSTANCE/evil.git; git -C $W/n2 config branch.$(git -C $W/n2 branch --show-current).remote $INSTANCE/evil.git`, clean: `git -C n2 push origin HEAD:x; git -C n2 push`},
	"includes with conditions":      {plant: `git init -q $W/c1; cd $W/c1; git config -f e core.fsmonitor "$EVIL"; for c in gitdir:/ onbranch:** 'hasconfig:remote.*.url:**'; do git config "includeIf.$c.path" $PWD/e; done; git config remote.o.url https://x/y`, clean: `git -C c1 status`},
	"a remote that promises objects": {plant: `git init -q $W/p1; cd $W/p1; echo x >f; git add f; git commit -qm x; o=$(git rev-parse :f); rm -f .git/objects/${o:0:2}/${o:2}
		git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.url .; git config remote.origin.promisor true; git config remote.origin.uploadpack "$EVIL"`, clean: `git -C p1 log -p`},
	"the address of a bundle": {plant: `git init -q $W/p2; git -C $W/p2 config fetch.bundleURI $HOME/documents/letter; git -C $W/p2 config transfer.bundleURI true`, clean: `! git -C p2 config --local --get-regexp bundle`},
	"alternates by HTTP":      {plant: `mkdir -p $G/objects/info; echo http://127.0.0.1:1/ >$G/objects/info/http-alternates`, clean: `test ! -e $G/objects/info/http-alternates`},
	"where refs are stored":   {plant: `git init -q $W/n3; git -C $W/n3 config extensions.refStorage files://$HOME/documents`, clean: `! grep documents n3/.git/config`},
}

// prelude is what a plant may use.
const prelude = `export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x
INSTANCE=$(awk -v at=$HOME/.cache '$5 == at {print $4}' /proc/self/mountinfo)
evil() { printf '#!/bin/sh\n%s\n' "$EVIL" >$1; chmod +x $1; }
evilremote() { test -e ~/.cache/evil.git && return; git init -q --bare ~/.cache/evil.git; evil ~/.cache/evil.git/hooks/pre-receive; evil ~/.cache/evil.git/hooks/reference-transaction; }
test -e $G || { mkdir -p $W; git init -q $W; git -C $W commit -qm x --allow-empty; }
`

// script is what the agent runs. A working tree that is a git folder itself
// stands for one.
func (w *world) script(s site, plant string) string {
	plant = strings.ReplaceAll(plant, "TAKEN", w.path(taken))
	return fmt.Sprintf("G=%s; W=%s; EVIL='touch %s; false'\n%s(%s) 2>/dev/null\nrm -f %[3]s; true", s.git, s.tree, w.path(taken), prelude, plant)
}

// asTheUser runs what a user does after a session, without being asked: the
// prompt, and git in each folder.
func (w *world) asTheUser(s site, clean string) outcome {
	w.t.Helper()
	git, tree := s.git, s.tree
	if inside, is := strings.CutPrefix(tree, "$HOME/.cache"); is {
		instances, _ := os.ReadDir(w.path(".claudebox/instances"))
		at := w.path(".claudebox/instances/" + instances[0].Name() + "/cache")
		git, tree = at+strings.TrimPrefix(git, "$HOME/.cache"), at+inside
	}
	script := fmt.Sprintf(`export GIT_CONFIG_NOSYSTEM=1 GIT_EDITOR=true GIT_TERMINAL_PROMPT=0 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x
G=$(realpath -m %s); cd %s || exit 0
all() {
	for c in status log diff fsck 'fetch --all' 'push --dry-run' 'gc -q' 'worktree list' 'submodule status' 'stash list'; do timeout 10 git $c; done
	. /usr/lib/git-core/git-sh-prompt; __git_ps1 a b '(%%s)'; eval ": \"$PS1\""
}
for d in . */; do (cd "$d" && all); done >/dev/null 2>&1 </dev/null
none() { [ -d "$G" ] && [ ! -e "$G/HEAD" ] && [ ! -L "$G/HEAD" ]; } # git finds no repository there any more
rm -f ~/.nothing; { none || { %s; }; } >&2 </dev/null && echo CLEAN`, git, tree, orTrue(clean))
	cmd := exec.Command("timeout", "60", "bash", "-c", script)
	cmd.Dir, cmd.Env = w.project, w.env
	status, stdout, stderr := trial.Run(w.t, cmd)
	return outcome{status, stdout, stderr}
}

func orTrue(s string) string {
	if s == "" {
		return "true"
	}
	return s
}

// asserts reports whether what a plant wants clean is a condition, and not only
// a command that must run nothing.
func asserts(clean string) bool {
	return strings.Contains(clean, "test ") || strings.HasPrefix(clean, "! ")
}

func (w *world) prepareSite(s site) {
	w.t.Helper()
	cmd := exec.Command("bash", "-ec", "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x\n"+s.user)
	cmd.Dir, cmd.Env = w.home, w.env
	if status, _, stderr := trial.Run(w.t, cmd); status != 0 {
		w.t.Fatalf("the user: %s", stderr)
	}
	if s.at != "" {
		w.project = w.path(s.at)
	}
}

// inSessions are the ways in which the agent plants.
var inSessions = map[string]func(w *world, s site, script string){
	"in two": func(w *world, s site, script string) {
		w.attack(script, s.flags...)
		w.attack(script, s.flags...)
	},
	"in one that was killed": func(w *world, s site, script string) {
		l := w.begin(s.flags...)
		l.sh("bash -c \"$(echo " + encoded(script) + " | base64 -d)\"")
		l.kill()
		w.claudebox("shell", "--yes", "--", "true")
	},
	"in one that was killed, and the folder renamed": func(w *world, s site, script string) {
		l := w.begin(s.flags...)
		l.sh("bash -c \"$(echo " + encoded(script) + " | base64 -d)\"")
		l.kill()
		must.Do(w.t, os.Rename(w.project, w.path("renamed")))
		w.project = w.path("renamed")
		w.claudebox("shell", "--yes", "--", "true")
	},
	"in one during which the folder is renamed": func(w *world, s site, script string) {
		l := w.begin(s.flags...)
		l.sh("bash -c \"$(echo " + encoded(script) + " | base64 -d)\"")
		must.Do(w.t, os.Rename(w.project, w.path("renamed")))
		l.end()
		w.project = w.path("renamed")
	},
	"while another begins": func(w *world, s site, script string) {
		first := w.begin(s.flags...)
		first.sh("bash -c \"$(echo " + encoded(script) + " | base64 -d)\"")
		second := w.begin(s.flags...)
		second.sh("bash -c \"$(echo " + encoded(script) + " | base64 -d)\"")
		first.end()
		second.end()
	},
}

// waits are plants that run nothing.
var waits = []string{"a lock on a branch", "alternates by HTTP", "a pipe for attributes"}

// Promise: nothing planted for your git.
func TestWhatGitObeysIsPlanted(t *testing.T) {
	for n, what := range slices.Sorted(maps.Keys(plants)) {
		for m, where := range slices.Sorted(maps.Keys(sites)) {
			if trial.Short() && (n%2 != 0 || (n+m)%len(sites) != 0) {
				continue // every second in one place, each place with its share
			}
			if where == "the agent's own folder" && slices.Contains(waits, what) {
				continue // they run nothing, and only an agent's git waits there
			}
			t.Run(what+" in "+where, func(t *testing.T) {
				w, s := newWorld(t), sites[where]
				w.prepareSite(s)
				w.attack(w.script(s, plants[what].plant), s.flags...)
				w.wantHarmless(s, plants[what].clean)
			})
		}
	}
}

// Promise: nothing planted for your git.
func TestWhatGitObeysIsPlantedBySeveralSessions(t *testing.T) {
	ways := slices.Sorted(maps.Keys(inSessions))
	for n, what := range slices.Sorted(maps.Keys(plants)) {
		for m, how := range ways {
			if trial.Short() && (n%4 != 1 || (n+m)%len(ways) != 0) {
				continue // every fourth in one way, each way with its share
			}
			where := []string{"the project", "a repository made inside", "a nested repository"}[n%3]
			t.Run(what+" "+how+" in "+where, func(t *testing.T) {
				w, s := newWorld(t), sites[where]
				w.prepareSite(s)
				inSessions[how](w, s, w.script(s, plants[what].plant))
				w.wantHarmless(s, plants[what].clean)
			})
		}
	}
}

func (w *world) wantHarmless(s site, clean string) {
	w.t.Helper()
	got := w.asTheUser(s, clean)
	if w.exists(taken) {
		w.t.Errorf("the host ran what the agent had written\n%s", got)
	}
	if asserts(clean) && !strings.Contains(got.stdout, "CLEAN") {
		w.t.Errorf("it stays: %s\n%s", clean, got)
	}
}

// The battery is worth something only if the plants grow where nobody weeds.
func TestThePlantsAreReal(t *testing.T) {
	s := site{git: ".git", tree: "."}
	for what, p := range trial.Some(5, plants) {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.prepareSite(sites["the project"])
			script := strings.ReplaceAll(w.script(s, p.plant), "INSTANCE=$(awk", "INSTANCE=$HOME/.cache; : $(awk")
			cmd := exec.Command("bash", "-uc", script)
			cmd.Dir, cmd.Env = w.project, w.env
			trial.Run(t, cmd)
			got := w.asTheUser(s, p.clean)
			if !w.exists(taken) && !(asserts(p.clean) && !strings.Contains(got.stdout, "CLEAN")) {
				t.Errorf("it does no harm anyhow\n%s", got)
			}
		})
	}
}

func encoded(script string) string {
	out, _ := exec.Command("bash", "-c", "printf %s \"$0\" | base64 -w0", script).Output()
	return string(out)
}
