//go:build lab

package claude_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/account"
	"claudebox/checks/kit/gitserver"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
	"claudebox/checks/kit/window"
)

// day is a user with a project, a server that it is pushed to, and a
// login that has run out over night.
type day struct {
	*world
	account *account.Account
	server  *gitserver.Server
	before  map[string]string // all files of the home but the project's
	done    int               // pieces of work
}

const pushToken = "push-token-31d9"

func newDay(t *testing.T) *day {
	t.Helper()
	w, a := expired(t)
	d := &day{world: w, account: a}
	w.write(t, ".claude/CLAUDE.md", "Be brief.\n")
	w.write(t, ".claude/settings.json", `{"model": "opus", "hooks": {}}`)
	w.write(t, ".claude/skills/s/SKILL.md", "---\nname: s\ndescription: a skill\n---\n")
	w.write(t, ".claude/projects/-elsewhere/x.jsonl", "{}\n")
	w.write(t, ".claude.json", `{"hasCompletedOnboarding": true, "oauthAccount": {"emailAddress": "`+account.Owner+`"}}`)
	w.write(t, "project/.gitignore", "/build/\n")
	w.write(t, "project/.envrc", "use flake\n")
	w.write(t, "project/build/kept", "by the user\n")
	w.repository(t)
	w.git(t, "clone", "-q", "--bare", ".", "../served/p.git")
	d.serve(t)
	d.before = d.files(t)
	return d
}

func (d *day) serve(t *testing.T) {
	t.Helper()
	s, err := gitserver.Start(filepath.Join(d.home, "served"), pushToken)
	must.Do(t, err)
	t.Cleanup(s.Close)
	d.server = s
	d.git(t, "-C", "../served/p.git", "config", "http.receivepack", "true")
	d.git(t, "remote", "add", "origin", "https://localhost:"+s.Port+"/p.git")
	d.write(t, "roots.pem", d.read(t, "roots.pem")+string(s.Roots()))
	d.env["GIT_TOKEN"] = pushToken
	d.constants["NO_PROXY"] += ",localhost"
	d.more = map[string]any{"git": map[string]any{"hosts": map[string]string{"localhost:" + s.Port: "GIT_TOKEN"}}}
}

// files are those of the home that no session may change: all but the
// project's, the server's, and what claudebox keeps.
func (d *day) files(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(d.home, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch rel, _ := filepath.Rel(d.home, name); rel {
		case "project", "served", ".claudebox", ".cache", ".local", ".config", "side":
			if entry.IsDir() {
				return fs.SkipDir
			}
		default:
			info, err := entry.Info()
			if err != nil {
				return err
			}
			content, _ := os.ReadFile(name) // none of a folder
			list[rel] = fmt.Sprintf("%v %s", info.Mode(), content)
		}
		return nil
	})
	must.Do(t, err)
	return list
}

// works runs one session that does a piece of work by a shell.
func (d *day) works(t *testing.T, command string, words ...string) {
	t.Helper()
	d.done++
	answer := fmt.Sprintf("Done with %d.", d.done)
	d.model.Add(script.Bash(command), script.Say(answer).After(script.Succeeded()))
	d.print(t, words...).succeed(t, answer)
}

// continued wants the last request to hold what a session before has said.
func (d *day) continued(t *testing.T, number int) {
	t.Helper()
	requests := d.model.Requests()
	if last := requests[len(requests)-1]; !strings.Contains(last.Text(), fmt.Sprintf("Done with %d.", number)) {
		t.Errorf("the session does not go on from piece of work %d: %s", number, last.Prompt())
	}
}

func TestAWholeDay(t *testing.T) {
	d := newDay(t)
	d.works(t, "git switch -qc work && echo one >one && git add one && git commit -qm one && git mv one two && git commit -qm two && echo later >>two && git stash -q")
	d.works(t, "git stash pop -q && git commit -qam later && git push -q origin work", "--continue")
	d.continued(t, 1)

	// Two at once: one is open over noon, the other works in a worktree.
	d.model.Add(script.Say("Good day."))
	open := d.interact(t)
	open.Await(t, window.Ready)
	open.Enter(t, "hello")
	open.Await(t, "Good day.")
	d.works(t, `git worktree add -q .claude/worktrees/fix -b fix && (cd .claude/worktrees/fix && echo fix >fix && git add fix && git commit -qm fix &&
		git push -q origin fix) && git worktree remove .claude/worktrees/fix && rmdir -p .claude/worktrees`)
	d.write(t, loginFile, d.account.Login(time.Now().Add(-time.Minute))) // it runs out
	d.model.Add(script.Bash("git log --oneline work | wc -l"), script.Say("Four commits.").After(script.Succeeded("4")))
	open.Enter(t, "how many commits?")
	open.Await(t, "Four commits.")
	open.Leave(t)

	d.git(t, "worktree", "add", "-q", "-b", "side", "../side") // the user's own, beside the project
	side := *d.world
	side.project = filepath.Join(d.home, "side")
	d.model.Add(script.Bash("echo side >side && git add side && git commit -qm side"), script.Say("Done.").After(script.Succeeded()))
	side.print(t).succeed(t, "Done.")

	d.works(t, `git rebase -q main && git merge -q --no-edit fix && git branch -qd fix && git push -q origin work && git fetch -q origin &&
		git gc -q && touch build/made && mkdir -p ~/junk && touch /tmp/junk`)
	d.model.Add(script.Say("Good night."))
	d.print(t, "--continue").succeed(t, "Good night.")
	d.continued(t, d.done)
	d.evening(t)
}

// evening looks at what the day has left.
func (d *day) evening(t *testing.T) {
	t.Helper()
	refreshes(t, d.account, 2)
	if got := d.read(t, loginFile); !strings.Contains(got, account.Access(2)) {
		t.Errorf("the user's login is %s", got)
	}
	after := d.files(t)
	delete(after, loginFile)
	delete(d.before, loginFile)
	for name, was := range d.before {
		if after[name] != was {
			t.Errorf("%s was %q, is %q", name, was, after[name])
		}
	}
	for name := range after {
		if _, known := d.before[name]; !known {
			t.Errorf("%s is new", name)
		}
	}
	if got, want := d.git(t, "status", "--porcelain", "--ignored", "--branch"), "## work\n!! build/\n"; got != want {
		t.Errorf("git status says\n%s\nwant\n%s", got, want)
	}
	if got, want := d.git(t, "log", "--format=%an: %s", "work"), "Ada: fix\nAda: later\nAda: two\nAda: one\na: begin\n"; !sameLines(got, want) {
		t.Errorf("commits\n%s\nwant\n%s", got, want)
	}
	for _, dir := range []string{".", "../side", "../served/p.git"} {
		d.git(t, "-C", dir, "fsck", "--strict", "--no-dangling")
	}
	if here, there := d.git(t, "rev-parse", "work"), d.git(t, "-C", "../served/p.git", "rev-parse", "work"); here != there {
		t.Errorf("pushed %s; want %s", there, here)
	}
	if got, want := d.git(t, "worktree", "list", "--porcelain"), 2; strings.Count(got, "worktree ") != want {
		t.Errorf("want %d worktrees:\n%s", want, got)
	}
	for _, login := range d.server.Logins() {
		if login.Password != pushToken {
			t.Errorf("the server was shown %+v", login)
		}
	}
	var left []string
	for _, pattern := range []string{"project/.git/commondir", "project/.git/config.worktree", "project/.git/*.lock", ".claude/.*lock*"} {
		found, _ := filepath.Glob(filepath.Join(d.home, pattern))
		left = append(left, found...)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// sameLines compares texts by their lines, in any order.
func sameLines(a, b string) bool {
	count := map[string]int{}
	for line := range strings.Lines(a) {
		count[line]++
	}
	for line := range strings.Lines(b) {
		count[line]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
