//go:build lab

package attacks_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// R7: links of the home into the project (dotfiles, stow): the agent wrote what the user's shell, systemd and their own
// Claude Code obey at once, and nothing was told. R8: the same for what holds secrets.

// homeLinks are links that tools obey: what lies in the project, the link in the home, and what the agent writes.
var homeLinks = map[string]struct{ file, link, target, writes string }{
	"Claude Code's settings":     {"cl/settings.json", ".claude/settings.json", "cl/settings.json", "cl/settings.json"},
	"hooks of Claude Code":       {"cl/hooks/h", ".claude/hooks", "cl/hooks", "cl/hooks/h"},
	"a new hook":                 {"cl/hooks/h", ".claude/hooks", "cl/hooks", "cl/hooks/new"},
	"a skill":                    {"cl/skill/SKILL.md", ".claude/skills/one", "cl/skill", "cl/skill/SKILL.md"},
	"the shell's start":          {"zshenv", ".zshenv", "zshenv", "zshenv"},
	"a chain":                    {"bashrc", ".bashrc", "../dots/bashrc", "bashrc"},
	"programs":                   {"bin/tool", "bin", "bin", "bin/git"},
	"a folder of PATH":           {"tools/tool", ".local/bin", "tools", "tools/git"},
	"a program of PATH":          {"tools/tool", "programs/tool", "tools/tool", "tools/tool"},
	"a unit of systemd":          {"unit", ".config/systemd/user/u.service", "unit", "unit"},
	"what systemd starts":        {"unit", ".config/systemd/user/default.target.wants/u.service", "unit", "unit"},
	"fish":                       {"fish/config.fish", ".config/fish/config.fish", "fish/config.fish", "fish/config.fish"},
	"fish, a folder":             {"fish/conf.d/x.fish", ".config/fish", "fish", "fish/conf.d/new.fish"},
	"Vim":                        {"vimrc", ".vimrc", "vimrc", "vimrc"},
	"Neovim, file by file":       {"lua/x.lua", ".config/nvim/lua/plugins/x.lua", "lua/x.lua", "lua/x.lua"},
	"autostart":                  {"a.desktop", ".config/autostart/a.desktop", "a.desktop", "a.desktop"},
	"an application":             {"a.desktop", ".local/share/applications/a.desktop", "a.desktop", "a.desktop"},
	"ssh's configuration":        {"ssh_config", ".ssh/config", "ssh_config", "ssh_config"},
	"other programs":             {"tmux.conf", ".tmux.conf", "tmux.conf", "tmux.conf"},
	"a folder of other programs": {"zsh/rc", ".zsh", "zsh", "zsh/rc"},
	"a skill of codex":           {"skill/SKILL.md", ".codex/skills/x", "skill", "skill/SKILL.md"},
	"a skill for all agents":     {"skill/run.sh", ".agents/skills/x/scripts/run.sh", "skill/run.sh", "skill/run.sh"},
	"VS Code":                    {"settings", ".config/Code/User/settings.json", "settings", "settings"},
	"far below":                  {"a", ".config/a/b/c/d/e", "a", "a"},
	"a file that git tracks":     {"tracked", ".profile", "tracked", "tracked"},
}

// Promise: nothing written that your home leads to.
func TestAnAgentWritesWhatAHomesLinkLeadsTo(t *testing.T) {
	for name, tc := range trial.Some(3, homeLinks) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.git("project", "init", "-q")
			w.write("project/"+tc.file, "of the user\n")
			w.git("project", "add", "-f", ".")
			w.git("project", "commit", "-qm", "x")
			w.link(w.path("project/bashrc"), "dots/bashrc")
			must.Do(t, os.RemoveAll(w.path(tc.link)))
			w.link(w.path("project/"+tc.target), tc.link)
			w.write("agent/claude", "#!/bin/sh\n")
			must.Do(t, os.Chmod(w.path("agent/claude"), 0o755))
			w = w.finds(w.path("programs") + ":" + w.path(".local/bin") + ":" + w.path("agent") + ":/usr/bin:/bin")
			for range 2 { // with what the first launch has kept
				got := w.claudebox("shell", "--yes", "--", "bash", "-c", `echo evil >"$0"; rm -rf "$0"; mv "$0" x; echo ended`, tc.writes)
				if got.stdout != "ended\n" {
					t.Errorf("%s", got)
				}
				w.named("your home leads", tc.link)
				if w.read("project/"+tc.file) != "of the user\n" || tc.writes != tc.file && w.exists("project/"+tc.writes) {
					t.Errorf("it was written: %s", got)
				}
			}
			must.Do(t, os.Remove(w.path(tc.link)))
			if got := w.claudebox("shell", "--yes", "--", "bash", "-c", `echo mine >"$0"`, tc.writes); w.read("project/"+tc.writes) != "mine\n" {
				t.Errorf("the link is gone: %s", got)
			}
		})
	}
}

// finds is the same user with another PATH.
func (w *world) finds(path string) *world {
	other := *w
	other.env = slices.DeleteFunc(slices.Clone(w.env), func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	other.env = append(other.env, "PATH="+path)
	return &other
}

// named fails if the plan does not name what is held, and why.
func (w *world) named(words ...string) {
	w.t.Helper()
	got := w.claudebox("plan", "--all")
	said := strings.Join(strings.Fields(got.stdout+got.stderr), " ") // where its lines end depends on the length of paths
	for _, word := range words {
		if !strings.Contains(said, word) {
			w.t.Errorf("%q is not named: %s", word, got)
		}
	}
}

// The first session has kept what it saw of the home.
//
// Promise: nothing written that your home leads to.
func TestAnAgentWritesWhatALinkLeadsToThatCameSinceTheLastSession(t *testing.T) {
	w := newWorld(t)
	if got := w.attack("true"); got.status != 0 {
		t.Fatal(got)
	}
	for _, link := range []string{".codex/skills/x", ".agents/skills/x/y", ".config/Code/User/settings.json", ".config/a/b/c", ".zshenv"} {
		w.write("project/"+path.Base(link), "of the user\n")
		w.link(w.path("project/"+path.Base(link)), link)
		got := w.claudebox("shell", "--yes", "--", "bash", "-c", `echo evil >"$0"; true`, path.Base(link))
		if w.read("project/"+path.Base(link)) != "of the user\n" {
			t.Errorf("%s: %s", link, got)
		}
	}
}

// Promise: nothing written that your home leads to.
func TestAnAgentWritesAHomesFileByItsOtherName(t *testing.T) {
	w := newWorld(t)
	w.write(".zshenv", "of the user\n")
	w.write(".config/git/config", "[user]\n")
	for range 2 {
		if got := w.attack("true"); got.status != 0 {
			t.Fatal(got)
		}
		for from, to := range map[string]string{".zshenv": "project/z", ".config/git/config": "project/deep/g"} {
			w.folder("project/deep")
			if err := os.Link(w.path(from), w.path(to)); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
		got := w.claudebox("shell", "--yes", "--", "bash", "-c", "echo evil >z; echo evil >deep/g; true")
		if w.read(".zshenv") != "of the user\n" || w.read(".config/git/config") != "[user]\n" {
			t.Errorf("%s", got)
		}
		w.named("hard link")
	}
}

// A folder of the home is a link to another (~/bin), or a folder of PATH lies in a place that is looked at less closely.
//
// Promise: nothing written that your home leads to.
func TestAnAgentWritesACommandByItsOtherName(t *testing.T) {
	for name, tc := range map[string]struct{ folder, link string }{
		"two paths lead to its folder": {".local/bin", "bin"},
		"rust's programs":              {".cargo/bin", ""},
		"pnpm's programs":              {".local/share/pnpm", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(tc.folder+"/tool", "of the user\n")
			if tc.link != "" {
				w.link(w.path(tc.folder), tc.link)
			}
			w = w.finds(w.path(tc.folder) + ":" + w.path(".local/bin") + ":/usr/bin:/bin")
			must.Do(t, os.Link(w.path(tc.folder+"/tool"), w.path("project/tool")))
			for range 2 { // with what the first launch has kept
				got := w.claudebox("shell", "--yes", "--", "bash", "-c", "echo evil >tool; true")
				if w.read(tc.folder+"/tool") != "of the user\n" {
					t.Errorf("it was written: %s", got)
				}
				w.named("your home leads", "a hard")
			}
		})
	}
}

// What is not there, the agent would make; a link in the project on the way it would lead elsewhere.
//
// Promise: nothing written that your home leads to.
func TestAnAgentMakesWhatAHomesLinkLeadsTo(t *testing.T) {
	for name, tc := range map[string]struct {
		link, target string
		way          string // a link in the project
	}{
		"a file":             {link: ".zshenv", target: "zshenv"},
		"in a folder":        {link: ".zshenv", target: "no/such/zshenv"},
		"a folder":           {link: ".claude/hooks", target: "hooks"},
		"by a link":          {link: ".zshenv", target: "hop", way: "file"},
		"by a link and out":  {link: ".zshenv", target: "hop", way: "../documents/letter"},
		"by a folder's link": {link: ".config/fish", target: "hop", way: "folder"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("project/file", "")
			w.folder("project/folder")
			w.link(w.path("project/"+tc.target), tc.link)
			if tc.way != "" {
				w.link(tc.way, "project/"+tc.target)
			}
			for range 2 {
				w.wantRefused(w.attack("true"), tc.link)
			}
		})
	}
}

// Promise: nothing written that your home leads to.
func TestAnAgentWritesAFolderOfPATH(t *testing.T) {
	w := newWorld(t)
	w.write("project/node_modules/.bin/tool", "of the user\n")
	w.write("project/bin/tool", "of the user\n")
	w.write("project/lib/cli.js", "of the user\n")
	w.link("../../lib/cli.js", "project/node_modules/.bin/cli")
	for _, path := range []string{w.path("project/node_modules/.bin") + ":" + w.path("project/bin"), "node_modules/.bin:./bin"} {
		got := w.finds(path+":/usr/bin:/bin:"+w.path(".local/bin")).claudebox("shell", "--yes", "--", "bash", "-c",
			"for f in bin node_modules/.bin; do echo evil >$f/tool; echo evil >$f/git; mv $f x; done; echo evil >lib/cli.js; true")
		if w.read("project/bin/tool")+w.read("project/node_modules/.bin/tool")+w.read("project/lib/cli.js") != "of the user\nof the user\nof the user\n" ||
			w.exists("project/bin/git") || w.exists("project/node_modules/.bin/git") {
			t.Errorf("%s: %s", path, got)
		}
	}
	got := w.finds(".:/usr/bin:/bin:"+w.path(".local/bin")).claudebox("shell", "--yes", "--", "true")
	if !strings.Contains(got.stderr, "obey what is written there") || got.status != 0 {
		t.Errorf("the project itself: %s", got)
	}
	w.wantRefused(w.finds(w.path("project/absent")+":/usr/bin:/bin:"+w.path(".local/bin")).attack("true"), "PATH (")
}

// A variable of the user's shell names it.
func TestAnAgentWritesWhatAVariableNames(t *testing.T) {
	w := newWorld(t)
	w.write("project/env", "of the user\n")
	w.write("project/zsh/.zshrc", "of the user\n")
	w = w.with("BASH_ENV="+w.path("project/env"), "ZDOTDIR="+w.path("project/zsh"))
	got := w.attack("echo evil >env; echo evil >zsh/.zshrc; echo evil >zsh/.zshenv; true")
	if got.status != 0 || w.read("project/env")+w.read("project/zsh/.zshrc") != "of the user\nof the user\n" || w.exists("project/zsh/.zshenv") {
		t.Errorf("%s", got)
	}
	w.named("BASH_ENV", "ZDOTDIR")
	w.wantRefused(w.with("ENV="+w.path("project/absent")).attack("true"), "ENV (")
}

// What a link leads to in a folder that is mounted read-write beside the project.
func TestAnAgentWritesBesideWhatAHomesLinkLeadsTo(t *testing.T) {
	w := newWorld(t)
	w.write("dots/zshenv", "of the user\n")
	w.write("dots/aws/x", canary)
	w.link(w.path("dots/zshenv"), ".zshenv")
	got := w.attack("echo evil >../dots/zshenv; true", "--mount-rw", "../dots")
	if w.read("dots/zshenv") != "of the user\n" {
		t.Errorf("%s", got)
	}
	w.link(w.path("dots/aws/x"), ".aws/credentials")
	w.wantRefused(w.attack("true", "--mount-rw", "../dots"), ".aws/credentials")
	w.wantRefused(w.attack("true", "--mount-ro", "../dots"), ".aws/credentials")
}

// Promise: nothing written that your home leads to.
func TestAnAgentReadsASecretByAHomesLink(t *testing.T) {
	for link, target := range map[string]string{
		".claude": "cl", ".aws": "aws2", ".aws/credentials": "aws2/x", ".ssh": "keys", ".ssh/id_work": "keys/x",
		".gnupg": "g", ".config/gh": "gh", ".config/gh/hosts.yml": "gh/x", ".netrc": "n/x", ".git-credentials": "n/x",
		".kube/config": "k/x", ".docker/config.json": "d/x", ".claude/projects": "conversations", ".mozilla": "m",
		".claude/.credentials.json": "cl/x", ".bash_history": "h/x", ".env": "e/x", ".pgpass": "n/x",
	} {
		t.Run(strings.ReplaceAll(link, "/", " "), func(t *testing.T) {
			w := newWorld(t)
			secret := "project/" + target
			if filepath.Base(target) != "x" {
				secret += "/gh/a" // of ~/.config, a place of secrets
			}
			w.write(secret, `{"password": "`+canary+`-9f8e7d6c5b4a"}`)
			must.Do(t, os.RemoveAll(w.path(link)))
			w.link(w.path("project/"+target), link)
			for range 2 {
				got := w.attack("cat " + strings.TrimPrefix(secret, "project/"))
				w.wantRefused(got, link)
				w.wantNoCanary(got)
			}
		})
	}
}

// A secret of the home has another name in what the agent is given: it was read-only there, and could be read.
//
// Promise: no secret place.
func TestAnAgentReadsASecretByAnotherNameOfIt(t *testing.T) {
	for _, secret := range []string{
		".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".kube/config", ".git-credentials", ".docker/config.json",
		".claude/.credentials.json", ".bash_history", ".ssh/id_rsa", ".npmrc",
	} {
		t.Run(strings.ReplaceAll(secret, "/", " "), func(t *testing.T) {
			w := newWorld(t)
			content := `{"auths": {"x": {"auth": "` + canary + `", "password": "` + canary + `-9f8e7d6c5b4a"}}}`
			w.write(secret, content)
			for _, name := range []string{"project/plain", "beside/plain"} {
				w.folder(filepath.Dir(name))
				must.Do(t, os.Link(w.path(secret), w.path(name)))
			}
			for _, flags := range [][]string{nil, {"--mount-rw", "../beside"}, {"--mount-ro", "../beside"}} {
				for range 2 {
					got := w.attack("cat plain ../beside/plain; echo; echo ran", flags...)
					w.wantNoCanary(got)
					if !strings.Contains(got.stdout, "ran") && !strings.Contains(got.stderr, "remedy: ") {
						t.Error(got)
					}
				}
			}
			if w.read(secret) != content {
				t.Error("the user's own is not as it was")
			}
		})
	}
}

// The file of a secret that stays outside has another name in what the agent is given.
//
// Promise: no login, no API key, no token of git's.
func TestAnAgentReadsTheFileOfASecretByAnotherName(t *testing.T) {
	w := newWorld(t)
	w.write("tokens/foo", canary+"\n")
	lines := w.profile("secrets: [{file: ~/tokens/foo, env: FOO, hosts: [foo.example]}]")
	for at, flags := range map[string][]string{
		"project/plain": nil, "beside/plain": {"--mount-ro", "../beside"}, "other/plain": {"--mount-rw", "../other"},
	} {
		w.folder(filepath.Dir(at))
		must.Do(t, os.Link(w.path("tokens/foo"), w.path(at)))
		got := w.attack("cat ../"+at+"; echo; echo ran", append(lines, flags...)...)
		w.wantNoCanary(got)
		if !strings.Contains(got.stdout, "ran") {
			t.Errorf("%s: %s", at, got)
		}
		must.Do(t, os.Remove(w.path(at)))
	}
}

// A bind mount shows the same file at two paths.
func TestAnAgentReachesTheHomeByABindMount(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, refused string }{
		"a file that tools obey": {from: "project/zshenv", to: ".zshenv"},
		"its other name":         {from: ".zshenv", to: "project/zshenv"},
		"a folder of them":       {from: "project/hooks", to: ".claude/hooks"},
		"a folder of PATH":       {from: "project/tools", to: ".local/bin"},
		"a secret":               {from: ".ssh", to: "project/folder", refused: "SSH keys"},
		"all of the home":        {from: ".", to: "project/folder", refused: "leads into it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, file := range []string{"project/zshenv", ".zshenv"} {
				w.write(file, "of the user\n")
			}
			for _, dir := range []string{"project/hooks", ".claude/hooks", "project/tools", "project/folder"} {
				w.folder(dir)
			}
			w.write("project/tools/claude", "#!/bin/sh\n")
			must.Do(t, os.Chmod(w.path("project/tools/claude"), 0o755))
			script := "cat folder/id_ed25519 folder/.ssh/id_ed25519; echo evil >zshenv; echo evil >hooks/new; echo evil >tools/new; true"
			line := `mount --bind "$1" "$2" && exec setpriv --ambient-caps=-all --inh-caps=-all -- "$0" shell --yes --no-report -- bash -c "$3"`
			cmd := exec.Command("unshare", "--map-current-user", "--keep-caps", "--mount", "--", "sh", "-c", line, trial.Binary(t), w.path(tc.from), w.path(tc.to), script)
			cmd.Dir, cmd.Env = w.project, w.env
			status, stdout, stderr := trial.Run(t, cmd)
			got := outcome{status, stdout, stderr}
			w.wantNoCanary(got)
			if tc.refused != "" {
				w.wantRefused(got, tc.refused)
				return
			}
			own := map[bool]string{true: "of the user\n", false: "evil\n"}[strings.Contains(tc.from+tc.to, "zshenv")]
			if status != 0 || w.read("project/zshenv") != own || w.read(".zshenv") != "of the user\n" ||
				w.exists("project/hooks/new") == strings.Contains(tc.from, "hooks") || w.exists("project/tools/new") == strings.Contains(tc.from, "tools") {
				t.Errorf("%s", got)
			}
		})
	}
}

// claudebox's own folder lies in it.
func TestAnAgentWritesAllOfTheConfiguration(t *testing.T) {
	w := newWorld(t)
	w.write("project/config/foo/rc", "of the user\n")
	w.link(w.path("project/config"), ".config")
	w.wantRefused(w.attack("true"), "is claudebox's own")
}

// The user makes a link while the agent works.
func TestALinkThatIsMadeWhileTheAgentWorks(t *testing.T) {
	w := newWorld(t)
	w.write("project/zshenv", "")
	l := w.begin()
	l.sh("echo evil >zshenv; sleep 0.3") // longer than a short command
	w.link(w.path("project/zshenv"), ".zshenv")
	if said := l.end(); !strings.Contains(said, ".zshenv leads to") || !strings.Contains(said, "not known when this session began") {
		t.Error(said)
	}
	if got := w.attack("true"); strings.Contains(got.stderr, "not known when this session began") {
		t.Errorf("%s", got)
	}
}

// The user makes a file of the project a program of their own by another name of it.
func TestAnotherNameThatIsMadeWhileTheAgentWorks(t *testing.T) {
	w := newWorld(t)
	w.write("project/tool", "")
	w.folder("bin")
	w = w.with("PATH=" + w.path("bin") + ":" + w.path(".local/bin") + ":/usr/bin:/bin")
	l := w.begin()
	l.sh("sleep 0.3") // longer than a short command
	must.Do(t, os.Link(w.path("project/tool"), w.path("bin/tool")))
	l.sh("echo evil >tool")
	if said := l.end(); !strings.Contains(said, "bin/tool has another name in ") {
		t.Error(said)
	}
	if got := w.attack("echo evil >tool"); got.status == 0 {
		t.Errorf("the next session writes it: %s", got)
	}
}
