//go:build lab

package attacks_test

import (
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// secretPush is an attack on a file that one session hides: the next is to see it.
type secretPush struct {
	user   string // in the home; the project is ~/project, CANARY the secret
	agent  string
	then   string // what the user does in between, in the home
	at     string // where the first session is, below the home
	next   string // where the second is
	read   string // what the second session reads
	living bool   // the first one lives still
}

var secretPushes = map[string]secretPush{
	"a subfolder": {
		user:  `git init -q project; mkdir project/sub; echo CANARY >project/sub/.env`,
		agent: `git add -f sub/.env`, next: "project/sub", read: ".env",
	},
	"a subfolder, with a commit": {
		user:  `git init -q project; mkdir project/sub; echo CANARY >project/sub/.env`,
		agent: `git add -f sub/.env; git commit -qm x; git commit -qm y --allow-empty`, next: "project/sub", read: ".env",
	},
	"the folder above": {
		user:  `git init -q project; mkdir project/sub; echo CANARY >project/sub/.env`,
		agent: `git add -f .env`, at: "project/sub", next: "project", read: "sub/.env",
	},
	"another worktree's index": {
		user:  `git init -q main; git -C main commit -qm x --allow-empty; git -C main worktree add -q ../project; echo CANARY >main/.env`,
		agent: `cd ../main/.git && git --git-dir=. update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,.env`, next: "main", read: ".env",
	},
	"a linked worktree's index": {
		user:  `git init -q project; git -C project commit -qm x --allow-empty; git -C project worktree add -q ../other; echo CANARY >other/.env`,
		agent: `git --git-dir=.git/worktrees/other update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,.env`, next: "other", read: ".env",
	},
	"a submodule's index": {
		user:  `git init -q lib; git -C lib commit -qm x --allow-empty; git init -q project; git -C project -c protocol.file.allow=always submodule -q add ../lib s; echo CANARY >project/s/.env`,
		agent: `git -C s add -f .env`, next: "project/s", read: ".env",
	},
	"a project that is renamed": {
		user:  `git init -q project; mkdir project/sub; echo CANARY >project/sub/.env`,
		agent: `git add -f sub/.env`, then: "mv project renamed", next: "renamed", read: "sub/.env",
	},
	"a hidden file's link, in a project that is renamed": {
		user:  `git init -q project; echo CANARY >project/plain; ln -s plain project/.env`,
		agent: `rm .env`, then: "mv project renamed", next: "renamed", read: "plain",
	},
	"a hidden file's link, from the folder above": {
		user:  `git init -q project; echo CANARY >project/plain; ln -s plain project/.env`,
		agent: `rm .env`, next: ".", read: "project/plain",
	},
	"a second session meanwhile": {
		user:  `git init -q project; echo CANARY >project/.env`,
		agent: `git add -f .env; git commit -qm x`, next: "project", read: ".env", living: true,
	},
	"a second session meanwhile, below": {
		user:  `git init -q project; mkdir project/sub; echo CANARY >project/sub/.env`,
		agent: `git add -f sub/.env`, next: "project/sub", read: ".env", living: true,
	},
	"a repository around it": {
		user:  `git init -q project; mkdir project/conf; echo CANARY >project/conf/.env`,
		agent: `git init -q conf; git -C conf add -f .env`, next: "project", read: "conf/.env",
	},
	"a repository around it, begun elsewhere": {
		user:  `git init -q project; mkdir project/conf; echo CANARY >project/conf/.env`,
		agent: `git init -q x; git -C x update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,.env; mv x/.git conf/.git`, next: "project/conf", read: ".env",
	},
	"a folder that no walk enters": {
		user:  `git init -q project; mkdir project/conf project/node_modules; echo CANARY >project/conf/.env`,
		agent: `mv conf node_modules/`, next: "project", read: "node_modules/conf/.env",
	},
	"a folder that no walk enters, by a link": {
		user:  `git init -q project; mkdir -p project/a/conf; echo CANARY >project/a/conf/.env`,
		agent: `mkdir target; mv a target/; ln -s target/a a`, next: "project", read: "a/conf/.env",
	},
	"a folder that is exchanged": {
		user:  `git init -q project; mkdir project/conf project/plain; echo CANARY >project/conf/.env`,
		agent: `perl -e 'syscall(316, -100, "conf", -100, "plain", 2)'; mv conf x; mv plain conf`, next: "project", read: "plain/.env x/.env conf/.env",
	},
	"so many small files that none is looked into": {
		user:  `git init -q project; echo ghp_abcdefghijklmnopqrstuvwxyz0123456789 CANARY >project/notes.txt`,
		agent: `for n in $(seq 1100); do echo xxxxxxxxxxxxxxxxxxxxxxxx >0$n.txt; done`, next: "project", read: "notes.txt",
	},
	"an index where a closed pointer leads": {
		user:  `mkdir -p project/conf; echo CANARY >project/conf/.env`,
		agent: `git init -q r; echo x >r/.env; git -C r add -f .env; echo "gitdir: ../r/.git" >conf/.git; chmod 0 conf/.git`, next: "project", read: "conf/.env",
	},
	"an entry for a file that is made later": {
		user:  `git init -q project; mkdir project/sub`,
		agent: `git update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,sub/.env`,
		then:  `echo CANARY >project/sub/.env`, next: "project/sub", read: ".env",
	},
}

const identityOf = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x\n"

func (w *world) asUser(script string) {
	w.t.Helper()
	got := w.run(nil, "bash", "-ec", identityOf+"cd ~\n"+strings.ReplaceAll(script, "CANARY", canary))
	if got.status != 0 {
		w.t.Fatalf("the user: %s", got)
	}
}

// A secret that was covered once stays covered, wherever the next session is.
//
// Promise: no secret of the project.
func TestACoveredSecretIsReadByTheNextSession(t *testing.T) {
	for name, a := range trial.Some(3, secretPushes) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			must.Do(t, os.Remove(w.path("project")))
			w.folder("work")
			home := w.home
			w.home, w.project = w.path("work"), w.path("work") // projects are not in the home itself
			w.asUser(strings.ReplaceAll("cd work\n"+a.user, "~", home))
			at := a.at
			if at == "" {
				at = "project"
			}
			first := w.in(at).begin()
			if got := first.sh("cat " + a.read + " 2>/dev/null"); strings.Contains(got, canary) {
				t.Fatalf("the first session reads it: %s", got)
			}
			first.sh(strings.ReplaceAll(identityOf, "\n", "; ") + "{ " + a.agent + "; } >/dev/null 2>&1")
			if !a.living {
				first.end()
			}
			if a.then != "" {
				w.asUser("cd work\n" + a.then)
			}
			got := w.in(a.next).attack("cat " + a.read + "; git show :" + a.read)
			w.wantNoCanary(got)
			if a.living {
				first.end()
				w.wantNoCanary(w.in(a.next).attack("cat " + a.read))
			}
		})
	}
}

// What the user puts into the index between two sessions is no secret.
func TestAFileThatTheUserTracksIsShown(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.write("project/.env", "PUBLIC=1\n")
	if got := w.attack("cat .env"); got.stdout != "" {
		t.Errorf("it is not hidden: %s", got)
	}
	w.git("project", "add", "-f", ".env")
	if got := w.attack("cat .env"); got.stdout != "PUBLIC=1\n" {
		t.Errorf("it stays hidden: %s", got)
	}
}
