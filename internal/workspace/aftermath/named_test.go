package aftermath_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// repository has a commit; e writes a program that leaves a trace.
const repository = `git init -q; git commit -qm x --allow-empty
	e() { mkdir -p $(dirname $1); printf "#!/bin/sh\n$EVIL\n" >$1; chmod +x $1; }
	good() { mkdir -p $(dirname $1); printf "#!/bin/sh\ntrue\n" >$1; chmod +x $1; }
`

// TestARepositorysConfigurationNamesAPathInAnotherCheckout: the agent makes a checkout that has the configuration of
// the user's repository, and in it what that names.
func TestARepositorysConfigurationNamesAPathInAnotherCheckout(t *testing.T) {
	t.Parallel()
	const e = `e() { mkdir -p $(dirname $1); printf "#!/bin/sh\n$EVIL\n" >$1; chmod +x $1; }; `
	for name, tc := range map[string]struct{ user, agent, host, told string }{
		"by a .git file":              {"good gh/x; git config core.hooksPath gh", e + `e d/gh/post-checkout; echo "gitdir: ../.git" >d/.git`, "git -C d checkout -qb y", "taken out d/.git taken out d/gh"},
		"by one to a bare one":        {"git init -q --bare b; git -C b config core.hooksPath gh", e + `e d/gh/reference-transaction; echo "gitdir: ../b" >d/.git`, "git -C d update-ref refs/x/y $(git -C d hash-object -w --stdin </dev/null)", "taken out d/.git taken out d/gh"},
		"a worktree, by hooks":        {"good gh/x; git add gh; git commit -qm y; git config core.hooksPath gh", e + `git worktree add -q w; e w/gh/post-checkout`, "git -C w checkout -qb y", "new w taken out w/gh"},
		"a worktree, by a program":    {"good gh/x; git add gh; git commit -qm y; git config core.fsmonitor ./gh/x", e + `git worktree add -q w; e w/gh/x`, "git -C w status", "new w taken out w/gh/x"},
		"a worktree where tools fill": {"good gh/x; git add gh; git commit -qm y; git config core.hooksPath gh", e + `git worktree add -q target/w; e target/w/gh/post-checkout`, "git -C target/w checkout -qb y", "taken out target/w/gh"},
		"behind a link":               {"good s/h/x; ln -s s gh; git add s gh; git commit -qm y; git config core.hooksPath gh/h", e + `git worktree add -q w; rm w/gh; e w/evil/h/post-checkout; ln -s evil w/gh`, "git -C w checkout -qb y", "new w taken out w/gh"},
		"where the link leads":        {"good s/h/x; ln -s s gh; git add s gh; git commit -qm y; git config core.hooksPath gh/h", e + `git worktree add -q w; e w/s/h/post-checkout`, "git -C w checkout -qb y", "new w taken out w/gh"},
		"behind a link out of it":     {"good s/h/x; ln -s s gh; git add s gh; git commit -qm y; git config core.hooksPath gh/h", e + `git worktree add -q w; rm w/gh; e evil/h/post-checkout; ln -s ../evil w/gh`, "git -C w checkout -qb y", "new w taken out w/gh"},
		"a link as it was":            {"good s/h/x; ln -s s gh; git add s gh; git commit -qm y; git config core.hooksPath gh/h", "git worktree add -q w", "true", "new w"},
		"a worktree as it was":        {"good gh/x; git add gh; git commit -qm y; git config core.hooksPath gh; git config core.fsmonitor ./gh/x", "git worktree add -q w", "git -C w status", "new w"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(repository + tc.user)
			if got := strings.Join(lines(w.session(tc.agent)), " "); got != tc.told {
				t.Errorf("got %q, want %q", got, tc.told)
			}
			w.sh(tc.host)
			w.wantNotTaken()
		})
	}
}

// TestWhatGitRunsIsHeldOrTold: what the user's own configuration and hooks lead to cannot be changed inside; where it
// is tracked, a change is told.
func TestWhatGitRunsIsHeldOrTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ user, file string }{
		"by a hook that is a link":       {"ln -s ../../FILE .git/hooks/pre-commit", "s/pc"},
		"by a hook that is one to hold":  {"git config core.hooksPath gh; mkdir gh; ln -s ../FILE gh/pre-commit", "s/pc"},
		"by a hook through two links":    {"ln -s FILE pc; ln -s ../../pc .git/hooks/pre-commit", "s/pc"},
		"as hooks behind a link":         {"ln -s s l; git config core.hooksPath l/hooks", "s/hooks/pre-commit"},
		"as a program behind a link":     {"ln -s s l; git config core.fsmonitor ./l/pc", "s/pc"},
		"as the word of a shell":         {"git config filter.x.clean 'sh FILE %f'", "clean.sh"},
		"below what git rev-parse says":  {`git config filter.x.clean '"$(git rev-parse --show-toplevel)"/FILE'`, "s/pc"},
		"as a file of attributes":        {"git config core.attributesFile FILE", "at"},
		"as a hook of the configuration": {"git config hook.x.command ./FILE; git config hook.x.event pre-commit", "s/pc"},
		"as a template":                  {"git config init.templateDir ./t", "t/hooks/pre-commit"},
		"by a bare one":                  {"git init -q --bare d; git -C d config core.hooksPath gh", "d/gh/pre-receive"},
		"where tools fill":               {"git init -q .venv/src/x; git -C .venv/src/x config core.hooksPath gh", ".venv/src/x/gh/post-checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(repository + "good " + tc.file + "; " + strings.ReplaceAll(tc.user, "FILE", tc.file))
			held := false
			for _, m := range w.open().Mounts {
				held = held || (m.Mode == project.ReadOnly || m.Mode == project.Inner) && strings.HasPrefix(w.path("p/"+tc.file)+"/", m.Path+"/")
			}
			if !held {
				t.Error("it can be changed inside")
			}
			if strings.HasPrefix(tc.file, ".venv") || strings.HasPrefix(tc.file, "d/") {
				return
			}
			w.sh("git add -f " + tc.file + "; git commit -qm y")
			if got := strings.Join(lines(w.session("echo x >>"+tc.file)), " "); !strings.Contains(got, "changed "+strings.Split(tc.file, "/hooks")[0]) {
				t.Errorf("told: %q", got)
			}
		})
	}
}

// TestHooksThatAreALinkAreHeld: what the link leads to cannot be changed inside, whatever the link looks like.
func TestHooksThatAreALinkAreHeld(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]string{"absolute": "$PWD/s", "through another one": "../l"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(repository + "good s/pc; ln -s s l; rm -r .git/hooks; ln -s " + link + " .git/hooks")
			if !slices.ContainsFunc(w.open().Mounts, func(m project.Mount) bool { return m.Mode == project.ReadOnly && m.Path == w.path("p/s") }) {
				t.Error("it can be changed inside")
			}
		})
	}
}

// TestAFolderGivenBesideIsPartOfARepository: the configuration that names what is in it lies above.
func TestAFolderGivenBesideIsPartOfARepository(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]string{"a clone": "p", "a linked worktree": "w"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(repository + `git worktree add -q ../w; cd ../` + where + `; good sub/gh/x; git config core.hooksPath sub/gh
				good sub/clean; git config filter.x.clean 'sub/clean %f'; touch sub/more; git config include.path $PWD/sub/more
				good sub/pc; ln -s $PWD/sub/pc $(git rev-parse --git-common-dir)/hooks/pre-commit`)
			p, err := project.Open(project.Request{
				Dir: w.path(where + "/sub"), Home: w.home, UID: os.Getuid(), Beside: true,
				Memory: aftermath.NewMemory(w.path(".claudebox")),
			})
			must.Do(t, err)
			for _, file := range []string{"gh", "clean", "more", "pc"} {
				if !slices.ContainsFunc(p.Mounts, func(m project.Mount) bool { return m.Path == w.path(where+"/sub/"+file) && m.Mode != project.Pin }) {
					t.Errorf("%s can be changed inside", file)
				}
			}
			if len(p.Notes) > 0 {
				t.Errorf("it says %v", p.Notes)
			}
		})
	}
}

// TestAConfigurationThatLiesElsewhereIsObeyed: git runs what it names in the folder that is given away, wherever the
// configuration lies.
func TestAConfigurationThatLiesElsewhereIsObeyed(t *testing.T) {
	t.Parallel()
	const fsm, worktree = "good tools/fsm; git config core.fsmonitor tools/fsm; ", "git worktree add -q ../w; good ../w/tools/fsm; "
	for name, tc := range map[string]struct{ user, dir, file string }{
		"a worktree beside":                {fsm + worktree, "w", "tools/fsm"},
		"by its own part of it":            {fsm + worktree + "git config extensions.worktreeConfig true; git -C ../w config --worktree core.hooksPath tools", "w", "tools/fsm"},
		"hooks in a worktree beside":       {worktree + "git config core.hooksPath tools", "w", "tools/fsm"},
		"a worktree of another repository": {"cd ..; git init -q o; cd o; git commit -qm x --allow-empty; git config core.fsmonitor tools/fsm; git worktree add -q ../p/ext; good ../p/ext/tools/fsm", "p", "ext/tools/fsm"},
		"by a file included from outside":  {"good tools/fsm; printf '[core]\nfsmonitor = tools/fsm' >../team; git config include.path ~/team", "p", "tools/fsm"},
		"by one that includes another":     {"good tools/fsm; printf '[core]\nfsmonitor = tools/fsm' >../team; printf '[include]\npath = team\npath = more' >../more; git config include.path ~/more", "p", "tools/fsm"},
		"by one in the common folder":      {worktree + "printf '[core]\nfsmonitor = tools/fsm' >.git/team; git config include.path team", "w", "tools/fsm"},
		"by one of two repositories":       {"git init -q n; good n/tools/fsm; printf '[core]\nfsmonitor = tools/fsm' >team; git config include.path $PWD/team; git -C n config include.path $PWD/team", "p", "n/tools/fsm"},
		"a git folder outside":             {"rm -r .git; git init -q --separate-git-dir ../s.git .; " + fsm, "p", "tools/fsm"},
		"and the folder is beside":         {"cd ..; git init -q --separate-git-dir s.git b; cd b; " + fsm, "b", "tools/fsm"},
		"that is not the working tree":     {"git init -q --separate-git-dir n.git n; cd n; " + fsm, "p", "n/tools/fsm"},
		"that names a third":               {"git init -q --separate-git-dir ../s.git y; git -C y config core.worktree $PWD; good tools/fsm; git -C y config core.fsmonitor tools/fsm", "p", "tools/fsm"},
		"that a link leads to":             {"git init -q ../o; git -C ../o config core.fsmonitor tools/fsm; good n/tools/fsm; ln -s ../../o/.git n/.git", "p", "n/tools/fsm"},
		"where tools fill":                 {"mkdir target; git init -q --separate-git-dir ../s.git target/n; cd target/n; " + fsm, "p", "target/n/tools/fsm"},
		"above, with its folder elsewhere": {"cd ..; git init -q --separate-git-dir s.git b; cd b; good sub/fsm; git config core.fsmonitor sub/fsm", "b/sub", "fsm"},
		"by a hook there":                  {"cd ..; git init -q --separate-git-dir s.git b; cd b; good tools/fsm; ln -s $PWD/tools/fsm ../s.git/hooks/pre-commit", "b", "tools/fsm"},
		"by hooks there that are a link":   {"cd ..; git init -q --separate-git-dir s.git b; cd b; good tools/fsm; rm -r ../s.git/hooks; ln -s $PWD/tools ../s.git/hooks", "b", "tools/fsm"},
		"by hooks that it names outside":   {"good tools/fsm; mkdir ../h; ln -s $PWD/tools/fsm ../h/pre-commit; git config core.hooksPath ~/h", "p", "tools/fsm"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(repository + tc.user)
			p, err := project.Open(project.Request{
				Dir: w.path(tc.dir), Home: w.home, UID: os.Getuid(), Beside: tc.dir != "p", Memory: aftermath.NewMemory(w.path(".claudebox")),
			})
			must.Do(t, err)
			if !slices.ContainsFunc(p.Mounts, func(m project.Mount) bool {
				return m.Mode == project.ReadOnly && strings.HasPrefix(w.path(tc.dir+"/"+tc.file)+"/", m.Path+"/")
			}) {
				t.Error("it can be changed inside")
			}
		})
	}
}

// TestAGitFileLeadsElsewhereThanItDid: the file is what an earlier session left, and was harmless then. The folder that
// it is in was moved, or what it names is exchanged for a link.
func TestAGitFileLeadsElsewhereThanItDid(t *testing.T) {
	t.Parallel()
	const plant = `e() { mkdir -p $(dirname $1); printf "#!/bin/sh\n$EVIL\n" >$1; chmod +x $1; }; `
	for name, tc := range map[string]struct{ first, second, tree string }{
		"by a link":                  {"mkdir x; git init -q --bare y; echo 'gitdir: ../y' >x/.git", "rm -r y; ln -s .git y", "x"},
		"by a link where tools fill": {"mkdir -p .venv/x; git init -q --bare .venv/y; echo 'gitdir: ../y' >.venv/x/.git", "rm -r .venv/y; ln -s ../.git .venv/y", ".venv/x"},
		"with its folder":            {"mkdir -p .venv/b/c; git init -q .venv/b; echo 'gitdir: ../.git' >.venv/b/c/.git", "mv .venv/b/c target", "target"},
		"with its folder, to a worktree's": {
			`git init -q .venv/b; git -C .venv/b commit -qm x --allow-empty; git -C .venv/b worktree add -q w; echo "gitdir: ../.git/worktrees/w" >.venv/b/w/.git`,
			"mv .venv/b/w target", "target",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(repository + "git worktree add -q ../w; good gh/x; git config core.hooksPath gh")
			w.session(tc.first)
			time.Sleep(1100 * time.Millisecond) // what is a second older counts as what was there
			w.session(plant + tc.second + "; e " + tc.tree + "/gh/post-index-change")
			w.sh("cd " + tc.tree + "; touch a; git status; git add a")
			w.wantNotTaken()
		})
	}
}

// TestNoNameIsFreeForWhatIsTakenOut: the agent has made them all.
func TestNoNameIsFreeForWhatIsTakenOut(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q")
	r := w.session(`git init -q n; git -C n config core.fsmonitor "$EVIL"; cd n/.git; mkdir claudebox-aside
		seq -f claudebox-aside-%g 1 10001 | xargs mkdir`)
	wantLines(t, r, "taken out n/.git/HEAD")
	w.sh("git -C n status")
	w.wantNotTaken()
}

// TestAFileInMemoryIsChangedWithoutATrace: on a tmpfs a file that is mapped is written to, and its times stay.
func TestAFileInMemoryIsChangedWithoutATrace(t *testing.T) {
	t.Parallel()
	var fs unix.Statfs_t
	if unix.Statfs("/dev/shm", &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
		t.Skip("NOT RUN: needs a tmpfs at /dev/shm")
	}
	home, err := os.MkdirTemp("/dev/shm", "claudebox-")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(home) })
	w := world{t: t, home: home}
	must.Do(t, os.MkdirAll(w.path(".claudebox"), 0o700))
	w.write("p/Makefile", "all:\n\ttrue\n")
	s := w.begin()
	for file, text := range map[string]string{"Makefile": "all:\n\tevil"} {
		f, err := os.OpenFile(w.path("p/"+file), os.O_RDWR, 0)
		must.Do(t, err)
		mapped, err := unix.Mmap(int(f.Fd()), 0, len(text), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		must.Do(t, err)
		if mapped[0] != 0 { // it is read before it is written to
			copy(mapped, text)
		}
		must.Do(t, unix.Munmap(mapped))
		f.Close()
	}
	wantLines(t, s.End(), "changed Makefile")
}
