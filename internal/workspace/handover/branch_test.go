package handover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// onBranch is a world in which the agent works on a branch, in a checkout of its own.
func onBranch(t *testing.T, name, before string) (w *world, tree string) {
	w = newWorld(t)
	if before != "" {
		w.user(before)
	}
	tree = t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(tree, ".git"), 0o700))
	w.places[0].Branch, w.places[0].Start = name, w.user("git rev-parse HEAD")
	w.begin()
	w.work(tree, "g read-tree -u --reset HEAD")
	return w, tree
}

// work runs a script in a box with the checkout.
func (w *world) work(tree, script string) string {
	w.Helper()
	f, err := os.Open(tree)
	must.Do(w, err)
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

// The user and the agent both move the session's branch. What one of them took over from the other is no other work:
// only what is new on both sides, and on none of them contains the other's, gets a name beside.
func TestBothMoveTheBranchOfASession(t *testing.T) {
	t.Parallel()
	const (
		c      = `c() { echo "$1" >$1; git add .; git commit -q -m "$1"; }; `
		amend  = `git update-ref refs/heads/feat $(git commit-tree -p feat~ -m %s feat^{tree})`
		resets = `git reset -q --hard user/feat; `
	)
	amended := func(as string) string { return strings.Replace(amend, "%s", as, 1) }
	for name, tc := range map[string]struct {
		turns []string // who, and a script; or "sync"
		want  string
		told  string // all that is said
	}{
		"the agent takes over an amended commit": {
			turns: []string{"agent " + c + "c w1", "sync", "user " + amended("mine"), "sync", "agent " + resets},
			want:  "feat=mine main=one",
		},
		"and amends it": {
			turns: []string{"agent " + c + "c w1", "sync", "user " + amended("mine"), "sync", "agent " + resets + "git commit -q --amend -m better"},
			want:  "feat=better main=one",
		},
		"and the user amends it once more": {
			turns: []string{"agent " + c + "c w1", "sync", "user " + amended("mine"), "sync", "agent " + resets, "user " + amended("again"), "sync"},
			want:  "feat=again main=one",
		},
		"and the agent goes on from the last one": {
			turns: []string{"agent " + c + "c w1", "sync", "user " + amended("mine"), "sync", "agent " + resets, "user " + amended("again"), "sync", "agent " + resets + c + "c w2"},
			want:  "feat=w2 main=one",
		},
		"the user takes commits back, and the agent goes on from there": {
			turns: []string{"agent " + c + "c w1; c w2", "sync", "user git branch -f feat main", "sync", "agent " + resets + c + "c w3"},
			want:  "feat=w3 main=one",
		},
		"the agent rebases on an amended commit": {
			turns: []string{"agent " + c + "c w1", "sync", "user " + amended("mine"), "sync", "agent " + c + "c w2; git rebase -q user/feat"},
			want:  "feat=w2 main=one",
		},
		"after its commits were beside": {
			turns: []string{"agent " + c + "c w1", "sync", "user " + amended("mine"), "agent " + c + "c w2", "sync", "agent git rebase -q user/feat"},
			want:  "feat=w2 main=one",
			told:  "git, claudebox/feat/feat: it is taken away: what the agent has is on feat again",
		},
		"after its commits were beside, where the user has gone on": {
			turns: []string{"agent " + c + "c w1", "sync", "user " + amended("mine"), "agent " + c + "c w2", "sync", "user git update-ref refs/heads/claudebox/feat/feat $(git commit-tree -p claudebox/feat/feat -m theirs main^{tree})", "agent git rebase -q user/feat"},
			want:  "claudebox/feat/feat=theirs feat=w2 main=one",
		},
		"a branch of the user's, which the agent then leaves as it is": {
			turns: []string{"agent " + c + "git switch -q main; c w1", "sync", "agent git reset -q --hard HEAD~; git switch -q feat"},
			want:  "feat=one main=one",
			told:  "git, claudebox/feat/main: it is taken away: what the agent has is on main again",
		},
		"the agent goes back, and the user on": {
			turns: []string{"agent " + c + "c w1; c w2", "sync", "user git update-ref refs/heads/feat $(git commit-tree -p feat -m mine feat^{tree})", "agent git reset -q --hard HEAD~", "sync"},
			want:  "feat=mine main=one",
		},
		"each amends it": {
			turns: []string{"agent " + c + "c w1", "sync", "user " + amended("mine"), "agent git commit -q --amend -m own", "sync"},
			want:  "claudebox/feat/feat=own feat=mine main=one",
			told:  "git, feat: it moved on both sides; yours stays; the agent's commits are on claudebox/feat/feat",
		},
		"a rebase of the agent's that stops at each commit": {
			turns: []string{"agent " + c + "c w1; c w2; GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i main; git commit -q --amend -m x1", "sync", "agent git rebase --continue >/dev/null; git commit -q --amend -m x2", "sync", "agent git rebase --continue 2>/dev/null"},
			want:  "feat=x2 main=one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, tree := onBranch(t, "feat", "")
			for _, turn := range tc.turns {
				switch who, script, _ := strings.Cut(turn, " "); who {
				case "agent":
					w.agentIn(tree, script)
				case "user":
					w.user(script)
				default:
					w.sync()
				}
			}
			told := strings.Join(w.end(), "\n")
			if got := w.user(branches); got != tc.want {
				t.Errorf("the user has %q, want %q", got, tc.want)
			}
			if told != tc.told {
				t.Errorf("told %q, want %q", told, tc.told)
			}
		})
	}
}
