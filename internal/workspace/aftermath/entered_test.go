package aftermath_test

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/internal/workspace/aftermath"
)

// TestAFolderThatToolsFillIsTheUsersWork if git has some of it: what the host runs there is told, and secrets are
// hidden.
func TestAFolderThatToolsFillIsTheUsersWork(t *testing.T) {
	const tracked = "mkdir -p target/sub node_modules/x a/target/b/.venv; touch target/main.go node_modules/x/i.js a/target/b/.venv/c target/sub/.envrc; git add -f .; git commit -qm x; "
	for name, tc := range map[string]struct{ user, agent, want string }{
		"a new file":            {tracked, "echo x >target/.envrc", "target/.envrc"},
		"a tracked one":         {tracked, "echo x >target/sub/.envrc", "target/sub/.envrc"},
		"deep":                  {tracked, "mkdir -p node_modules/x/.vscode; echo x >node_modules/x/.vscode/tasks.json", "node_modules/x/.vscode/tasks.json"},
		"one in another":        {tracked, "echo x >a/target/b/.venv/.envrc", "a/target/b/.venv/.envrc"},
		"not tracked any more":  {tracked, "git rm -rq --cached target; git commit -qm y; echo x >target/.envrc", "target/.envrc"},
		"of a repository below": {"git init -q n; mkdir n/target; touch n/target/m; git -C n add .", "echo x >n/target/.envrc", "n/target/.envrc"},
		"of one in it":          {tracked + "git init -q target/n; mkdir target/n/target; touch target/n/target/m; git -C target/n add .", "echo x >target/n/target/.envrc", "target/n/target/.envrc"},
		"of other hashes":       {"rm -rf .git; git init -q --object-format=sha256; mkdir target; touch target/m; git add .", "echo x >target/.envrc", "target/.envrc"},
		"with a split index":    {tracked + "git config core.splitIndex true; git update-index --split-index", "echo x >target/.envrc", "target/.envrc"},
		"what tools made":       {tracked + "mkdir b; mkdir b/target", "echo x >b/target/.envrc; mkdir b/node_modules; echo {} >b/node_modules/package.json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, killed := range []bool{false, true} {
				w := newWorldHere(t)
				w.sh("git init -q; " + tc.user + "\nfor d in target n/target target/n/target; do test ! -d $d || echo KEY=hunter2hunter2 >$d/.env; done")
				for _, secret := range []string{"target/.env", "n/target/.env", "target/n/target/.env"} {
					if _, err := os.Lstat(w.path("p/" + secret)); err == nil && !w.covered("p", secret) {
						t.Errorf("%s is not hidden", secret)
					}
				}
				time.Sleep(1100 * time.Millisecond) // what is a second older than a session counts as its own
				s := w.begin()
				w.sh(tc.agent)
				r := w.ended(s, killed)
				told := slices.DeleteFunc(slices.Clone(r.Changes), func(c aftermath.Change) bool { return path.Base(c.Path) != path.Base(tc.want) })
				if got := lines(r); tc.want == "" && len(got) > 0 || tc.want != "" && (len(told) != 1 || told[0].Path != tc.want) {
					t.Errorf("killed: %t; told %q, want %q", killed, got, tc.want)
				}
			}
		})
	}
}

// TestAFolderIsTakenOutOfTheIndex: what the user puts there later was looked for until then.
func TestAFolderIsTakenOutOfTheIndex(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"git rm -rq --cached target; git commit -qm y", "rm .git/index", "git rm -rq target; git commit -qm y"} {
		w := newWorldHere(t)
		w.sh("git init -q; mkdir target; touch target/m; git add -f .; git commit -qm x")
		w.session(agent)
		w.session("true")
		w.sh("mkdir -p target; echo KEY=hunter2hunter2 >target/.env")
		if !w.covered("p", "target/.env") {
			t.Errorf("%s: a secret is not hidden", agent)
		}
	}
}

// TestALargeProjectWhoseFilledFolderIsTracked: what the last session saw does not say that of an index since.
func TestALargeProjectWhoseFilledFolderIsTracked(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; for d in $(seq 250); do mkdir $d; done; mkdir target; touch target/x x; git add x; git commit -qm x")
	time.Sleep(50 * time.Millisecond)
	for n, step := range []struct{ user, agent, want string }{
		{"", "echo x >target/.envrc", ""},
		{"git add target/x", "echo y >target/.envrc", "target/.envrc"},
		{"", "echo z >target/.envrc", "target/.envrc"},
		{"git rm -q --cached target/x", "echo x >target/.envrc", "target/.envrc"}, // an agent could have done it
		{"", "git add target/x", ""},
		{"", "echo x >target/.exrc", "target/.exrc"},
	} {
		w.sh(step.user)
		got := strings.Join(lines(w.session(step.agent)), " ")
		if _, told, _ := strings.Cut(got, " "); told != step.want {
			t.Errorf("%d: told %q, want %q", n, got, step.want)
		}
	}
}
