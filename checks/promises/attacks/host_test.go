//go:build lab

package attacks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// git runs the host's git in a folder of the home, as a shell's prompt does.
func (w *world) git(folder string, words ...string) outcome {
	w.t.Helper()
	words = append([]string{"-c", "user.name=u", "-c", "user.email=u@example.org", "-C", w.path(folder)}, words...)
	return w.run(nil, "git", words...)
}

// taken is what the agent's orders leave when the host obeys.
const taken = "taken"

// orders is a command that git of the host must not run.
func (w *world) orders() string { return "touch " + w.path(taken) + "; false" }

func (w *world) wantNotTaken() {
	w.t.Helper()
	if w.exists(taken) {
		w.t.Error("the host ran what the agent had written")
	}
}

// onStatus is an attack in a project; then git status is run on the host.
type onStatus struct {
	prepare func(w *world)             // what the user has
	script  func(orders string) string // what the agent does
	at      string                     // where git runs, below the project
}

var onStatuses = map[string]onStatus{
	"configuration of a repository in a folder of repositories": {
		func(w *world) { w.folder("project/a"); w.git("project/a", "init", "-q") },
		func(orders string) string { return "git config -f a/.git/config core.fsmonitor '" + orders + "'" },
		"a",
	},
	"a commondir in a repository in a folder of repositories": {
		func(w *world) { w.folder("project/a"); w.git("project/a", "init", "-q") },
		func(orders string) string {
			return "cp -r a/.git b; git config -f b/config core.fsmonitor '" + orders + "'; echo ../../b >a/.git/commondir"
		},
		"a",
	},
	"a repository in a folder of repositories exchanged": {
		func(w *world) { w.folder("project/a"); w.git("project/a", "init", "-q") },
		func(orders string) string {
			return "mv a b; mkdir a; cp -r b/.git a/; git config -f a/.git/config core.fsmonitor '" + orders + "'"
		},
		"a",
	},
	"an included file that is not there yet": {
		func(w *world) {
			w.git("project", "init", "-q")
			w.git("project", "config", "include.path", "../.gitconfig")
		},
		func(orders string) string { return "git config -f .gitconfig core.fsmonitor '" + orders + "'" },
		".",
	},
	"an included file that is tracked": {
		func(w *world) {
			w.git("project", "init", "-q")
			w.git("project", "config", "include.path", "../.gitconfig")
			w.write("project/.gitconfig", "[core]\n")
			w.git("project", "add", ".gitconfig")
		},
		func(orders string) string { return "git config -f .gitconfig core.fsmonitor '" + orders + "'" },
		".",
	},
}

// Promise: nothing planted for your git.
func TestTheHostsGitStatusRunsTheAgentsOrders(t *testing.T) {
	for name, a := range onStatuses {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a.prepare(w)
			w.attack(a.script(w.orders()))
			w.git("project/"+a.at, "status")
			w.wantNotTaken()
			w.attack(a.script(w.orders()))
			w.git("project/"+a.at, "status")
			w.wantNotTaken()
		})
	}
}

// What the agent makes where tools fill stays if git would run nothing in it. Its index may name what is elsewhere: a
// repository in the agent's own git folder.
//
// Promise: nothing planted for your git.
func TestTheIndexOfARepositoryLeadsElsewhere(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.git("project", "commit", "-q", "--allow-empty", "-m", "x")
	w.git("", "config", "--global", "user.email", "a@x")
	w.git("", "config", "--global", "user.name", "a")
	w.prepared(fmt.Sprintf(`git init -q .git/x; git -C .git/x config core.fsmonitor '%s'; git -C .git/x commit -q --allow-empty -m x
own=$(grep " $PWD/.git " /proc/self/mountinfo | cut -d ' ' -f 4); to=../../../.claudebox/${own#*/.claudebox/}/x; z=${to//?/z}
git init -q node_modules/left; c=$(git -C .git/x rev-parse HEAD); cd node_modules/left
git update-index --add --cacheinfo "160000,$c,$z"; sed -i "s|$z|$to|" .git/index; rm -rf .git/hooks`, w.orders()))
	w.git("project/node_modules/left", "status")
	w.wantNotTaken()
}

func TestAFolderOfHooksThatIsNotThereYet(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.git("project", "config", "core.hooksPath", ".githooks")
	w.attack("mkdir .githooks; printf '#!/bin/sh\n" + w.orders() + "\n' >.githooks/pre-commit; chmod +x .githooks/pre-commit")
	w.git("project", "commit", "-q", "--allow-empty", "-m", "x")
	w.wantNotTaken()
	if w.exists("project/.githooks") {
		t.Error("the stand-in stays")
	}
}

// Each worktree has a folder of hooks of its own, if the repository's
// configuration names one.
func TestAFolderOfHooksInALinkedWorktree(t *testing.T) {
	for name, in := range map[string][2]string{"that is the project": {"main", "../project"}, "in the project": {"project", "w"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.prepareSite(site{user: "git init -q " + in[0] + "; cd " + in[0] + "; git commit -qm x --allow-empty; git config core.hooksPath .githooks; git worktree add -q " + in[1]})
			at := filepath.Join(in[0], in[1])
			w.attack("test -e w && cd w; mkdir -p .githooks; printf '#!/bin/sh\n" + w.orders() + "\n' >.githooks/pre-commit; chmod +x .githooks/pre-commit")
			w.git(at, "commit", "-q", "--allow-empty", "-m", "x")
			w.wantNotTaken()
			if w.exists(at + "/.githooks/pre-commit") {
				t.Error("it could be made")
			}
		})
	}
}

// A checkout that is made inside may have the configuration of the user's repository.
func TestAFolderOfHooksInACheckoutThatTheAgentMakes(t *testing.T) {
	for name, script := range map[string]string{"by a .git file": "mkdir d; echo 'gitdir: ../.git' >d/.git", "a worktree": "git worktree add -q d"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.prepareSite(site{user: "git init -q project; cd project; mkdir gh; touch gh/x; git add gh; git commit -qm x; git config core.hooksPath gh"})
			w.attack(script + "; mkdir -p d/gh; printf '#!/bin/sh\n" + w.orders() + "\n' >d/gh/post-checkout; chmod +x d/gh/post-checkout")
			w.git("project/d", "checkout", "-q", "-b", "y")
			w.wantNotTaken()
		})
	}
}

// A profile in the project says what its next sandbox may do.
//
// Promise: no start unasked by what an agent wrote.
func TestAProfileInTheProjectIsWidened(t *testing.T) {
	for name, file := range map[string]string{"at the root": "profile.yaml", "in a folder": "conf/deep/profile.yaml"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.git("project", "init", "-q")
			w.write("project/"+file, "name: test\nextends: default\n")
			w.git("project", "add", file)
			wider := `name: test\nextends: default\nconfirm: never\nmounts: [{host: ~/documents}]\n`
			top, _, _ := strings.Cut(file, "/")
			w.attack("printf '"+wider+"' >"+file+"; mv "+top+" old; mkdir -p conf/deep; printf '"+wider+"' >"+file, "--profile", "./"+file)
			w.wantNoCanary(w.attack("cat ~/documents/letter", "--profile", "./"+file))
		})
	}
}

// A plan for a team lies in the project. A session without it writes one that lets more in and asks nobody.
//
// Promise: no start unasked by what an agent wrote.
func TestAPlanOrProfileThatTheAgentWroteSaysThatNobodyIsAsked(t *testing.T) {
	const wide = "name: default\nconfirm: never\nmounts: [{host: ~/documents, mode: rw}, {host: ~/.ssh, mode: ro, secret: true}]\n"
	for name, flags := range map[string][]string{
		"a plan": {"--plan", "team.json"}, "a profile": {"--profile", "./team.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("project/new.yaml", wide)
			w.write("project/new.json", w.claudebox("plan", "--pinned", "--profile", "./new.yaml").stdout)
			w.prepared("mv new.yaml team.yaml; mv new.json team.json")
			got := w.claudebox(slices.Concat([]string{"shell"}, flags, []string{"--", "cat", w.path("documents/letter")})...)
			w.wantNoCanary(got)
			w.wantRefused(got, "there is no terminal to ask on")
		})
	}
}

// What the agent makes anew the host's git would obey: it is made harmless when
// the session ends.
func TestARepositoryThatTheAgentMakesAnew(t *testing.T) {
	for name, a := range map[string]onStatus{
		"a submodule in the index": {
			func(w *world) {
				w.git("project", "init", "-q")
				w.git("project", "commit", "-q", "--allow-empty", "-m", "x")
			},
			func(orders string) string {
				return "mkdir sub; cd sub; git init -q; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; cd ..; " +
					"git add sub; git config -f sub/.git/config core.fsmonitor '" + orders + "'"
			},
			".",
		},
		"in a project that had none": {
			func(*world) {},
			func(orders string) string { return "git init -q; git config core.fsmonitor '" + orders + "'" },
			".",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a.prepare(w)
			w.prepared(a.script(w.orders()))
			w.git("project/"+a.at, "status")
			w.wantNotTaken()
		})
	}
}

// What the user's own configuration of git names in the project is obeyed there.
func TestTheUsersOwnGitConfigurationNamesWhatTheAgentMakes(t *testing.T) {
	for name, tc := range map[string]struct{ config, file string }{
		"hooks of each repository":   {"[core]\n\thooksPath = .githooks\n", ".githooks/post-checkout"},
		"a file that is included":    {"[include]\n\tpath = project/git.conf\n", "git.conf"},
		"one in a folder to be made": {"[include]\n\tpath = ~/project/.dev/git.conf\n", ".dev/git.conf"},
		"a program":                  {"[core]\n\tfsmonitor = ~/project/tools/monitor\n", "tools/monitor"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.git("project", "init", "-q")
			w.git("project", "commit", "-qm", "x", "--allow-empty")
			w.write(".gitconfig", strings.ReplaceAll(tc.config, "~", w.home)+"[user]\n\tname = u\n\temail = u@h\n")
			content := "#!/bin/sh\n" + w.orders() + "\n"
			if strings.HasSuffix(tc.file, ".conf") {
				content = "[core]\n\tfsmonitor = \"" + w.orders() + "\"\n"
			}
			w.claudebox("shell", "--yes", "--", "bash", "-c", `mkdir -p "$(dirname "$1")"; printf %s "$2" >"$1"; chmod +x "$1"`, "x", tc.file, content)
			os.Remove(w.path(taken))
			w.git("project", "checkout", "-qb", "other")
			w.git("project", "status")
			w.wantNotTaken()
		})
	}
}

// git looks for it in each repository: beside .git, in the folder of a bare one,
// and where tools fill.
func TestTheUsersFolderOfHooksIsMadeInAnyRepository(t *testing.T) {
	for name, tc := range map[string]struct{ user, agent, host string }{
		"a bare one made inside":   {"true", "git init -q --bare d; evil d/.githooks/pre-receive", "push -q d HEAD:x"},
		"a bare one of the user's": {"git init -q --bare d", "evil d/.githooks/pre-receive", "push -q d HEAD:x"},
		"where tools fill":         {"git clone -q . node_modules/x; sleep 1.1", "evil node_modules/x/.githooks/post-checkout", "-C node_modules/x checkout -qb y"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.prepareSite(site{user: "git init -q project; cd project; git commit -qm x --allow-empty; " + tc.user})
			w.write(".gitconfig", "[core]\n\thooksPath = .githooks\n[user]\n\tname = u\n\temail = u@h\n")
			w.attack("export GIT_CONFIG_GLOBAL=/dev/null; evil() { mkdir -p $(dirname $1); printf '#!/bin/sh\n" + w.orders() + "\n' >$1; chmod +x $1; }; " + tc.agent)
			os.Remove(w.path(taken))
			w.git("project", strings.Fields(tc.host)...)
			w.wantNotTaken()
		})
	}
}
