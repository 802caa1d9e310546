package aftermath_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// covered reports whether a launch in a folder of the home hides a file, or lays a copy without secrets over it.
func (w world) covered(folder, file string) bool {
	w.t.Helper()
	p, err := project.Open(project.Request{Dir: w.path(folder), Home: w.home, UID: os.Getuid(), Memory: aftermath.NewMemory(w.path(".claudebox"))})
	must.Do(w.t, err)
	at := w.path(filepath.Join(folder, file))
	return slices.ContainsFunc(p.Mounts, func(m project.Mount) bool {
		return m.Path == at && (m.Mode == project.Hidden || m.Mode == project.Made) ||
			m.Mode == project.Inner && pathname.Below(at, m.Path)
	})
}

// TestASecretThatWasCoveredIsUncovered: the next launch covers it whatever the session did to the folder.
func TestASecretThatWasCoveredIsUncovered(t *testing.T) {
	t.Parallel()
	const token = "echo ghp_abcdefghijklmnopqrstuvwxyz0123456789 >"
	const secret = "echo DB_PASSWORD=hunter2xyz9 >"
	// index holds a name that is nothing of the file's content.
	const index = `add() { git -C $1 update-index --add --cacheinfo 100644,$(git -C $1 hash-object -w --stdin </dev/null),$2; }; `
	for name, tc := range map[string]struct{ user, agent, then, folder, file string }{
		"by so many small files that none is looked into": {token + "notes.txt", "for n in $(seq 1100); do echo xxxxxxxxxxxxxxxxxxxxxxxx >0$n.txt; done", "", "p", "notes.txt"},
		"by an index, and the project is renamed":         {"git init -q; " + secret + ".env", index + "add . .env", "mv ../p ../q", "q", ".env"},
		"by the index where a closed pointer leads": {
			"mkdir conf; " + secret + "conf/.env",
			index + `git init -q r; echo x >r/.env; add r .env; echo "gitdir: ../r/.git" >conf/.git; chmod 0 conf/.git`, "", "p", "conf/.env",
		},
		"by a commit, in a worktree that is made of it": {
			"git init -q; git commit -qm x --allow-empty; " + secret + ".env", index + "add . .env; git branch b $(git commit-tree -m y $(git write-tree)); git rm -q --cached .env",
			"git worktree add -q ../t b; cp .env ../t", "t", ".env",
		},
		"by a commit, and its name tells nothing": {
			"git init -q; git commit -qm x --allow-empty; " + token + "notes.txt", index + "add . notes.txt; git branch b $(git commit-tree -m y $(git write-tree)); git rm -qf --cached notes.txt",
			"git reset -q b", "p", "notes.txt",
		},
		"by the end of a link to its folder": {"mkdir notes; ln -s notes secrets; echo x >notes/a.yml", "rm secrets", "", "p", "notes/a.yml"},
		"by another end of such a link":      {"mkdir notes o; ln -s notes .aws; echo x >notes/credentials", "ln -sfn o .aws", "mv ../p ../q", "q", "notes/credentials"},
		"by the configuration of its repository, tracked": {
			"git init -q; d=target/d; git init -q --bare $d; echo 'x of https://u:passw0rd@h/x' >$d/FETCH_HEAD", "git add -f target/d/config", "", "p", "target/d/FETCH_HEAD",
		},
		"by the configuration of a bare repository, all in the index": {
			"git init -q; git init -q --bare d; git -C d config http.extraHeader x; git add -f d/HEAD", index + "add . d/config", "", "p", "d/config",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, killed := range []bool{false, true} {
				w := newWorldHere(t)
				w.sh(tc.user)
				if !w.covered("p", tc.file) {
					t.Fatal("it is not covered at first")
				}
				s := w.begin()
				w.sh(tc.agent)
				if killed {
					s.Kill()
				}
				w.sh(tc.then)
				if killed {
					w.sweep(w.path(tc.folder))
				} else {
					s.End()
				}
				if !w.covered(tc.folder, tc.file) {
					t.Errorf("killed: %t: the next session reads it", killed)
				}
			}
		})
	}
}

// A secret is away for a session, which commits its name and an empty file. When it is back, it is what it was.
func TestASecretThatWasAwayIsUncovered(t *testing.T) {
	t.Parallel()
	const token = "echo ghp_abcdefghijklmnopqrstuvwxyz0123456789 >"
	const agent = "echo >notes.txt; git add -f notes.txt; git commit -qm notes; rm -f notes.txt"
	for name, tc := range map[string]struct{ user, away, back string }{
		"in a stash":        {token + "notes.txt", "git stash -qu", "git stash pop -q"},
		"elsewhere":         {"echo notes.txt >.gitignore; " + token + "notes.txt", "mv notes.txt ../safe", "mv ../safe notes.txt"},
		"behind a link":     {"ln -s notes.txt .env; " + token + "notes.txt", "mv notes.txt ../safe", "mv ../safe notes.txt"},
		"for two sessions":  {token + "notes.txt", "mv notes.txt ../safe", "git reset -q --hard; rm notes.txt"},
		"and is made again": {token + "notes.txt", "rm notes.txt", token + "notes.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; git commit -qm x --allow-empty; " + tc.user)
			if !w.covered("p", "notes.txt") {
				t.Fatal("it is not covered at first")
			}
			w.session("true")
			w.sh(tc.away)
			w.session(agent)
			w.sh(tc.back)
			if name == "for two sessions" {
				w.session("true")
				w.sh("mv ../safe notes.txt")
			}
			if !w.covered("p", "notes.txt") {
				t.Error("the next session reads it")
			}
		})
	}
}

// TestATrackedFileBehindALinkToAFolderIsTheAgents goes on with it: it is covered when the user has written to it.
func TestATrackedFileBehindALinkToAFolderIsTheAgents(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir notes; ln -s notes secrets; echo a >notes/x.yml; git add .")
	for _, step := range []struct {
		user, agent string
		covered     bool
	}{{"", "echo b >notes/x.yml", false}, {"echo c >notes/x.yml", "", true}} {
		w.session(step.agent)
		w.sh(step.user)
		if w.covered("p", "notes/x.yml") != step.covered {
			t.Errorf("%+v", step)
		}
	}
}

// TestASessionEndsWhileTheNextOneAsks: what the first one's agent has made was seen before it was taken out.
func TestASessionEndsWhileTheNextOneAsks(t *testing.T) {
	w := newWorld(t)
	const plant = `c() { git config -f target/d/config "$@"; }; c core.fsmonitor "$EVIL"; c core.bare false; c core.worktree ..`
	w.sh("git init -q; git init -q --bare target/d")
	first := w.begin()
	w.sh(plant)
	seen := w.open()
	first.End()
	second, err := aftermath.Begin(w.path(".claudebox"), seen, aftermath.Agent{})
	must.Do(t, err)
	second.Follow()
	w.sh(plant)
	os.Remove(w.path("taken"))
	wantLines(t, second.End())
	w.sh("git -C target/d status")
	w.wantNotTaken()
}

// A session commits a template with a secret's name, anywhere. The user checks it out and fills it.
func TestAFileThatASessionMadeAwaitsTheUsersSecret(t *testing.T) {
	t.Parallel()
	const commit = "echo DB_PASSWORD= >.env; git add .env; git commit -qm template; "
	for name, tc := range map[string]struct{ agent, user, folder string }{
		"in place":               {commit, "true", "p"},
		"in a new worktree":      {commit, "git worktree add -q ../p2 -b o", "p2"},
		"on another branch":      {"git switch -qc o; " + commit + "git switch -q main", "git switch -q o", "p"},
		"on a detached branch":   {commit + "git branch o; git reset -q --hard HEAD~1", "git cherry-pick o", "p"},
		"in a stash":             {"echo DB_PASSWORD= >.env; git add .env; git stash -q", "git stash pop -q", "p"},
		"in a clone":             {commit, "git clone -q . ../p2", "p2"},
		"in a copy":              {commit, "cp -r . ../p2", "p2"},
		"and a session edits it": {commit + "echo PORT=1 >>.env", "true", "p"},
	} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed: %t", name, killed), func(t *testing.T) {
				w := newWorld(t)
				w.sh("git init -qb main; echo x=y >.npmrc; git add .; git commit -qm x")
				s := w.begin()
				w.sh(tc.agent)
				if killed {
					s.Kill()
				} else {
					s.End()
				}
				w.sh(tc.user)
				if !killed && w.covered(tc.folder, ".env") {
					t.Error("it is hidden before it is changed")
				}
				w.sh("echo DB_PASSWORD=hunter2xyz9 >../" + tc.folder + "/.env")
				if killed {
					w.sweep(w.path(tc.folder))
				}
				if !w.covered(tc.folder, ".env") {
					t.Error("the next session reads it")
				}
				w.sh("git -C ../" + tc.folder + " add .env")
				if w.covered(tc.folder, ".env") {
					t.Error("it is hidden, although git has it")
				}
			})
		}
	}
}

// The user's own repository tracks defaults, and the user puts secrets there that are not to be committed.
func TestATrackedFileHoldsTheUsersSecret(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; mkdir d; echo DB_PASSWORD= >.env; echo x >plain; ln -s ../.env d/.env; ln -s ../plain d/id_rsa; git add .; git commit -qm x")
	for _, file := range []string{".env", "plain"} {
		if w.covered("p", file) {
			t.Errorf("%s is hidden, although git has it", file)
		}
	}
	w.session("true")
	w.sh("echo DB_PASSWORD=hunter2xyz9 >.env; echo secret >plain")
	for _, file := range []string{".env", "plain"} {
		if !w.covered("p", file) {
			t.Errorf("the session reads %s", file)
		}
	}
	w.session("true") // which cannot read them, either
	w.sh("git init -q ../q; cd ../q; touch .env; git add .; cp ../p/.env .")
	for _, folder := range []string{"p", "q"} {
		if !w.covered(folder, ".env") {
			t.Errorf("a later session in %s reads it", folder)
		}
	}
}

// An index has the name of a secret for which there is no file yet: the user's commit would take it along.
func TestANameInAnIndexAwaitsTheUsersSecret(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git commit -qm x --allow-empty; echo '.env*' >.gitignore")
	r := w.session("git update-index --add --cacheinfo 100644,$(git hash-object -w --stdin </dev/null),.env.production")
	wantLines(t, r, "staged .env.production")
}
