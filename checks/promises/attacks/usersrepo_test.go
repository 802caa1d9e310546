//go:build lab

package attacks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/identity"
)

// opened is what the agent has open of the user's, and was in time with.
type opened struct {
	at    string // below the project
	first uint64 // its inode, as git made it
}

// isAnother reports whether something else is there by now.
func (o opened) isAnother(w *world) bool { return w.inode(o.at) != o.first }

func (w *world) inode(at string) uint64 {
	info, err := os.Lstat(w.path("project/" + at))
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// keepOpen has the agent open what is called .git in each folder of a row as soon as it is there, and run a script at
// once. When it is told to, it writes its orders by what it has open.
func (l *live) keepOpen(atOnce, script string) {
	l.w.t.Helper()
	l.sh(fmt.Sprintf(`mkdir -p node_modules; git init -q node_modules/m; git -C node_modules/m config core.fsmonitor "%s"
top=$PWD; first() { %s; }; write() { %s; }
( for ((n = 1; ; n++)); do
	until exec 7<"$top/new-$n/.git"; do [ ! -e go ] || break 2; done 2>/dev/null
	first; stat -Lc %%i /dev/fd/7 >inode; mv inode "inode-$n"
	( until [ -e go ]; do sleep 0.05; done; write; echo x >written ) 2>/dev/null &
done; wait; echo x >done ) &`, l.w.orders(), atOnce, script))
}

// make has the user's git make new-N, some times, until the agent was in time. words are those of git, of which the last
// is the folder. git waits until the agent has opened what it makes, as in a large repository.
func (w *world) make(words func(to string) []string) (list []opened) {
	w.t.Helper()
	const enough, most = 2, 30
	for n := 1; len(list) < enough && n < most; n++ {
		to := fmt.Sprint("new-", n)
		ended := make(chan outcome)
		go func() { ended <- w.git("project", words(to)...) }()
		must.Await(w.t, to, func() bool { return w.inode(to+"/.git") != 0 })
		o := opened{to + "/.git", w.inode(to + "/.git")}
		inode := fmt.Sprint("project/inode-", n)
		must.Appear(w.t, w.path(inode))
		must.Write(w.t, w.path("ready-"+to), "")
		if got := <-ended; got.status != 0 {
			w.t.Fatalf("your git: %s", got.stderr)
		}
		if strings.TrimSpace(w.read(inode)) == fmt.Sprint(o.first) {
			list = append(list, o)
		}
	}
	if len(list) < enough {
		w.t.Fatal("the agent was never in time")
	}
	return list
}

// clone is for [world.make].
func (w *world) clone(to string) []string {
	wait := fmt.Sprintf("--upload-pack=until [ -e %s ]; do sleep 0.01; done; git-upload-pack", w.path("ready-"+to))
	return []string{"clone", "-q", wait, "file://" + w.path("from"), to}
}

// worktrees is [world.make] of worktrees, each of which has another file by then.
func (w *world) worktrees() []opened {
	w.t.Helper()
	hook := fmt.Sprintf("#!/bin/sh\nuntil [ -e %s-$(basename $PWD) ]; do sleep 0.01; done\n", w.path("ready"))
	must.Program(w.t, w.path("project/.git/hooks/post-checkout"), hook)
	list := w.make(func(to string) []string { return []string{"worktree", "add", "-q", to} })
	for _, o := range list {
		must.Await(w.t, "another file", func() bool { return o.isAnother(w) })
	}
	return list
}

// obeysNothing has the agent write what it can, and asks the user's git then and after the session.
func (l *live) obeysNothing(list []opened) {
	l.w.t.Helper()
	l.sh(writeAll)
	l.w.statuses(list)
	l.end()
	l.w.statuses(list)
}

// writeAll has the agent of [live.keepOpen] write, and waits for that.
const writeAll = "touch go; until [ -e done ]; do sleep 0.05; done"

const inSettings = `printf '[core]\n\tfsmonitor = "%s"\n' "$(git -C "$top/node_modules/m" config core.fsmonitor)" >>/dev/fd/7/config`

// users is a user whose agent waits for what git makes.
func users(t *testing.T, atOnce, script string) (*world, *live) {
	w := newWorld(t)
	w.git("", "init", "-q", "from")
	w.git("from", "commit", "-q", "--allow-empty", "-m", "x")
	w.git("project", "init", "-q")
	w.git("project", "commit", "-q", "--allow-empty", "-m", "x")
	l := w.begin()
	l.keepOpen(atOnce, script)
	return w, l
}

// What covers a repository that was there when the session began goes with it. The one that the user makes in its place
// was left open to the agent, to the end.
//
// Promise: nothing planted for your git.
func TestTheAgentWritesInARepositoryThatTheUserMakesAnew(t *testing.T) {
	for name, tc := range map[string]struct{ at, anew string }{
		"a clone":           {"n/.git", "rm -rf n; git clone -q ../from n"},
		"a copy":            {"n/.git", "mv n/.git ../away; cp -a ../away n/.git"},
		"one that is moved": {"n/.git", "git clone -q ../from ../away; rm -rf n; mv ../away n"},
		"a bare one":        {"b", "rm -rf b; git clone -q --bare ../from b"},
		"the project's own": {".git", "rm -rf .git; git init -q"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.git("", "init", "-q", "from")
			w.git("from", "commit", "-q", "--allow-empty", "-m", "x")
			w.git("", "clone", "-q", "from", "project")
			w.git("project", "clone", "-q", "../from", "n")
			w.git("project", "clone", "-q", "--bare", "../from", "b")
			l := w.begin()
			if got := w.run(nil, "/bin/sh", "-euc", tc.anew); got.status != 0 {
				t.Fatal(got)
			}
			l.sh("for i in $(seq 20); do printf '[core]\n\tfsmonitor = touch " + w.path(taken) + "; false\n' >>" + tc.at + "/config; sleep 0.1; done")
			status := func() {
				w.git("project/"+strings.TrimSuffix(tc.at, ".git"), "status")
				w.wantNotTaken()
			}
			status()
			l.end()
			status()
		})
	}
}

// statuses asks the user's git in each folder. It stops where a repository is held back.
func (w *world) statuses(list []opened) {
	w.t.Helper()
	for _, o := range list {
		if got := w.git("project/"+strings.TrimSuffix(o.at, "/.git"), "status"); got.status != 0 && !strings.Contains(got.stderr, "holds this .git back") {
			w.t.Errorf("your git: %s", got.stderr)
		}
	}
	w.wantNotTaken()
}

// The agent has the git folder of the user's clone open before that is covered, and writes there by what it has open,
// while the session runs.
//
// Promise: nothing planted for your git.
func TestTheAgentKeepsTheGitFolderOfTheUsersCloneOpen(t *testing.T) {
	w, l := users(t, "true", inSettings)
	list := w.make(w.clone)
	for _, o := range list {
		must.Await(t, "another git folder", func() bool { return o.isAnother(w) })
	}
	for _, o := range list {
		if got := l.sh("ls -A " + o.at); got != "" {
			t.Errorf("the agent has %s: %s", o.at, got)
		}
	}
	l.sh(writeAll)
	w.statuses(list)
	for _, o := range list {
		must.Program(t, w.path("project/"+o.at+"/hooks/pre-push"), "#!/bin/sh\n")
	}
	said := strings.Join(strings.Fields(l.end()), " ")
	for _, o := range list {
		if !w.exists("project/"+o.at+"/hooks/pre-push") || strings.Contains(said, "taken out "+o.at) {
			t.Errorf("your own hook in %s did not stay: %s", o.at, said)
		}
	}
	w.statuses(list)
	if w.exists(".claudebox/claudebox-renewed") {
		t.Error("the folder for copies is left")
	}
}

// A folder that the user clones into is inside at several places: the agent writes in the clone's git folder by each.
//
// Promise: nothing planted for your git.
func TestTheAgentReachesTheUsersCloneByAnotherMountOfItsFolder(t *testing.T) {
	for name, tc := range map[string]struct {
		from   string // where the session begins, below the home
		flags  string
		before string // what the agent does
		in     string // where the user clones to, below the home
		seen   string // where that is inside
		keeps  bool   // its first files
	}{
		"a part of the project":                {"project", "--mount-rw deep:/alias", "true", "project/deep", "deep /alias", false},
		"a part to read":                       {"project", "--mount-ro deep:/alias", "true", "project/deep", "deep /alias", false},
		"two parts, one in another":            {"project", "--mount-rw deep:/a --mount-rw deep/er:/b --mount-rw deep/er:/a/er", "true", "project/deep/er", "deep/er /a/er /b", false},
		"a part that is moved":                 {"project", "--mount-rw deep:/alias", "mv deep moved", "project/moved", "moved /alias", false},
		"a folder and a part of it":            {"project", "--mount-rw ../given --mount-rw ../given/part", "true", "given/part", "../given/part", false},
		"a part of a folder that is elsewhere": {"project", "--mount-rw ../given:/all --mount-rw ../given/part", "true", "given/part", "../given/part /all/part", false},
		"a project in a given folder":          {"given/part", "--mount-rw ~/given", "true", "given/part", ".", false},
		"a folder with a secret":               {"project", "", "true", "project/pinned", "pinned", false},
		"beside one that is closed":            {"project", "", "true", "project/deep", "deep", false},
		"in one that was closed":               {"project", "", "chmod 755 shut", "project/shut", "shut", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.git("", "init", "-q", "from")
			w.git("from", "commit", "-q", "--allow-empty", "-m", "x")
			w.git("project", "init", "-q")
			w.write("project/deep/er/file", "x")
			w.write("given/part/file", "x")
			w.write("project/pinned/.env", "KEY=secret\n")
			w.write("project/shut/.env", "KEY=secret\n")
			must.Do(t, os.Chmod(w.path("project/shut"), 0o555))
			t.Cleanup(func() { os.Chmod(w.path("project/shut"), 0o755) })
			l := w.in(tc.from).begin(strings.Fields(tc.flags)...)
			l.sh(tc.before)
			o := opened{at: "../" + tc.in + "/new/.git"}
			ended := make(chan outcome)
			go func() { ended <- w.git(tc.in, w.clone("new")...) }()
			must.Await(t, "a git folder", func() bool { o.first = w.inode(o.at); return o.first != 0 })
			inEach := func(does string) string {
				return "for d in " + tc.seen + "; do cd \"$d/new/.git\" && { " + does + "; }; cd \"$OLDPWD\"; done 2>&1"
			}
			l.until(inEach("ls -A"), "")
			l.sh("for d in " + tc.seen + "; do until [ -e stop ]; do [ ! -w $d/new/.git/HEAD ] || touch reached; done & done")
			must.Write(t, w.path("ready-new"), "")
			if got := <-ended; got.status != 0 {
				t.Fatalf("your git: %s", got.stderr)
			}
			must.Await(t, "another git folder", func() bool { return tc.keeps || o.isAnother(w) })
			l.until(inEach("ls -A"), "")
			if got := l.sh("touch stop; wait; ls reached 2>/dev/null"); got != "" {
				t.Error("the agent could write there for a moment")
			}
			l.sh(inEach(`printf '[core]\n\tfsmonitor = "` + w.orders() + `"\n' >>config`))
			w.statuses([]opened{o})
			said := l.end()
			if strings.Contains(said, "the session ends") || strings.Count(said, "it is yours, made while") != 1 {
				t.Error(said)
			}
			if o.isAnother(w) == tc.keeps {
				t.Error("it has other files, or its first ones")
			}
			w.statuses([]opened{o})
		})
	}
}

// The agent names another machine in the user's clone before that is covered: the user would push there.
func TestTheAgentNamesAnotherOriginInTheUsersClone(t *testing.T) {
	words := []string{
		"for ((i = 0; i < 100; i++)); do grep -qs url /dev/fd/7/config && break; sleep 0.01; done",
		"git config -f /dev/fd/7/config --remove-section remote.origin",
	}
	for _, remote := range []string{"origin = x", "b", "c", "d", "origin"} {
		words = append(words, fmt.Sprintf("git config -f /dev/fd/7/config 'remote.%s.url' "+
			`$'https://me:passw0rd@%[1]s.example/x\e[2J\'; all is well' 2>/dev/null`, remote))
	}
	w, l := users(t, strings.Join(words, "; "), "true")
	list := w.make(w.clone)
	for _, o := range list {
		must.Await(t, "another git folder", func() bool { return o.isAnother(w) })
	}
	said := l.end()
	for _, o := range list {
		at := w.path("project/" + strings.TrimSuffix(o.at, "/.git"))
		if want := at + ": it is yours, made while the session ran; its remotes: 'origin = https://origin.example/x\\x1b[2J\\x27; all is well', 'origin = x = https://"; !strings.Contains(said, want) {
			t.Errorf("it lacks %q: %s", want, said)
		}
	}
	if strings.Contains(said, "passw0rd") {
		t.Error(said)
	}
}

// The agent names a repository of its own as the origin of the user's clone, whose hooks a push of the user's would run.
//
// Promise: nothing planted for your git.
func TestTheAgentLeadsThePushOfTheUsersCloneToItsOwnRepository(t *testing.T) {
	w, l := users(t, "for ((i = 0; i < 100; i++)); do grep -qs url /dev/fd/7/config && break; sleep 0.01; done; "+
		"git config -f /dev/fd/7/config remote.origin.url \"$top/node_modules/m\"", "true")
	l.sh(fmt.Sprintf(`h=node_modules/m/.git/hooks; mkdir -p $h; printf '#!/bin/sh\n%%s\n' "%s" >$h/pre-receive; chmod +x $h/pre-receive`, w.orders()))
	for _, o := range w.make(w.clone) {
		must.Await(t, "another git folder", func() bool { return o.isAnother(w) })
		w.git("project/"+strings.TrimSuffix(o.at, "/.git"), "push", "-q", "origin", "HEAD:refs/heads/new")
	}
	l.end()
	w.wantNotTaken()
}

// Where another session has the folder, the user's clone keeps its files; what is written there is found at the end.
//
// Promise: nothing planted for your git.
func TestTheAgentKeepsTheGitFolderOfTheUsersCloneOpenBesideAnotherSession(t *testing.T) {
	w, l := users(t, "true", inSettings)
	other := w.begin()
	list := w.make(w.clone)
	l.sh(writeAll)
	said := strings.Join(strings.Fields(l.end()+other.end()), " ")
	if !strings.Contains(said, "or the session ends, an agent that was faster") {
		t.Errorf("that is not told: %s", said)
	}
	for _, o := range list {
		w.git("project/"+strings.TrimSuffix(o.at, "/.git"), "status")
		if !strings.Contains(said, "taken out "+o.at+"/") || strings.Contains(said, "taken out "+o.at+" ") {
			t.Errorf("%s is not told, or taken out twice: %s", o.at, said)
		}
	}
	w.wantNotTaken()
}

// The agent closes a file in the user's clone, which no copy can be made of then, and writes there later.
//
// Promise: nothing planted for your git.
func TestTheAgentKeepsTheUsersCloneFromGettingNewFiles(t *testing.T) {
	w, l := users(t, "for ((i = 0; i < 50; i++)); do echo x >/dev/fd/7/objects/x && break; sleep 0.01; done; "+
		"chmod 0 /dev/fd/7/objects/x", inSettings)
	list := w.make(w.clone)
	for _, o := range list {
		must.Await(t, "another git folder", func() bool { return o.isAnother(w) })
	}
	l.sh(writeAll)
	w.statuses(list)
	if said := strings.Join(strings.Fields(l.end()), " "); !strings.Contains(said, "is held back until the session ends") {
		t.Errorf("that is not told: %s", said)
	}
	w.statuses(list)
}

// The agent writes a hook and a setting into the user's clone before git has ended. The user's git obeys a setting while
// it clones; so this one serves only later.
//
// Promise: nothing planted for your git.
func TestTheAgentWritesAHookIntoTheUsersCloneBeforeGitHasEnded(t *testing.T) {
	evil := "git -C \"$top/node_modules/m\" config core.fsmonitor"
	w, l := users(t, "mkdir -p /dev/fd/7/hooks; echo \"$("+evil+")\" >/dev/fd/7/hooks/pre-commit; "+
		"chmod +x /dev/fd/7/hooks/pre-commit; git config -f /dev/fd/7/config diff.external \"$("+evil+")\"", "true")
	list := w.make(w.clone)
	for _, o := range list {
		must.Await(t, "another git folder", func() bool { return o.isAnother(w) })
		to := "project/" + strings.TrimSuffix(o.at, "/.git")
		must.Write(t, w.path(to+"/a"), "x\n")
		w.git(to, "add", "a")
		w.git(to, "commit", "-q", "-m", "a")
		must.Write(t, w.path(to+"/a"), "y\n")
		w.git(to, "diff")
		if got := w.git(to, "log", "--format=%s").stdout; got != "a\nx\n" {
			t.Errorf("your commits: %q", got)
		}
		for _, name := range []string{"hooks", "config"} {
			if !w.exists("project/" + o.at + "/" + name + ".claudebox-aside") {
				t.Errorf("%s of %s is lost", name, o.at)
			}
		}
	}
	w.wantNotTaken()
	if said := strings.Join(strings.Fields(l.end()), " "); !strings.Contains(said, "was put aside, as an agent") {
		t.Errorf("that is not told: %s", said)
	}
	w.wantNotTaken()
}

// A repository of the user's has hooks from its first moment: of the user's own template, or of another one.
func TestTheUsersRepositoryBeginsWithHooks(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"own", "other"} {
		must.Program(t, w.path(name+"/hooks/pre-commit"), "#!/bin/sh\n: "+name+"\n")
	}
	w.git("", "config", "--global", "init.templateDir", w.path("own"))
	w.git("", "init", "-q", "from")
	w.git("from", "commit", "-q", "--allow-empty", "-m", "x")
	l := w.begin()
	for to, template := range map[string]string{"own-hooks": "own", "other-hooks": "other"} {
		cloned := make(chan outcome)
		go func() { cloned <- w.git("project", append(w.clone(to), "--template", w.path(template))...) }()
		l.covered(to)
		first := opened{to + "/.git", w.inode(to + "/.git")}
		must.Write(t, w.path("ready-"+to), "")
		<-cloned
		must.Await(t, "another git folder", func() bool { return first.isAnother(w) })
	}
	if !w.exists("project/own-hooks/.git/hooks/pre-commit") {
		t.Error("the hook of the template is not there")
	}
	if !w.exists("project/other-hooks/.git/hooks.claudebox-aside/pre-commit") || w.exists("project/other-hooks/.git/hooks") {
		t.Error("another hook is not put aside")
	}
	said := strings.Join(strings.Fields(l.end()), " ")
	if _, told, _ := strings.Cut(said, "other-hooks/.git, which you have made: what git would run by hooks was put aside"); told == "" ||
		strings.Contains(said, "own-hooks/.git, which") {
		t.Errorf("that is not told, or more: %s", said)
	}
}

// While a git of the user's brings files, the agent makes a file called .git that leads to the user's own repository. That
// has hooks by a path of the working tree.
//
// Promise: nothing planted for your git.
func TestTheAgentLeadsAFolderToTheUsersRepositoryWhileGitWorks(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.write("project/src/a", "x\n")
	w.git("project", "add", ".")
	w.git("project", "commit", "-q", "-m", "x")
	w.git("project", "config", "core.hooksPath", ".githooks")
	w.git("", "init", "-q", "--bare", "up")
	w.git("project", "push", "-q", w.path("up"), "HEAD:refs/heads/main")
	l := w.begin()
	pulled := make(chan outcome)
	go func() {
		wait := fmt.Sprintf("--upload-pack=touch %s; until [ -e %s ]; do sleep 0.01; done; git-upload-pack", w.path("works"), w.path("end"))
		pulled <- w.git("project", "pull", "-q", wait, w.path("up"), "main")
	}()
	must.Appear(t, w.path("works"))
	l.sh(fmt.Sprintf(`mkdir -p src/.githooks; h=src/.githooks/post-index-change; printf '#!/bin/sh\n%%s\n' "%s" >$h; chmod +x $h
echo 'gitdir: ../.git' >n; mv -T n src/.git; ( until [ -L src/.git ]; do sleep 0.02; done; touch held ) &`, w.orders()))
	must.Appear(t, w.path("project/held"))
	must.Write(t, w.path("project/src/a"), "y\n")
	w.git("project/src", "status")
	must.Write(t, w.path("end"), "")
	<-pulled
	l.end()
	w.git("project/src", "status")
	w.wantNotTaken()
}

// The user's git writes for long in a repository that it has just made.
func TestTheUsersGitIsAtWorkInANewRepository(t *testing.T) {
	w := newWorld(t)
	w.git("", "init", "-q", "from")
	w.write("from/a", "x\n")
	w.git("from", "add", ".")
	w.git("from", "commit", "-q", "-m", "x")
	w.git("project", "init", "-q")
	const add = "echo 'a filter=slow' >.gitattributes; echo y >a; git -c filter.slow.clean='sleep 1; cat' add ."
	must.Program(t, w.path("hooks/post-checkout"), "#!/bin/sh\n( "+add+"; touch "+w.path("added")+" ) >/dev/null 2>&1 &\n")
	l := w.begin()
	cloned := make(chan outcome)
	go func() {
		cloned <- w.git("project", append([]string{"-c", "core.hooksPath=" + w.path("hooks")}, w.clone("new")...)...)
	}()
	l.covered("new")
	first := opened{"new/.git", w.inode("new/.git")}
	must.Write(t, w.path("ready-new"), "")
	<-cloned
	must.Await(t, "another git folder", func() bool { return first.isAnother(w) })
	must.Appear(t, w.path("added"))
	if got := w.git("project/new", "status", "--porcelain").stdout; got != "A  .gitattributes\nM  a\n" {
		t.Errorf("the index has %q", got)
	}
	l.end()
}

// While a clone of the user's goes on, the agent has the git folder of another one open that is over.
//
// Promise: nothing planted for your git.
func TestTheAgentKeepsACloneOpenWhileAnotherGoesOn(t *testing.T) {
	w, l := users(t, "true", inSettings)
	cloned := make(chan outcome)
	go func() { cloned <- w.git("project", w.clone("slow")...) }()
	l.covered("slow")
	list := w.make(w.clone)
	for _, o := range list {
		must.Await(t, "another git folder", func() bool { return o.isAnother(w) })
	}
	must.Write(t, w.path("ready-slow"), "")
	<-cloned
	l.obeysNothing(list)
}

// While a clone of the user's goes on, the agent makes repositories in the folder that it names, and in one that is
// called as the branch.
//
// Promise: nothing planted for your git.
func TestTheAgentMakesRepositoriesBesideWhatACloneMakes(t *testing.T) {
	w, l := users(t, "true", inSettings)
	w.git("from", "branch", "docs")
	cloned := make(chan outcome)
	go func() { cloned <- w.git("project", append(w.clone("slow"), "-b", "docs")...) }()
	l.covered("slow")
	for _, in := range []string{"docs", "slow/n"} {
		l.sh("git init -q " + in)
		must.Await(t, in+" is held back", func() bool {
			_, err := os.Readlink(w.path("project/" + in + "/.git"))
			return err == nil
		})
	}
	must.Write(t, w.path("ready-slow"), "")
	if got := <-cloned; got.status != 0 || !w.exists("project/slow/.git/HEAD") {
		t.Errorf("your git: %s", got.stderr)
	}
	l.end()
}

// covered waits until a repository that the user makes is covered.
func (l *live) covered(to string) {
	l.w.t.Helper()
	l.sh("until [ -d " + to + "/.git ] && [ -z \"$(ls -A " + to + "/.git)\" ]; do sleep 0.02; done")
}

// waiting starts a git of the user's in a folder, where it waits until it is ended.
func (w *world) waiting(in string) (pid int, end func()) {
	w.t.Helper()
	w.folder(in)
	stdin, input, err := os.Pipe()
	must.Do(w.t, err)
	git := exec.Command("git", "-C", w.path(in), "hash-object", "--stdin")
	git.Env, git.Stdin = w.env, stdin
	must.Do(w.t, git.Start())
	end = sync.OnceFunc(func() { input.Close(); git.Wait(); stdin.Close() })
	w.t.Cleanup(end)
	return git.Process.Pid, end
}

// The agent has a git of the user's wait in the project for as long as the session runs, as by a pipe for a .gitignore. A
// clone of the user's gets new files all the same.
//
// Promise: nothing planted for your git.
func TestTheAgentHasTheUsersGitWaitBesideAClone(t *testing.T) {
	w, l := users(t, "true", inSettings)
	l.sh("mkdir d; touch d/x; mkfifo d/.gitignore")
	status := exec.Command("git", "status")
	status.Dir, status.Env = w.path("project"), w.env
	must.Do(t, status.Start())
	t.Cleanup(func() { status.Process.Kill(); status.Wait() })
	list := w.make(w.clone)
	for _, o := range list {
		must.Await(t, "another git folder", func() bool { return o.isAnother(w) })
	}
	must.Do(t, os.Remove(w.path("project/d/.gitignore"))) // the next git is to wait for nothing
	l.obeysNothing(list)
}

// A session is killed in which the user has made a repository, and another one after that. Both have a hook of the user's.
// What the agent puts in the place of one is not the user's.
//
// Promise: nothing planted for your git.
func TestTheUsersRepositoriesStayAfterASessionThatWasKilled(t *testing.T) {
	w, l := users(t, "true", inSettings)
	list := w.make(w.clone)
	hook := func(in string) {
		must.Program(t, w.path("project/"+in+"/hooks/pre-push"), "#!/bin/sh\n")
	}
	for _, o := range list {
		must.Await(t, "another git folder", func() bool { return o.isAnother(w) })
		hook(o.at)
	}
	for _, o := range list {
		must.Await(t, "its remotes are noted", func() bool {
			files, err := filepath.Glob(w.path(".claudebox/made/*"))
			must.Do(t, err)
			id := identity.At(unix.AT_FDCWD, w.path("project/"+o.at))
			return len(files) == 1 && strings.Contains(must.Read(t, files[0]), string(id)+"\tits remotes: 'origin = ")
		})
	}
	// The agent has its own in the place of one, and that elsewhere.
	first, second := strings.TrimSuffix(list[0].at, "/.git"), strings.TrimSuffix(list[1].at, "/.git")
	l.sh("mv " + first + " moved; mkdir " + first + "; mv node_modules/m/.git node_modules/x; mv node_modules/x " + first + "/.git")
	l.kill()
	w.git("project", "init", "-q", "after")
	hook("after/.git")
	said := strings.Join(strings.Fields(w.claudebox("shell", "--yes", "--", "true").stderr), " ")
	for _, in := range []string{"moved", second} {
		if !w.exists("project/"+in+"/.git/hooks/pre-push") || w.git("project/"+in, "log").status != 0 || strings.Contains(said, in+"/.git") {
			t.Errorf("%s is not yours: %s", in, said)
		}
		if want := "yours " + in + " a repository that you made while the session ran; its remotes: 'origin = file://" + w.path("from"); !strings.Contains(said, want) {
			t.Errorf("%q is not told: %s", want, said)
		}
	}
	w.git("project/"+first, "status")
	w.wantNotTaken()
	_, back, _ := strings.Cut(said, "taken out after/.git/HEAD ")
	_, back, _ = strings.Cut(back, "back: `")
	back, _, _ = strings.Cut(back, "`")
	if w.run(nil, "bash", "-ec", back); !w.exists("project/after/.git/hooks/pre-push") || !w.exists("project/after/.git/HEAD") {
		t.Errorf("%q does not bring back what was made after the session: %s", back, said)
	}
	if left, _ := os.ReadDir(w.path(".claudebox/made")); len(left) > 0 {
		t.Errorf("there is left: %v", left)
	}
}

// A git of the user's goes on in a repository of the user's, or the agent has moved that to where nothing is watched: it
// keeps its files, and that is told.
//
// Promise: nothing planted for your tools, unsaid.
func TestTheAgentKeepsTheUsersRepositoryFromGettingNewFilesForLong(t *testing.T) {
	w, l := users(t, "true", inSettings)
	pid, end := w.waiting("project/busy")
	w.waiting("project/away")
	for _, to := range []string{"busy", "away"} {
		cloned := make(chan outcome)
		go func() { cloned <- w.git("project", w.clone(to)...) }()
		l.covered(to)
		must.Write(t, w.path("ready-"+to), "")
		<-cloned
	}
	first := opened{"busy/.git", w.inode("busy/.git")}
	l.sh("mv away node_modules")
	for _, what := range []string{
		fmt.Sprintf("busy/.git, which you have made: it gets new files once process %d of yours ends", pid),
		"away/.git, which you have made: it is moved, so it gets no new files",
	} {
		must.Await(t, what, func() bool { return strings.Contains(l.said.String(), what) })
	}
	end() // as that says
	must.Await(t, "another git folder", func() bool { return first.isAnother(w) })
	l.end()
}

// The agent has the file open by which the user's worktree leads to its repository, and writes there when git has ended.
//
// Promise: nothing planted for your git.
func TestTheAgentKeepsTheFileOfTheUsersWorktreeOpen(t *testing.T) {
	w, l := users(t, "true", "echo 'gitdir: ../node_modules/m/.git' >/dev/fd/7")
	l.obeysNothing(w.worktrees())
}

// The agent has the user's worktree lead to where nothing is yet, or to what is held back of the agent's.
//
// Promise: nothing planted for your git.
func TestTheUsersWorktreeLeadsToWhatTheAgentMakesLater(t *testing.T) {
	for name, to := range map[string]string{
		"where nothing is": "$top/node_modules/later", "what is held back": "$HOME/.claudebox/held/$(at=$(readlink held/.git); " +
			"echo ${at#*/held-back/})",
	} {
		t.Run(name, func(t *testing.T) {
			w, l := users(t, `sleep 0.1; echo "gitdir: $(cat to)" >/dev/fd/7`, "cp -r node_modules/m/.git node_modules/later")
			l.sh("git init -q held; until [ -L held/.git ]; do sleep 0.01; done; " +
				`top=$PWD; git -C held config core.fsmonitor "$(git -C node_modules/m config core.fsmonitor)"; echo "` + to + `" >to`)
			l.obeysNothing(w.worktrees())
		})
	}
}
