//go:build lab

package attacks_test

import (
	"strings"
	"testing"
)

// linkAttack is an attack by a submodule in a folder that tools fill: nothing is held back there, and the user's git goes
// into whatever its index names as a submodule.
type linkAttack struct {
	user  string // what the user does first, in the project
	agent string // in a first session
	then  string // what the user does in the second one
	told  string // part of what the first one tells
}

const (
	// linked stages a submodule that is not there.
	linked = `linked() { git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),$1; }; `
	// brings is told of what does not cross.
	brings = "a submodule where tools fill a folder, node_modules/gone"
)

var linkAttacks = map[string]linkAttack{
	"it is committed": {agent: `linked node_modules/gone; git commit -qm x`, told: brings},
	"on a branch that the user checks out": {
		agent: `git switch -qc other; linked node_modules/gone; git commit -qm x; git switch -q main`,
		then:  `git switch -q other || :; rm -rf node_modules`, told: brings,
	},
	"its name is said to be the user's before": {
		user:  `printf '[submodule "x"]\n\tpath = node_modules/gone\n\turl = /x\n' >.gitmodules; git add .gitmodules; git commit -qm modules`,
		agent: `linked node_modules/gone; git commit -qm x`, told: brings,
	},
	"in a stash that the user takes": {
		agent: `linked node_modules/gone; git stash -q`, then: `git stash apply -q --index || :`, told: brings,
	},
	"it is staged, in conflict": {
		agent: `h=$(git rev-parse HEAD); printf '100644 %s 1\tnode_modules/gone\n160000 %s 2\tnode_modules/gone\n' $(git hash-object -w a) $h | git update-index --index-info`,
		told:  "node_modules/gone",
	},
	"the folder itself": {agent: `linked node_modules; git commit -qm x`, told: "fill a folder, node_modules"},
	"the user's own":    {user: `linked node_modules/gone; git commit -qm x`},
}

// An agent makes a repository where the user's index has a submodule that is not there, in a folder that tools fill.
//
// Promise: nothing planted for your git.
func TestASubmoduleIsMadeInAFolderThatToolsFill(t *testing.T) {
	const begin = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x; ` + linked
	for name, attack := range linkAttacks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.onTheHost(`cd project; git init -qb main; echo a >a; echo node_modules >.gitignore; git add .; ` + begin +
				`git commit -qm one; ` + attack.user)
			if got := w.claudebox("shell", "--yes", "--", "bash", "-c", begin+attack.agent); !strings.Contains(got.stderr, attack.told) {
				t.Errorf("it is not told: %s", got)
			}
			if w.exists("project/node_modules") {
				t.Error("what stood in for the user's folder is left")
			}
			l := w.begin()
			w.onTheHost(begin + "cd project; " + attack.then)
			for _, at := range []string{"node_modules/gone", "node_modules"} {
				l.sh(`mkdir -p ` + at + `; git init -q ` + at + `; git -C ` + at + ` config core.fsmonitor "` + w.orders() +
					`"; ( cd ` + at + `; ` + begin + `git commit -q --allow-empty -m x )`)
				w.git("project", "status")
				w.wantNotTaken()
			}
			said := l.end()
			w.git("project", "status")
			w.wantNotTaken()
			if attack.told == "" && w.git("project", "ls-files", "-s", "node_modules").stdout == "" {
				t.Errorf("the user's own is not in their index any more: %s", said)
			}
		})
	}
}
