package handover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// onBranch is a world in which the agent works on a branch, in a checkout of its own.
func onBranch(t *testing.T, name, before string) (w *world, tree string) {
	w = newWorld(t)
	if before != "" {
		w.user(before)
	}
	tree = t.TempDir()
	if err := os.Mkdir(filepath.Join(tree, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.places[0].Branch, w.places[0].Start = name, w.user("git rev-parse HEAD")
	w.begin()
	w.work(tree, "g read-tree -u --reset HEAD")
	return w, tree
}

// work runs a script in a box with the checkout.
func (w *world) work(tree, script string) string {
	w.Helper()
	f, err := os.Open(tree)
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	text, err := (Work{w.places[0], w.tools, f, w.project, time.Minute}).Run(w.Context(), script, "")
	if err != nil {
		w.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(string(text))
}

const (
	branches = `git for-each-ref --format='%(refname:lstrip=2)=%(subject)' refs/heads | tr '\n' ' '`
	users    = `git rev-parse HEAD; cat .git/HEAD; sha256sum .git/index; git status --porcelain --ignored; git stash list; git tag; ls -A`
)

// What crosses of a session on the branch "feat", and under which name. HEAD, index, files, stashes and tags of the
// user's stay byte for byte.
func TestOnlyBranchesCrossFromASessionOnABranch(t *testing.T) {
	t.Parallel()
	const commit = `c() { git commit -q --allow-empty -m "$1"; }; `
	for name, c := range map[string]struct {
		before, agent, user, again string
		want                       string
		told                       string
	}{
		"a commit":                 {agent: "echo x >a; git commit -qam work", want: "feat=work main=one"},
		"nothing":                  {want: "feat=one main=one"},
		"the branch is there":      {before: "git branch feat; git commit -q --allow-empty -m two", agent: commit + "c work", want: "feat=work main=two"},
		"a branch of its own":      {agent: commit + "git switch -qc part2; c two", want: "feat=one main=one part2=two"},
		"a branch of the user's":   {agent: commit + "git switch -q main; c mine", want: "claudebox/feat/main=mine feat=one main=one", told: "it is yours"},
		"a detached HEAD":          {agent: commit + "git switch -q --detach; c alone", want: "claudebox/feat/detached=alone feat=one main=one"},
		"branches removed":         {agent: "git branch -D main; git switch -qc x; git branch -D feat", want: "feat=one main=one x=one"},
		"a branch renamed":         {agent: commit + "git branch -m feat better; c work", want: "better=work feat=one main=one"},
		"a tag and a stash":        {agent: "git tag v1; echo x >a; git stash -q", want: "feat=one main=one", told: "tags stay"},
		"the user commits on main": {user: commit + "c mine", again: "git log -1 --format=%s main | grep -qx mine; git rebase -q main", want: "feat=mine main=mine"},
		"the user commits on it": {
			agent: commit + "c w1", user: `git update-ref refs/heads/feat $(git commit-tree -p feat -m mine feat^{tree})`, again: commit + `git log -1 --format=%s user/feat | grep -qx mine; c w2`,
			want: "claudebox/feat/feat=w2 feat=mine main=one", told: "moved on both sides",
		},
		"and the agent merges that": {
			agent: commit + "c w1", user: `git update-ref refs/heads/feat $(git commit-tree -p feat -m mine feat^{tree})`, again: commit + `c w2; git merge -q -m merged user/feat`,
			want: "feat=merged main=one",
		},
		"the user resets it": {
			agent: commit + "c w1", user: "git branch -f feat main", again: commit + "c w2",
			want: "claudebox/feat/feat=w2 feat=one main=one", told: "moved on both sides",
		},
		"the user removes it": {
			agent: commit + "c w1", user: "git branch -qD feat", again: commit + "c w2",
			want: "claudebox/feat/feat=w2 main=one", told: "you removed it",
		},
		"the user checks it out": {
			agent: commit + "c w1", user: "git switch -q feat", again: commit + "c w2",
			want: "claudebox/feat/feat=w2 feat=w1 main=one", told: "checked out in a worktree of yours",
		},
		"the user has a name that is in the way": {
			before: "git branch part/of", agent: commit + "git update-ref -d refs/heads/part/of; git switch -qc part; c work",
			want: "claudebox/feat/part=work feat=one main=one part/of=one", told: "in the way",
		},
		"claudebox is a branch of the user's": {
			before: "git branch claudebox", agent: commit + "git switch -q main; c mine",
			want: "claudebox=one claudebox-feat-main=mine feat=one main=one",
		},
		"a name that a prompt obeys": {agent: commit + "git switch -qc 'a$(id)'; c x; git switch -q feat", want: "feat=one main=one", told: "plain name"},
		"a repository in a commit": {
			agent: "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; git commit -qm sub",
			want:  "feat=sub main=one", told: "names repositories",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, tree := onBranch(t, "feat", c.before)
			before := w.user(users)
			w.agentIn(tree, c.agent)
			w.sync()
			if c.user != "" {
				w.user(c.user)
				w.sync()
				before = w.user(users)
			}
			w.agentIn(tree, c.again)
			told := strings.Join(w.end(), "\n")
			if got := w.user(branches); got != c.want {
				t.Errorf("the user has %q, want %q; told: %s", got, c.want, told)
			}
			if got := w.user(users); got != before {
				t.Errorf("the user had\n%s\nand has\n%s", before, got)
			}
			if !strings.Contains(told, c.told) {
				t.Errorf("told %q, want %q", told, c.told)
			}
			if text := w.user("git fsck --strict --no-dangling 2>&1"); text != "" {
				t.Errorf("git fsck: %s", text)
			}
		})
	}
}

// agentIn runs a script of the agent's in its checkout.
func (w *world) agentIn(tree, script string) {
	w.Helper()
	w.mount = tree
	w.agent(script)
}
