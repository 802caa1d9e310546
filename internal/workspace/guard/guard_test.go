package guard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/guard"
)

// world is a project that is guarded, and the agent's own folder.
type world struct {
	*testing.T
	top, project, held string
	lost               chan error
	covered            chan string // repositories of the user's, in order
	guard              *guard.Guard
}

func newWorld(t *testing.T, known ...string) *world {
	t.Helper()
	return newWorldOf(t, func(rel string) bool { return slices.Contains(known, rel) })
}

func newWorldOf(t *testing.T, known func(rel string) bool, more ...func(*guard.Request)) *world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	w := &world{T: t, top: top, project: top + "/p", held: top + "/held", lost: make(chan error, 100), covered: make(chan string, 100)}
	w.sh("mkdir -p p/d/deep held")
	r := guard.Request{
		Path: w.project, Held: w.held, Session: "s", Lock: w.top, Folders: []string{".", "d", "d/deep"},
		Skipped: []string{"node_modules"},
		Known:   func(rel string, _ bool) bool { return known(rel) },
		Told:    func(string) {},
		Cover:   func(rel string) error { w.covered <- rel; return nil },
		Apart:   func(rel string) { w.lost <- errors.New(rel) },
		Lost:    func(err error) { w.lost <- err },
	}
	for _, add := range more {
		add(&r)
	}
	w.guard, err = guard.Open(r)
	must.Do(t, err)
	if r.Copies != "" {
		must.Do(t, w.guard.Prepare(os.Getpid()))
	}
	w.guard.Serve()
	return w
}

func (w *world) sh(script string) {
	w.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = w.top
	if w.project != "" {
		if _, err := os.Stat(w.project); err == nil {
			cmd.Dir = w.project
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// isHeld waits until a name is a link to what is held back.
func (w *world) isHeld(rel string) {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if text, _ := os.Readlink(w.project + "/" + rel); strings.HasPrefix(text, guard.InSession(guard.Inside(w.project), "s")+"/") {
			return
		}
	}
	w.Errorf("%s is not held back", rel)
}

// closed ends the guard, and opens the project.
func (w *world) closed() *beneath.Folder {
	w.Helper()
	w.guard.Close()
	root, err := beneath.Open(w.project)
	must.Do(w, err)
	w.Cleanup(root.Close)
	return root
}

// out ends the session, and returns what came out.
func (w *world) out() []string {
	w.Helper()
	root := w.closed()
	left := map[string]string{}
	names, err := guard.BringOut(root, guard.InSession(w.held, "s"), guard.Ending{
		Alone: func(string) bool { return true }, Leads: func(string, []byte) bool { return true }, Changed: func(git.Change) {},
		Left: func(rel, at string) { left[rel] = at },
	})
	for rel, at := range left { // as the report says
		w.sh("rm -f -- '" + w.project + "/" + rel + "' && mv -fT -- '" + at + "' '" + w.project + "/" + rel + "'")
		names = append(names, rel)
	}
	if err != nil {
		w.Error(err)
	}
	if stays, err := os.ReadDir(guard.SessionsIn(w.held)); len(left) == 0 && (err != nil || len(stays) > 0 && stays[0].Name() != "kept") {
		w.Errorf("there is left: %v, %v", stays, err)
	}
	select {
	case err := <-w.lost:
		w.Errorf("lost: %v", err)
	default:
	}
	return names
}

// An agent makes a deep tree, so that each folder of it is walked once for each one above it: the session's end took
// minutes.
func TestADeepTreeIsWalkedOnce(t *testing.T) {
	var looks atomic.Int32
	w := newWorldOf(t, func(string) bool { looks.Add(1); return true })
	deep := "d/" + strings.Repeat("a/", 300)
	w.sh("mkdir -p " + deep + "; echo x >" + deep + ".git")
	w.out()
	if n := looks.Load(); n == 0 || n > 10 {
		t.Errorf("the deepest folder was looked at %d times", n)
	}
}

func TestNothingThatToolsObeyUnaskedStandsThereWhileTheAgentWorks(t *testing.T) {
	const repo = "mkdir -p ../new/objects ../new/refs; echo 'ref: refs/heads/x' >../new/HEAD; echo planted >../new/config; "
	for name, tc := range map[string]struct{ plant, rel, file string }{
		"a repository, renamed":          {repo + "mv -T ../new .git", ".git", ".git/config"},
		"a repository, made":             {"mkdir .git .git/objects .git/refs; echo ref: refs/heads/x >.git/HEAD", ".git", ""},
		"a repository in a known folder": {repo + "mv -T ../new d/deep/.git", "d/deep/.git", "d/deep/.git/config"},
		"one in a new folder":            {"mkdir -p n/e/w; " + repo + "mv -T ../new n/e/w/.git", "n/e/w/.git", "n/e/w/.git/config"},
		"one in a tree that is moved":    {"mkdir -p ../t/e; " + repo + "mv -T ../new ../t/e/.git; mv ../t .", "t/e/.git", "t/e/.git/config"},
		"in a folder that was away":      {"mv d/deep ..; mkdir ../deep/n; echo planted >../deep/n/.git; sleep 0.1; mv ../deep d", "d/deep/n/.git", "d/deep/n/.git"},
		"one in capitals":                {repo + "mv -T ../new d/.GIT", "d/.GIT", "d/.GIT/config"},
		"a file that leads to one":       {"echo planted >d/.git", "d/.git", "d/.git"},
		"a file with another name":       {"echo planted >f; ln f d/.git", "d/.git", "d/.git"},
		"a link":                         {"echo planted >f; ln -s ../f d/.tool-versions", "d/.tool-versions", "f"},
		"a bare one":                     {repo + "mv -T ../new d/bare", "d/bare", "d/bare/config"},
		"one that is elsewhere":          {"mkdir d/b; echo ../c >d/b/commondir; echo planted >d/b/config; echo ref: refs/heads/x >d/b/HEAD", "d/b", "d/b/config"},
		"a bare one, step by step":       {"mkdir d/b d/b/refs; echo planted >d/b/config; echo ref: refs/heads/x >d/b/HEAD; mkdir d/b/objects", "d/b", "d/b/config"},
		"a folder that was there":        {"mkdir d/objects d/refs; echo planted >d/HEAD", "d/HEAD", "d/HEAD"},
		"it, by its last folder":         {"echo x >d/HEAD; mkdir d/objects; sleep 0.1; mkdir ../refs; echo planted >../refs/x; mv ../refs d/refs", "d/refs", "d/refs/x"},
		"another in its place":           {"mkdir -p ../new/objects ../new/refs; echo planted >../new/HEAD; sleep 0.1; rm -r d; mv ../new d", "d/HEAD", "d/HEAD"},
		"the project itself":             {"mkdir objects refs; echo planted >HEAD", "HEAD", "HEAD"},
		"settings of an editor":          {"mkdir ../v; echo planted >../v/settings.json; mv -T ../v .vscode", ".vscode", ".vscode/settings.json"},
		"settings of an agent":           {"mkdir .claude; echo planted >.claude/settings.json", ".claude/settings.json", ".claude/settings.json"},
		"in a folder that was closed":    {"mkdir -m 0 c; sleep 0.1; chmod 700 c; sleep 0.1; echo planted >c/mise.toml", "c/mise.toml", "c/mise.toml"},
		"saved as editors save":          {"echo x >d/.envrc.local; sleep 0.1; echo planted >d/t; mv d/t d/.envrc.local", "d/.envrc.local", "d/.envrc.local"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.sh(tc.plant)
			w.isHeld(tc.rel)
			if content, err := os.ReadFile(filepath.Join(w.project, tc.file)); err == nil && tc.file != "f" {
				t.Errorf("outside reads %q", content)
			}
			w.out()
			if tc.file == "" {
				return
			}
			if content, err := os.ReadFile(filepath.Join(w.project, tc.file)); err != nil || string(content) != "planted\n" {
				t.Errorf("afterwards: %q, %v", content, err)
			}
		})
	}
}

// What is moved is found where it is, what is removed is gone, and what is copied is told by the link that it is.
func TestWhatTheAgentMovesAndRemovesComesOutSo(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir a b; echo one >a/.tool-versions; echo two >b/.tool-versions")
	w.isHeld("a/.tool-versions")
	w.isHeld("b/.tool-versions")
	w.sh("mv a moved; rm b/.tool-versions")
	if names := w.out(); len(names) != 1 || names[0] != "moved/.tool-versions" {
		t.Errorf("came out: %q", names)
	}
	w.sh("[ $(cat moved/.tool-versions) = one ]; [ ! -e b/.tool-versions ]")
}

// Wherever the links are moved to, what they led to comes out there; nothing is dropped.
func TestWhatIsHeldBackIsFoundWhereverItsLinkIs(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir a b c e; for d in a b c e; do echo $d >$d/.tool-versions; done")
	for _, d := range []string{"a", "b", "c", "e"} {
		w.isHeld(d + "/.tool-versions")
	}
	w.sh("mkdir -p q/r; mv a q/r/a; mv b/.tool-versions b/versions.old; mkdir t; mv t ../t; mv c/.tool-versions ../t/x; mv ../t/x d/x; mv e/.tool-versions e/.claudebox-link; chmod 0 q/r")
	w.out()
	w.sh("chmod 700 q/r; [ $(cat q/r/a/.tool-versions) = a ]; [ $(cat b/versions.old) = b ]; [ $(cat d/x) = c ]; [ $(cat e/.git) = e ]")
	w = newWorld(t) // claudebox is killed when it has just begun to make a repository the user's
	w.sh("mkdir ../n ../n/objects ../n/refs; echo x >../n/HEAD; echo agents >../n/config; mv -T ../n d/.git")
	w.isHeld("d/.git")
	w.sh("mv d/.git d/.claudebox-link")
	w.out()
	w.sh("[ $(cat d/.git/config) = agents ]; [ ! -e d/.claudebox-link ]")
	w = newWorld(t)
	w.sh("echo kept >d/.tool-versions")
	w.isHeld("d/.tool-versions")
	w.sh("rm d/.tool-versions")
	w.out()
	w.sh("[ $(find ../held/.held/kept -name g -exec cat {} +) = kept ]")
}

// The agent writes in the folder from which the link comes, and puts a repository in the link's place.
func TestAnAgentThatRacesForTheLinkGainsNothing(t *testing.T) {
	w := newWorld(t)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			places, _ := filepath.Glob(guard.InSession(w.held, "s") + "/*" + strings.Repeat("/x", strings.Count(w.project+"/d", "/")))
			for _, place := range places {
				if text, err := os.Readlink(place + "/g"); err == nil && text != "" {
					forged, _ := os.MkdirTemp(w.top, "forged-")
					_ = os.Mkdir(forged+"/objects", 0o700)
					_ = os.Mkdir(forged+"/refs", 0o700)
					_ = os.WriteFile(forged+"/HEAD", nil, 0o600)
					_ = os.Remove(place + "/g")
					_ = os.Rename(forged, place+"/g")
				}
			}
		}
	}()
	for range 50 {
		w.sh("mkdir ../new; touch ../new/HEAD; mkdir ../new/refs ../new/objects; mv -T ../new d/.git")
		w.isHeld("d/.git")
		w.sh("rm d/.git")
	}
	close(stop)
	<-stopped
	w.guard.Close()
}

func TestTheUsersOwnStaysWhereItIs(t *testing.T) {
	w := newWorld(t, ".vscode")
	ended := w.usersGit("c") // a real one may have ended before the guard looks
	w.sh("mkdir .vscode; mkdir -p node_modules/m/.git; git init -q --bare ../r; git clone -q ../r c 2>/dev/null; git -C c worktree list")
	if got := <-w.covered; got != "c/.git" {
		t.Errorf("covered: %s", got)
	}
	ended()
	w.sh("touch d/.tool-versions")
	w.isHeld("d/.tool-versions") // after the others
	w.sh("[ -d .vscode ] && [ -d c/.git ] && [ ! -L c/.git ] && [ -d node_modules/m/.git ]")
	w.out()
}

// The files of a checkout are git's; but a repository that is put into a folder of the user's makes none of it.
func TestOnlyTheRepositoryOfANewCheckoutIsHeldBack(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir n; echo x >n/.git; echo x >d/.git")
	w.isHeld("n/.git")
	w.isHeld("d/.git")
	w.sh("echo x >n/.tool-versions; echo x >d/.tool-versions")
	w.isHeld("d/.tool-versions")
	w.sh("[ -f n/.tool-versions ] && [ ! -L n/.tool-versions ]")
	w.out()
}

// The agent writes in the folder of what is held back: it brings out nothing where it could not write.
func TestForgedPlacesComeOutNowhere(t *testing.T) {
	w := newWorld(t)
	w.sh(`mkdir ../out ../held/.held/s/7 ../held/.held/s/8 ../held/.held/s/8/closed; echo forged >../held/.held/s/7/g; printf ../out/f >../held/.held/s/7/at
		ln -s /run/claudebox/held/x/s/7/g ../out/f; printf d/f >../held/.held/s/8/at; echo forged >../held/.held/s/8/g; ln -s ../d d/f
		mkdir -m 0 ../held/.held/s/8/closed/x; ln -s /etc/passwd ../held/.held/s/9; mkdir -p ../held/.held/s/10; ln -s /etc/passwd ../held/.held/s/10/at`)
	root := w.closed()
	if names, err := guard.BringOut(root, guard.InSession(w.held, "s"), guard.Ending{
		Alone: func(string) bool { return true }, Leads: func(string, []byte) bool { return true }, Changed: func(git.Change) {},
		Left: func(rel, _ string) { t.Errorf("%s is left", rel) },
	}); err != nil || len(names) > 0 {
		t.Errorf("came out: %q, %v", names, err)
	}
	w.sh("[ -L ../out/f ] && [ -L d/f ] && [ -s /etc/passwd ]")
}

// usersGit has a git of the user's clone into a folder of the project, until ended is called.
func (w *world) usersGit(to string) (ended func()) {
	w.Helper()
	return w.program("git", "clone", "h:x", to)
}

// program has a program of the user's, which does nothing, at work in the project until ended is called.
func (w *world) program(name string, words ...string) (ended func()) {
	w.Helper()
	w.sh("[ -e ../" + name + " ] || { printf '#!/bin/sh\nread x\n' >../" + name + "; chmod +x ../" + name + "; }") // one may be reading it
	waits, end, err := os.Pipe()
	must.Do(w, err)
	cmd := exec.Command(w.top+"/"+name, words...)
	cmd.Dir, cmd.Stdin = w.project, waits
	must.Do(w, cmd.Start())
	return func() { end.Close(); _ = cmd.Wait() }
}

// While a program of the user's brings files, a repository that an agent moves there is none that it brings.
func TestAnAgentBringsARepositoryWhileFilesOfTheUsersCome(t *testing.T) {
	for _, line := range []string{"git pull", "git rebase -i main", "cp -r ../x brought", "rsync -a ../x/ brought"} {
		w, words := newWorld(t), strings.Fields(line)
		ended := w.program(words[0], words[1:]...)
		w.sh("git init -q ../evil; git -C ../evil config core.fsmonitor x; git init -q ../plain; mkdir n m; mv ../evil/.git n/.git; mv ../plain/.git m/.git")
		w.isHeld("n/.git")
		w.isHeld("m/.git")
		if len(w.covered) > 0 { // as what is the user's
			t.Errorf("%s: %s passed for the user's", line, <-w.covered)
		}
		ended()
		w.out()
	}
}

// A clone of the user's is theirs. What an agent moves there meanwhile with orders for git in it is not, and neither is
// what comes in the place of one that the user has removed.
func TestAnAgentBringsARepositoryWhileTheUsersGitClones(t *testing.T) {
	w := newWorld(t)
	ended := w.usersGit("n")
	w.sh("git init -q ../theirs; git init -q ../evil; git -C ../evil config core.fsmonitor x; mkdir n m; mv ../theirs/.git n/.git; mv ../evil/.git m/.git")
	w.isHeld("m/.git")
	ended()
	// One is made elsewhere: the guard may hold it back at any moment from where it stands.
	w.sh("rm -r n; for i in $(seq 20); do mkdir n ../r ../r/objects ../r/refs; echo ref: refs/heads/x >../r/HEAD; mv -T ../r n/.git; mv n old$i; done")
	for i := range 20 {
		if w.isHeld(fmt.Sprintf("old%d/.git", i+1)); t.Failed() {
			return
		}
	}
	if got := w.guard.Close(); len(got) > 0 {
		t.Errorf("the user's: %q", got)
	}
	if first := <-w.covered; first != "n/.git" { // that of m before it was looked at, each time
		t.Errorf("covered first: %s", first)
	}
}

// renewing is for a guard that gives repositories of the user's new files, with copies by copy.
func renewing(copy func(from, to, but string) error, more func(*guard.Request)) func(*guard.Request) {
	return func(r *guard.Request) {
		r.Copies, r.IsAlone = r.Lock, func() bool { return true }
		r.CoverCopy = func([]int, string, bool) error { return nil }
		r.Unrenewed = func(string, error) {} // it takes long on a busy machine
		r.Copy = func(in *beneath.Folder, from string, to *beneath.Folder, name, but string) error {
			return copy(in.Join(from), to.Join(name), but)
		}
		more(r)
	}
}

// Hooks and settings come while the user's git makes a repository, as `git lfs` makes some, or an agent.
func TestWhatGitRunsInTheUsersNewRepositoryIsPutAside(t *testing.T) {
	aside := make(chan string, 1)
	cp := func(from, to, _ string) error { return exec.Command("cp", "-RT", from, to).Run() }
	w := newWorldOf(t, func(string) bool { return false }, renewing(cp, func(r *guard.Request) {
		r.PutAside = func(rel string, names []string) { aside <- fmt.Sprint(rel, names) }
	}))
	one, other := w.usersGit("n"), w.usersGit("m")
	ended := func() { one(); other() }
	w.sh("git init -q ../a; git init -q ../b; mkdir n m; mv ../a/.git n/.git; mv ../b/.git m/.git")
	<-w.covered
	<-w.covered // by then the first was looked at
	w.sh("echo x >n/.git/hooks/pre-push; git -C n config core.fsmonitor evil; git -C n config user.name u")
	ended()
	must.Await(t, "something put aside", func() bool { return len(aside) > 0 })
	if got := <-aside; got != "n/.git[hooks config]" {
		t.Errorf("put aside: %s", got)
	}
	w.sh("cd n/.git; [ ! -e hooks ]; [ -e hooks.claudebox-aside/pre-push ]; grep -q evil config.claudebox-aside; " +
		"[ \"$(git config core.fsmonitor)\" = '' ]; [ $(git config user.name) = u ]; git -C .. status")
	w.sh("(cd -- n/.git && for f in hooks config; do mv -fT -- $f.claudebox-aside $f; done)")
	if got := w.guard.Close(); !slices.Contains(got, "n/.git") { // with all that is set there since
		t.Errorf("the user's: %q", got)
	}
}

// An agent moves the folder of the user's new repository to and fro, each time that it is copied: it would never get new
// files.
func TestAnAgentMovesTheUsersNewRepositoryToAndFro(t *testing.T) {
	var w *world
	copies, held := atomic.Int64{}, make(chan string, 1)
	at, other := "n", "m"
	move := func(from, to, _ string) error {
		err := exec.Command("cp", "-RT", from, to).Run()
		copies.Add(1)
		must.Do(t, os.Rename(w.project+"/"+at, w.project+"/"+other))
		at, other = other, at
		return err
	}
	w = newWorldOf(t, func(string) bool { return false }, renewing(move, func(r *guard.Request) {
		r.HeldUsers = func(rel string) { held <- rel }
	}))
	ended := w.usersGit("n")
	w.sh("git init -q ../a; mkdir n; mv ../a/.git n/.git")
	<-w.covered
	ended()
	const most = 100
	must.Await(t, "it held back, or too many copies", func() bool { return len(held) > 0 || copies.Load() > most })
	if len(held) == 0 {
		t.Fatal("it is not held back")
	}
	w.isHeld(<-held)
	if got := w.guard.Close(); len(got) > 0 {
		t.Errorf("the user's: %q", got)
	}
}

// An agent takes the folder of the user's new repository to where nothing is watched, for a moment.
func TestAnAgentHidesTheUsersNewRepositoryForAMoment(t *testing.T) {
	project := ""
	hidden := make(chan bool, 1)
	hide := sync.OnceFunc(func() {
		must.Do(t, os.Rename(project+"/n", project+"/node_modules/n"))
		hidden <- true
	})
	cp := func(from, to, _ string) error { hide(); return exec.Command("cp", "-RT", from, to).Run() }
	w := newWorldOf(t, func(string) bool { return false }, renewing(cp, func(r *guard.Request) { project = r.Path }))
	ended := w.usersGit("n")
	w.sh("git init -q ../a; mkdir n node_modules; mv ../a/.git n/.git; stat -c %i n/.git >../first")
	<-w.covered
	ended()
	<-hidden
	w.sh("sleep 0.2; mv node_modules/n n")
	must.Await(t, "another git folder", func() bool {
		info, err := os.Lstat(w.project + "/n/.git")
		return err == nil && fmt.Sprintln(info.Sys().(*syscall.Stat_t).Ino) != must.Read(t, w.top+"/first")
	})
	if got := w.guard.Close(); len(got) != 1 {
		t.Errorf("the user's: %q", got)
	}
}

// A copy of the user's new repository takes too long, as an agent fills its objects: they are moved, and all else is
// new.
func TestTheObjectsOfALargeRepositoryAreMoved(t *testing.T) {
	slow := func(from, to, but string) error {
		if but == "" {
			return context.DeadlineExceeded
		}
		return exec.Command("bash", "-ec", `cp -RT "$1" "$2"; rm -r "$2/$3"`, "", from, to, but).Run()
	}
	w := newWorldOf(t, func(string) bool { return false }, renewing(slow, func(*guard.Request) {}))
	ended := w.usersGit("n")
	w.sh("git init -q ../theirs; echo x >../theirs/.git/objects/large; mkdir n; mv ../theirs/.git n/.git")
	if rel := <-w.covered; rel != "n/.git" {
		t.Fatalf("covered: %s", rel)
	}
	inode := func(at string) uint64 {
		info, err := os.Lstat(w.project + "/n/.git" + at)
		if err != nil {
			return 0
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	first, large, config := inode(""), inode("/objects/large"), inode("/config")
	ended()
	must.Await(t, "another git folder", func() bool { return inode("") != first && inode("/objects/large") != 0 })
	if inode("/objects/large") != large || inode("/config") == config {
		t.Error("its objects are not moved, or all else is not new")
	}
	w.sh("git -C n status")
	if got := w.guard.Close(); len(got) != 1 || got[0] != "n/.git" {
		t.Errorf("the user's: %q", got)
	}
}

// An end is cut short while a repository becomes the user's, and the next one cannot finish that either.
func TestAnEndIsCutShortAndTheRepositoryIsFoundByTheNextOnes(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir -p ../new/objects ../new/refs; echo ref: refs/heads/x >../new/HEAD; mkdir n; mv -T ../new n/.git")
	w.isHeld("n/.git")
	root := w.closed()
	if _, _, err := guard.Repositories(root, guard.InSession(w.held, "s"))[0].Unlink(root); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var left []string
		_, err := guard.BringOut(root, guard.InSession(w.held, "s"), guard.Ending{
			Alone: func(string) bool { return true }, Leads: func(string, []byte) bool { return true },
			Changed: func(git.Change) {},
			Left:    func(rel, _ string) { left = append(left, rel) },
		})
		if err != nil || len(left) != 1 || left[0] != "n/.git" || len(guard.Repositories(root, guard.InSession(w.held, "s"))) != 1 {
			t.Fatalf("left: %q, %v", left, err)
		}
	}
}

// An end is cut short while a repository becomes the user's, who makes one of their own there before the next one.
func TestAnEndIsCutShortAndTheUserMakesARepositoryThere(t *testing.T) {
	for kind, script := range map[string]string{"a folder": "git init -q n", "a file": "echo gitdir: ../theirs >n/.git"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			w.sh("mkdir -p ../new/objects ../new/refs; echo ref: refs/heads/x >../new/HEAD; mkdir n; mv -T ../new n/.git")
			w.isHeld("n/.git")
			root := w.closed()
			held := guard.Repositories(root, guard.InSession(w.held, "s"))
			back, _, err := held[0].Unlink(root)
			must.Do(t, err)
			w.sh(script)
			if err := back(); err == nil {
				t.Error("the link replaces it")
			}
			left := ""
			names, err := guard.BringOut(root, guard.InSession(w.held, "s"), guard.Ending{
				Alone: func(string) bool { return true }, Leads: func(string, []byte) bool { return true },
				Changed: func(git.Change) {}, Left: func(_, at string) { left = at },
			})
			if err != nil || len(names) > 0 || left != held[0].At {
				t.Errorf("came out: %q, %v; left in %q", names, err, left)
			}
			w.sh("[ -e n/.git/HEAD ] || grep theirs n/.git; [ -L n/.claudebox-link ]; ls " + left + "/objects")
		})
	}
}

func TestAGuardOnAnotherFileSystemIsRefused(t *testing.T) {
	held, err := os.MkdirTemp("/dev/shm", "claudebox-guard-")
	must.Do(t, err)
	defer os.RemoveAll(held)
	_, err = guard.Open(guard.Request{Path: t.TempDir(), Held: held, Session: "s", Lock: held})
	if err == nil || !strings.Contains(err.Error(), guard.ErrApart.Error()) {
		t.Errorf("got %v", err)
	}
}

// A launch in a folder below brings what is held back there to its own place, and is killed on the way.
func TestALaunchIsKilledWhileItBringsWhatIsHeldBack(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir -p ../new/objects ../new/refs; echo ref: refs/heads/x >../new/HEAD; mkdir d/n; mv -T ../new d/n/.git")
	w.isHeld("d/n/.git")
	below := w.held + "/d"
	must.Do(t, os.Mkdir(below, 0o700))
	bring := func() string {
		t.Helper()
		must.Do(t, guard.Gather("", w.project+"/d", below, []string{guard.SessionsIn(w.held), guard.SessionsIn(below)}))
		text, err := os.Readlink(w.project + "/d/n/.git")
		must.Do(t, err)
		return text
	}
	before, err := os.Readlink(w.project + "/d/n/.git")
	must.Do(t, err)
	want := bring()
	if !strings.HasPrefix(want, guard.Inside(w.project+"/d")+"/") {
		t.Errorf("it leads to %s", want)
	}
	w.sh("rm d/n/.git; ln -s " + before + " d/n/.git; ln -s " + want + " d/n/.claudebox-link") // before the link was exchanged
	if got := bring(); got != want {
		t.Errorf("it leads to %s, want %s", got, want)
	}
	w.sh("[ ! -e d/n/.claudebox-link ] && [ ! -L d/n/.claudebox-link ]; [ $(find " + guard.InSession(below, "s") + "/1 -path '*/g/HEAD' -exec cat {} + | wc -l) = 1 ]")
}

// Several sessions have one folder: each guard leaves what another one holds back, or the end of one session would cut
// the chain of links to a repository of another.
func TestGuardsOfOneFolderHoldEachThingOnce(t *testing.T) {
	w := newWorld(t)
	var told sync.Map
	for _, session := range []string{"t", "u"} {
		r := w.guard.Request
		r.Session = session
		r.Told = func(rel string) {
			if first, again := told.LoadOrStore(rel, session); again {
				t.Errorf("%s is told by %v and %s", rel, first, session)
			}
		}
		other, err := guard.Open(r)
		must.Do(t, err)
		other.Serve()
		t.Cleanup(func() { other.Close() })
	}
	const repositories = 60
	w.sh(fmt.Sprintf("for i in $(seq %d); do mkdir -p r$i ../n/objects ../n/refs; echo x >../n/HEAD; mv -T ../n r$i/.git; done", repositories))
	for i := range repositories {
		text := ""
		for end := time.Now().Add(20 * time.Second); text == "" && time.Now().Before(end); time.Sleep(time.Millisecond) {
			text, _ = os.Readlink(fmt.Sprintf("%s/r%d/.git", w.project, i+1))
		}
		at := w.held + strings.TrimPrefix(text, guard.Inside(w.project))
		if info, err := os.Lstat(at); err != nil || !info.IsDir() {
			t.Errorf("r%d leads to %s: %v, %v", i+1, at, info, err)
		}
	}
}

// A .git file leads to the repository of another session that lives, and is left to the end of that.
func TestAFileThatLeadsToAnotherSessionsRepositoryIsLeft(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir sub; echo gitdir: ../top/.git/modules/sub >../f; mv ../f sub/.git")
	w.isHeld("sub/.git")
	root := w.closed()
	names, err := guard.BringOut(root, guard.InSession(w.held, "s"), guard.Ending{
		Alone: func(string) bool { return false }, Leads: func(string, []byte) bool { return false },
		Changed: func(c git.Change) { t.Errorf("it is %s now", c.To) }, Left: func(string, string) {},
	})
	if text, none := os.Readlink(w.project + "/sub/.git"); err != nil || len(names) > 0 || none != nil {
		t.Errorf("came out: %q, %v; the link is %q", names, err, text)
	}
}

// The agent of a session in a folder above puts other things where a session below has what is held back.
func TestAnAgentPlantsInThePlaceOfWhatIsHeldBackBelow(t *testing.T) {
	for what, plant := range map[string]string{
		"a link": "ln -s $OUT a", "a file": "touch a", "a pipe": "mkfifo a", "a closed folder": "mkdir -m 0 a",
		"a link below": "mkdir a; ln -s $OUT a/b", "a closed one above": "mkdir -p a/b; chmod 0 a",
	} {
		t.Run(what, func(t *testing.T) {
			top, err := filepath.EvalSymlinks(t.TempDir())
			must.Do(t, err)
			w := &world{T: t, top: top}
			w.sh("mkdir home home/held out; chmod 755 out; cd home/held; OUT=../../out; " + plant)
			held := guard.Held(top+"/home", "/a/b")
			must.Do(t, guard.Make(top+"/home", held))
			info, err := os.Lstat(held)
			if err != nil || !info.IsDir() {
				t.Errorf("it is %v, %v", info, err)
			}
			w.sh("touch home/held/a/b/x; [ -z \"$(ls out)\" ]; [ $(stat -c %a out) = 755 ]")
		})
	}
}
