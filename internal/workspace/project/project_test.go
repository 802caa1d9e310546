package project_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/project"
)

// layouts are projects and what becomes of them. The project is "p" unless
// dir says otherwise.
var layouts = map[string]struct {
	make    func(w world)
	dir     string
	gitRoot bool
	root    string // canonical root; empty: same as dir
	want    []string
	note    string
}{
	"a folder without git": {
		make: func(w world) { w.write("p/main.go", "") },
	},
	"a plain repository": {
		make: func(w world) { w.repo("p", "main.go") },
		want: []string{"inner ~/p/.git"},
	},
	"a repository below a home that is one itself": {
		make: func(w world) { w.repo(".", "x"); w.mkdir("p") },
	},
	"a part of a repository": {
		make: func(w world) { w.repo("r", "p/main.go") }, dir: "r/p", root: "r",
		want: []string{"inner ~/r/.git"},
		note: "git-root",
	},
	"a part of a repository, taken whole": {
		make: func(w world) { w.repo("r", "p/main.go") }, dir: "r/p", root: "r", gitRoot: true,
		want: []string{"inner ~/r/.git"},
	},
	"a linked worktree": {
		make: func(w world) { w.repo("m", "x"); w.git("m", "worktree", "add", "-q", "../p") }, root: "m",
		want: []string{"inner ~/m/.git", "ro ~/p/.git"},
	},
	"a part of a linked worktree": {
		make: func(w world) { w.repo("m", "sub/x"); w.git("m", "worktree", "add", "-q", "../l") }, dir: "l/sub", root: "m",
		want: []string{"ro ~/l/.git", "inner ~/m/.git"},
		note: "git-root",
	},
	"the main worktree of a linked one": {
		make: func(w world) { w.repo("p", "x"); w.git("p", "worktree", "add", "-q", "../l") },
		want: []string{"inner ~/p/.git"},
	},
	"a submodule by itself": {
		make: func(w world) {
			w.repo("lib", "x")
			w.repo("s", "x")
			w.git("s", "submodule", "--quiet", "add", w.path("lib"), "deps/lib")
		},
		dir: "s/deps/lib", root: "s/.git/modules/deps/lib",
		want: []string{"inner ~/s/.git/modules/deps/lib", "ro ~/s/deps/lib/.git"},
	},
	"a repository with a submodule": {
		make: func(w world) {
			w.repo("lib", "x")
			w.repo("p", "x")
			w.git("p", "submodule", "--quiet", "add", w.path("lib"), "deps/lib")
			w.git("p", "commit", "-qm", "sub")
		},
		want: []string{
			"inner ~/p/.git", "inner ~/p/.git/modules/deps/lib", "pin ~/p/deps", "pin ~/p/deps/lib", "ro ~/p/deps/lib/.git",
		},
	},
	"submodules that are not checked out": {
		make: func(w world) {
			w.repo("p", "x")
			head := strings.TrimSpace(w.git("p", "rev-parse", "HEAD"))
			for _, name := range []string{"there", "gone", "no/folder"} {
				w.git("p", "update-index", "--add", "--cacheinfo", "160000,"+head+","+name)
			}
			w.mkdir("p/there")
		},
		want: []string{"inner ~/p/.git", "own ~/p/gone", "own ~/p/there"},
	},
	"a bare repository beside its worktrees": {
		make: func(w world) {
			w.repo("src", "x")
			w.git(".", "clone", "-q", "--bare", "src", "r/.bare")
			w.git("r/.bare", "worktree", "add", "-q", "../p")
		},
		dir: "r/p", root: "r/.bare",
		want: []string{
			"inner ~/r/.bare", "ro ~/r/p/.git",
		},
	},
	"a separate git folder that points back": {
		make: func(w world) {
			w.git(".", "init", "-q", "--separate-git-dir", "sep", "p")
			w.git("p", "config", "core.worktree", w.path("p"))
		},
		root: "sep",
		want: []string{"ro ~/p/.git", "inner ~/sep"},
	},
	"a separate git folder that does not": {
		make: func(w world) { w.git(".", "init", "-q", "--separate-git-dir", "sep", "p") },
		want: []string{"ro ~/p/.git"},
		note: "core.worktree",
	},
	"a part of a worktree whose git folder does not count": {
		make: func(w world) {
			w.git(".", "init", "-q", "--separate-git-dir", "sep", "r")
			w.mkdir("r/p")
		},
		dir: "r/p", note: "core.worktree",
	},
	"a git folder inside under another name": {
		make: func(w world) { w.mkdir("p"); w.git(".", "init", "-q", "--separate-git-dir", "p/.store", "p") }, root: "p/.store",
		want: []string{"ro ~/p/.git", "inner ~/p/.store"},
	},
	"configuration by worktree, not written yet": {
		make: func(w world) { w.repo("p"); w.git("p", "config", "extensions.worktreeConfig", "true") },
		want: []string{"inner ~/p/.git"},
	},
	"configuration by worktree in a linked one": {
		make: func(w world) {
			w.repo("p")
			w.git("p", "config", "extensions.worktreeConfig", "true")
			w.git("p", "worktree", "add", "-q", "../l")
		},
		want: []string{"inner ~/p/.git"},
	},
	"no configuration at all": {
		make: func(w world) {
			w.repo("p")
			must.Do(w.t, os.Remove(w.path("p/.git/config")))
		},
		want: []string{"inner ~/p/.git"},
	},
	"a submodule's git folder that has lost its HEAD": {
		make: func(w world) {
			w.repo("p")
			w.mkdir("p/.git/modules/a/b/objects")
		},
		want: []string{"inner ~/p/.git"},
	},
	"objects in another repository": {
		make: func(w world) {
			w.repo("m", "x")
			w.git(".", "clone", "-q", "--shared", "m", "p")
		},
		want: []string{"inner ~/p/.git"},
	},
	"a rebase that waits": {
		make: func(w world) {
			w.repo("p")
			w.write("p/.git/rebase-merge/git-rebase-todo", "exec x\n")
			w.write("p/.git/info/attributes", "")
		},
		want: []string{"inner ~/p/.git"},
	},
	"untracked files that the host executes": {
		make: func(w world) {
			w.repo("p", ".envrc", ".vscode/tasks.json", ".claude/settings.json")
			w.write("p/.envrc.local", "")
			w.write("p/.claude/settings.local.json", "")
			w.write("p/.idea/x", "")
		},
		want: []string{
			"pin ~/p/.claude", "ro ~/p/.claude/settings.local.json", "ro ~/p/.envrc.local", "inner ~/p/.git", "ro ~/p/.idea",
		},
	},
	"files that git's configuration names": {
		make: func(w world) {
			w.repo("p")
			w.git("p", "config", "core.hooksPath", "tools/hooks")
			w.git("p", "config", "include.path", "../team.gitconfig")
			w.git("p", "config", "filter.x.clean", "sh 'tools/clean.sh' --dir=tools/data/")
			w.git("p", "config", "core.fsmonitor", w.path("p/watch/man"))
			w.git("p", "config", "remote.x.url", "tools/repo")
			for _, file := range []string{"tools/hooks/pre-commit", "team.gitconfig", "tools/clean.sh", "watch/man", "tools/repo/x"} {
				w.write("p/"+file, "")
			}
		},
		want: []string{
			"inner ~/p/.git", "made ~/p/team.gitconfig", "pin ~/p/tools", "ro ~/p/tools/clean.sh", "ro ~/p/tools/hooks", "pin ~/p/watch", "ro ~/p/watch/man",
		},
	},
	"files that the configuration of other programs names": {
		make: func(w world) {
			w.repo("p")
			for _, file := range []string{"s/cc", "s/tunnel", "s/ssh", "s/lfs", "s/any", "s/template", "main", "notes"} {
				w.write("p/"+file, "")
			}
			for key, value := range map[string]string{
				"sendemail.ccCmd": "s/cc --quiet", "imap.tunnel": "s/tunnel", "core.sshCommand": "ssh -Fs/ssh", "lfs.extension.x.clean": "s/lfs %f",
				"other.program.starts": "sh s/any", "commit.template": "s/template", "init.defaultBranch": "main", "branch.main.description": "see notes",
			} {
				w.git("p", "config", key, value)
			}
		},
		want: []string{
			"inner ~/p/.git", "pin ~/p/s", "ro ~/p/s/any", "ro ~/p/s/cc", "ro ~/p/s/lfs", "ro ~/p/s/ssh", "ro ~/p/s/tunnel",
		},
	},
}

func TestLayouts(t *testing.T) {
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			l.make(w)
			if l.dir == "" {
				l.dir = "p"
			}
			if l.root == "" {
				l.root = l.dir
			}
			req := w.request(l.dir)
			req.GitRoot = l.gitRoot
			p, err := project.Open(req)
			must.Do(t, err)
			if got := w.mounts(p); !slices.Equal(got, l.want) {
				t.Errorf("mounts\n got %q\nwant %q", got, l.want)
			}
			if p.InstanceRoot != w.path(l.root) {
				t.Errorf("root %s, want %s", p.InstanceRoot, l.root)
			}
			if l.note == "" && len(p.Notes) > 0 || !strings.Contains(notes(p), l.note) {
				t.Errorf("notes %q, want %q", notes(p), l.note)
			}
		})
	}
}

// refused pairs a folder with a part of the message.
var refused = map[string]struct {
	dir  string // below home, or absolute
	want string
}{
	"the root of everything":       {"/", "whole machine"},
	"a system folder":              {"/usr", "belongs to the system"},
	"the folder of homes":          {"/home", "holds projects"},
	"the host's /tmp":              {"/tmp", "holds projects"},
	"something below /etc":         {"/etc/ssl", "belongs to the system"},
	"something below /proc":        {"/proc/self", "belongs to the kernel"},
	"home":                         {".", "is your home folder"},
	"above home":                   {"..", "holds your home"},
	"~/.config itself":             {".config", "configuration"},
	"Claude's folder":              {".claude", "Claude Code"},
	"below Claude's folder":        {".claude/projects/x", "Claude Code"},
	"claudebox's folder":           {".claudebox", "claudebox's own"},
	"below claudebox's folder":     {".claudebox/instances/x", "claudebox's own"},
	"claudebox's XDG folder":       {".config/claudebox/profiles", "claudebox's own"},
	"a secret's folder":            {".ssh", "secrets"},
	"below a secret's folder":      {".config/gh/x", "secrets"},
	"a secret's folder by pattern": {".age-keys/x", "secrets"},
	"inside .git":                  {"p/.git/hooks", ".git folder"},
}

func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.repo("p")
	for name, tc := range refused {
		t.Run(name, func(t *testing.T) {
			dir := tc.dir
			if _, err := os.Stat(dir); strings.HasPrefix(dir, "/") && err != nil {
				t.Skip("NOT RUN: ", err)
			}
			if !strings.HasPrefix(dir, "/") {
				w.mkdir(dir)
				dir = w.path(dir)
			}
			req := w.request(".")
			req.Dir = dir
			wantRefusal(t, req, tc.want)
			link := w.path("link-" + strings.ReplaceAll(name, "/", "-"))
			must.Do(t, os.Symlink(dir, link))
			req.Dir = link
			wantRefusal(t, req, tc.want)
		})
	}
}
