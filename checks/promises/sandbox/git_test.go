//go:build lab

package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/realgit"
)

// git is what the host's git prints, with nobody's configuration.
func (w *world) git(t *testing.T, dir string, words ...string) string {
	t.Helper()
	return realgit.Do(t, w.path(dir), append(w.environment(), "GIT_CONFIG_GLOBAL=/dev/null"), words...)
}

// repository makes the project one, with a commit.
func (w *world) repository(t *testing.T) {
	t.Helper()
	w.git(t, "project", "init", "-q", "-b", "main")
	w.write(t, "project/README.md", "# A project\n")
	w.git(t, "project", "add", ".")
	w.git(t, "project", "commit", "-qm", "begin")
}

const commit = `echo more >>README.md; git commit -qam "work"; git log -1 --format='%an <%ae> %cn <%ce>'`

func TestACommitHasTheUsersIdentity(t *testing.T) {
	const plain = "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n"
	for name, tc := range map[string]struct {
		files map[string]string
		env   map[string]string
		want  string
	}{
		"of ~/.gitconfig":       {map[string]string{".gitconfig": plain}, nil, "Ada Lovelace <ada@example.org>"},
		"of the XDG folder":     {map[string]string{".config/git/config": plain}, nil, "Ada Lovelace <ada@example.org>"},
		"of the includes":       {map[string]string{".gitconfig": "[include]\n\tpath = ~/who\n", "who": plain}, nil, "Ada Lovelace <ada@example.org>"},
		"of a folder's include": {map[string]string{".gitconfig": plain + "[includeIf \"gitdir:~/project/\"]\n\tpath = work\n", "work": "[user]\n\temail = ada@work.example\n"}, nil, "Ada Lovelace <ada@work.example>"},
		"not of another folder": {map[string]string{".gitconfig": plain + "[includeIf \"gitdir:~/elsewhere/\"]\n\tpath = work\n", "work": "[user]\n\temail = ada@work.example\n"}, nil, "Ada Lovelace <ada@example.org>"},
		"of a branch's include": {map[string]string{".gitconfig": plain + "[includeIf \"onbranch:main\"]\n\tpath = work\n", "work": "[user]\n\tname = Main\n"}, nil, "Main <ada@example.org>"},
		"of the remote's":       {map[string]string{".gitconfig": plain + "[includeIf \"hasconfig:remote.*.url:https://work.example/**\"]\n\tpath = work\n", "work": "[user]\n\temail = ada@work.example\n"}, nil, "Ada Lovelace <ada@work.example>"},
		"with a strange name":   {map[string]string{".gitconfig": "[user]\n\tname = \"A # \\\"B\\\" \\\\ é\"\n\temail = a@example.org\n"}, nil, `A # "B" \ é <a@example.org>`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.git(t, "project", "remote", "add", "origin", "https://work.example/x/y")
			for file, content := range tc.files {
				w.write(t, file, content)
			}
			wantEqual(t, w.inside(t, commit), tc.want+" "+tc.want+"\n")
		})
	}
}

// Nobody is invented: git says itself what is missing. The plan says before what to do, which is done word for word.
func TestWithoutAnIdentityGitAsksForOne(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	got := run(t, w.session(commit))
	if got.status != 128 || !strings.Contains(got.stderr, "Please tell me who you are") && !strings.Contains(got.stderr, "unable to auto-detect email") {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
	_, remedy, _ := strings.Cut(oneLine(succeed(t, w.claudebox("plan"))), "user.name and user.email are not set; outside: `")
	remedy, _, _ = strings.Cut(remedy, "`")
	w.plain(t, remedy)
	expect.Contains(t, w.inside(t, commit+"; git log -1 --format='%an %ae'"), "NAME ADDRESS\n")
}

// One that the repository has is enough: the plan said all the same that git commits nothing.
func TestTheIdentityOfTheRepositoryIsEnough(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.plain(t, "git config user.name R; git config user.email r@x")
	if got := oneLine(succeed(t, w.claudebox("plan"))); strings.Contains(got, "commits nothing") {
		t.Errorf("told %s", got)
	}
	expect.Contains(t, w.inside(t, commit+"; git log -1 --format='%an %ae'"), "R r@x\n")
}

// Of what else the user's configuration says programs stay outside that are not inside, keys, and addresses: an alias,
// helper, pager or signing program would run inside, or miss there.
func TestNoProgramOrKeyOfTheUsersGitConfigurationEnters(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", `[user]
	name = Ada
	email = ada@example.org
	signingkey = KEY
[commit]
	gpgsign = true
[credential]
	helper = store
[core]
	pager = evil
	sshCommand = evil
	hooksPath = ~/hooks
	fsmonitor = evil
[alias]
	st = !evil
[url "git@example.org:"]
	insteadOf = https://example.org/
[http]
	extraHeader = X: Y
`)
	got := succeedWarned(t, w.session(`git config --global --list --name-only | sort -u; `+commit), "commits are not signed inside")
	wantEqual(t, got, `core.hookspath
core.sshcommand
safe.directory
user.email
user.name
user.useconfigonly
Ada <ada@example.org> Ada <ada@example.org>
`)
}

// Files of the project belong to the user inside as well, but git in a
// user namespace may see another owner above.
func TestSafeDirectoryIsTheProjectAndItsRepository(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	wantEqual(t, w.normal(w.inside(t, `git config --global --get-all safe.directory; git status --short`)), "HOME/project\nHOME/project/.git\n")
}

func TestGitWorksFromALinkedWorktree(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n")
	w.git(t, "project", "worktree", "add", "-q", "-b", "side", w.path("side"))
	w.write(t, "project/untracked", canary)
	w.project = w.path("side")
	got := w.inside(t, commit+`; git switch -qc other; git branch -qD side 2>/dev/null; git gc -q; git log --oneline | wc -l; ls -A ../project`)
	wantEqual(t, got, "Ada <ada@example.org> Ada <ada@example.org>\n2\n.git\n")
	for _, line := range findings(t, succeed(t, w.search())) {
		t.Errorf("of the main checkout: %s", line)
	}
}

// git worktree add ../x would make a folder that vanishes with the session.
func TestAWorktreeBesideTheProjectFailsClearly(t *testing.T) {
	w := newWorld(t)
	w.project = w.folder(t, "src/project")
	w.git(t, "src/project", "init", "-q", "-b", "main")
	w.git(t, "src/project", "commit", "-qm", "begin", "--allow-empty")
	got := run(t, w.session(`git worktree add ../x`))
	if got.status == 0 || !strings.Contains(got.stderr, "Read-only file system") {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
	wantEqual(t, w.inside(t, `git worktree add -q .claude/worktrees/x && git -C .claude/worktrees/x status --short`), "")
}

// U5: of a project right below the home, ../x is in the sandbox's own home.
func TestAWorktreeThatWasInsideOnlyIsSaidToBeGone(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	got := run(t, w.claudebox("shell", "--yes", "--", "bash", "-euc", `git worktree add -q ../x && echo lost >../x/file`))
	said := oneLine(w.normal(got.stderr))
	if got.status != 0 || !strings.Contains(said, "its worktree HOME/x was inside only, and is gone") || !strings.Contains(said, "`worktrees`") {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
	got = run(t, w.session(`git worktree list`))
	if got.status != 0 || strings.Contains(got.stderr, "hard link") {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
}

// A subfolder sees itself and the repository, not its siblings. Git crosses the mount between the two.
func TestASubfolderOfARepositoryIsAProject(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, "project/a/file", "a\n")
	w.write(t, "project/b/file", "b\n")
	w.git(t, "project", "add", ".")
	w.git(t, "project", "commit", "-qm", "two")
	w.project = w.path("project/a")
	wantEqual(t, w.normal(w.inside(t, "pwd; git rev-parse --show-toplevel; ls")), "HOME/project/a\nHOME/project\nfile\n")
	file := w.profile(t, "project: cwd")
	w.write(t, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n")
	got := succeedWarned(t, w.session(`pwd; ls; ls -A ..; git log --oneline -- file | wc -l; echo x >>file; git commit -qm three -- file && git log --oneline -- file | wc -l`, "--profile", file), "git-root")
	wantEqual(t, w.normal(got), "HOME/project/a\nfile\n.git\na\n1\n2\n")
}

// accepted holds what was made inside to the host's own git.
func (w *world) accepted(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		w.git(t, dir, "fsck", "--strict", "--no-dangling")
		w.git(t, dir, "log", "--oneline", "--all")
	}
}

const ada = "[user]\n\tname = Ada\n\temail = ada@example.org\n"

// A submodule has its git folder in the one of the repository above.
func TestGitWorksInASubmoduleAndAroundIt(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", ada)
	w.git(t, "", "clone", "-q", w.project, w.path("part"))
	w.git(t, "project", "-c", "protocol.file.allow=always", "submodule", "add", "-q", w.path("part"), "part")
	w.git(t, "project", "commit", "-qm", "add part")
	script := `git -C part switch -qc work; echo x >>part/README.md; git -C part commit -qam inside
		git submodule update -q; git -C part switch -q work; git add part; git commit -qm "newer part"
		git submodule status | cut -c1; git -C part log -1 --format=%an; git status --short`
	wantEqual(t, w.inside(t, script), " \nAda\n")
	w.accepted(t, "project", "project/part")

	w.project = w.path("project/part")
	wantEqual(t, w.inside(t, commit+`; git gc -q; ls -A ..`), "Ada <ada@example.org> Ada <ada@example.org>\n.git\npart\n")
	w.accepted(t, "project/part")
}

// Some keep a bare repository with its worktrees beside it.
func TestGitWorksInAWorktreeOfABareRepository(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", ada)
	w.git(t, "", "clone", "-q", "--bare", w.project, w.path("work/store.git"))
	w.git(t, "work/store.git", "worktree", "add", "-q", "-b", "one", w.path("work/one"))
	w.git(t, "work/store.git", "worktree", "add", "-q", "-b", "two", w.path("work/two"))
	w.write(t, "work/two/untracked", canary)
	w.project = w.path("work/one")
	got := w.inside(t, commit+`; git switch -qc three; git gc -q; git worktree list | wc -l; ls -A ..`)
	wantEqual(t, got, "Ada <ada@example.org> Ada <ada@example.org>\n3\none\nstore.git\n")
	for _, line := range findings(t, succeed(t, w.search())) {
		t.Errorf("of another worktree: %s", line)
	}
	w.accepted(t, "work/one", "work/two")
}

// A .git file counts only when what it names points back: else an agent would
// have another repository mounted by writing one line.
func TestAGitFileThatPointsElsewhereShowsNothingOfIt(t *testing.T) {
	for name, point := range map[string]func(w *world){
		"at another repository":     func(w *world) { w.write(t, "project/.git", "gitdir: "+w.path("other/.git")+"\n") },
		"at it by a relative path":  func(w *world) { w.write(t, "project/.git", "gitdir: ../other/.git\n") },
		"at another one's worktree": func(w *world) { w.write(t, "project/.git", "gitdir: "+w.path("other/.git/worktrees/side")+"\n") },
		"through a link":            func(w *world) { w.link(t, "../other/.git", "project/.git") },
		"through a made git folder": func(w *world) {
			w.write(t, "project/.git/HEAD", "ref: refs/heads/main\n")
			w.write(t, "project/.git/commondir", w.path("other/.git")+"\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.git(t, "", "init", "-q", "-b", "main", w.path("other"))
			w.write(t, "other/secret", canary)
			w.git(t, "other", "add", ".")
			w.git(t, "other", "commit", "-qm", canary)
			w.git(t, "other", "worktree", "add", "-q", w.path("side"))
			point(w)
			got := run(t, w.session(`! git log 2>/dev/null; ls -d ../other ../side 2>/dev/null || true`))
			if got.status == 125 {
				return // refused: that is as good
			}
			if got.status != 0 || got.stdout != "" {
				t.Errorf("status %d, stdout %q\n%s", got.status, got.stdout, got.stderr)
			}
			for _, line := range findings(t, succeedWarned(t, w.search(), "which is not mounted")) {
				t.Errorf("of the other repository: %s", line)
			}
		})
	}
}

// U9: what the user's git ignores was not ignored inside, so `git add -A` took it.
func TestWhatTheUserIgnoresIsIgnoredInside(t *testing.T) {
	w := newWorld(t)
	w.git(t, "project", "init", "-q")
	w.write(t, "ignore", "*.local\n")
	w.write(t, ".gitconfig", "[core]\n\texcludesFile = ~/ignore\n")
	w.write(t, "project/a.local", "x")
	wantEqual(t, w.inside(t, "git status --porcelain"), "")
	// one of the project is inside, and read where it lies
	w.write(t, ".gitconfig", "[core]\n\texcludesFile = "+w.path("project/ignore")+"\n")
	w.write(t, "project/ignore", "*.local\n")
	wantEqual(t, w.inside(t, "git status --porcelain; ls ~/.config 2>/dev/null || :"), "?? ignore\n")
}

const me = "[user]\n\tname = Ada\n\temail = ada@example.org\n"

// D4: with filters of the user's configuration the agent committed whole files, as they lay there.
func TestACommitHoldsWhatTheUsersFiltersMake(t *testing.T) {
	const user = me + "[filter \"up\"]\n\tclean = tr a-z A-Z\n\trequired = true\n"
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", user)
	w.write(t, "project/.gitattributes", "*.x filter=up\n")
	w.write(t, "project/f.x", "b\n")
	for _, words := range [][]string{{"config", "filter.up.clean", "tr a-z A-Z"}, {"add", "-A"}, {"commit", "-qm", "f"}, {"config", "--remove-section", "filter.up"}} {
		w.git(t, "project", words...)
	}
	wantEqual(t, w.inside(t, "echo c >>f.x; git commit -qam c; git cat-file -p HEAD:f.x"), "B\nC\n")
	wantEqual(t, w.git(t, "project", "cat-file", "-p", "HEAD:f.x"), "B\nC\n")
	// what is not inside makes git refuse, with a sentence, and a red remark says so before
	w.write(t, ".gitconfig", strings.ReplaceAll(user, "tr a-z A-Z", "git-lfs clean -- %f"))
	got := run(t, w.session("echo d >>f.x; git commit -qam d"))
	if got.status == 0 || !strings.Contains(got.stderr, "claudebox: git refuses what needs filter.up of your git configuration: git-lfs is not inside: add its package to the profile: `packages: [git-lfs]`") ||
		!strings.Contains(got.stderr, "clean filter 'up' failed") {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
	wantEqual(t, w.git(t, "project", "cat-file", "-p", "HEAD:f.x"), "B\nC\n")
}

// Likewise what else decides what a commit holds: line ends, attributes of all repositories, hooks of all.
func TestACommitHoldsWhatTheUsersSettingsMake(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", me+"[core]\n\tautocrlf = input\n\thooksPath = ~/.config/git/hooks\n[filter \"up\"]\n\tclean = tr a-z A-Z\n[alias]\n\tsave = commit -qm\n")
	w.write(t, ".config/git/attributes", "*.x filter=up\n")
	w.script(t, ".config/git/hooks/commit-msg", "#!/bin/sh\necho 'Change-Id: I1' >>\"$1\"\n")
	got := w.inside(t, `printf 'a\r\n' >crlf; echo b >f.x; git add -A 2>/dev/null; git save "work" 2>/dev/null; git cat-file -p HEAD:crlf | od -c | head -n1; git cat-file -p HEAD:f.x; git log -1 --format=%B; `+
		`touch ~/.config/git/hooks/x 2>/dev/null || echo read-only`)
	wantEqual(t, got, "0000000   a  \\n\nB\nwork\nChange-Id: I1\n\nread-only\n")
}

// What a setting of git's names is inside, or it is said why not, and the remedy helps.
func TestWhatGitSettingsNameEntersOrIsNamed(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", me+`[commit]
	template = ~/.config/git/message
[mailmap]
	file = ~/mailmap
[blame]
	ignoreRevsFile = .git-blame-ignore-revs
[diff]
	orderFile = ~/dot/order
[gpg "ssh"]
	allowedSignersFile = ~/signers
[init]
	templateDir = ~/template
`)
	w.write(t, ".config/git/message", "Why:\n")
	w.write(t, "mailmap", "Lovelace <ada@example.org>\n")
	w.write(t, "signers", "ada@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI\n")
	w.write(t, "order.real", "b*\na*\n")
	w.folder(t, "dot")
	w.link(t, w.path("order.real"), "dot/order")
	w.write(t, "template/description", "from the template\n")
	w.write(t, "project/.git-blame-ignore-revs", "")
	const ask = `git commit -q --allow-empty -m x; git log -1 --use-mailmap --format=%aN; GIT_EDITOR=cat git commit --allow-empty -q 2>/dev/null | head -n1; ` +
		`cat $(git config gpg.ssh.allowedSignersFile) | cut -c-15; cat $(git config --path init.templateDir)/description; git config blame.ignoreRevsFile; `
	got := run(t, w.session(ask+"git config diff.orderFile || echo none"))
	wantEqual(t, got.stdout, "Lovelace\nWhy:\nada@example.org\nfrom the template\n.git-blame-ignore-revs\nnone\n")
	plan := succeed(t, w.claudebox("plan"))
	_, remedy, _ := strings.Cut(oneLine(plan), "git diff inside has another order: it is reached by a link: ")
	words := strings.Fields(remedy + " not named")[:2]
	wantEqual(t, w.inside(t, "cat $(git config diff.orderFile)", words[0], words[1]), "b*\na*\n")
}

// A filter that the repository itself configures, as `git-crypt init` does, was not named, and git's error has no remedy.
func TestAFilterOfTheRepositoryThatIsNotInsideIsNamed(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", me)
	w.git(t, "project", "config", "filter.git-crypt.clean", `"git-crypt" clean`)
	w.git(t, "project", "config", "filter.own.smudge", "cat")
	w.git(t, "project", "config", "merge.npm.driver", "npx npm-merge-driver merge %A %O %B %P")
	w.write(t, "project/.gitattributes", "*.key filter=git-crypt\n")
	got := run(t, w.session("echo k >a.key; git add a.key"))
	if got.status == 0 || !strings.Contains(got.stderr, "claudebox: git refuses what needs filter.git-crypt of the repository: git-crypt is not inside: add its package to the profile: `packages: [git-crypt]`\n") {
		t.Errorf("%+v", got)
	}
	plan := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, plan, "left out: 2 git filters ", "merge.npm of the repository: npx is not inside: add its package to the profile: `packages: [nodejs]`; until then there is a conflict")
}

// What the repository's own settings name, and a user's credential helpers, were missing without a word.
func TestWhatTheRepositorysSettingsNameIsNamed(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", me+"[credential \"https://mydomain.example\"]\n\thelper = /opt/gcm store\n")
	w.script(t, "hooks/commit-msg", "#!/bin/sh\necho 'Change-Id: I1' >>\"$1\"\n")
	w.git(t, "project", "config", "core.hooksPath", w.path("hooks"))
	const commit = "git commit -q --allow-empty -m x; git log -1 --format=%B"
	got := run(t, w.session(commit))
	said := strings.ReplaceAll(oneLine(got.stderr), "claudebox: ", "")
	_, remedy, _ := strings.Cut(said, "core.hookspath of the repository: "+w.path("hooks")+" is not inside: ")
	flag, file, _ := strings.Cut(remedy, " ")
	file, _, _ = strings.Cut(file, ",")
	if got.stdout != "x\n\n" || !strings.HasSuffix(said, "until then commits inside are made without its hooks") {
		t.Fatalf("got %q, %s", got.stdout, said)
	}
	wantEqual(t, w.inside(t, commit, flag, file), "x\nChange-Id: I1\n\n")
	for _, remote := range []string{"git@mydomain.example:a/b.git", "https://mydomain.example/a/b.git"} {
		w.git(t, "project", "config", "remote.origin.url", remote)
		plan := succeed(t, w.claudebox("plan"))
		if strings.Contains(oneLine(plan), "your credential helpers and ~/.netrc stay outside") != strings.HasPrefix(remote, "https") {
			t.Errorf("%s: %s", remote, plan)
		}
	}
	w.write(t, ".gitconfig", me)
	for _, netrc := range []bool{false, true} {
		if netrc {
			w.write(t, ".netrc", "machine mydomain.example login me password x\n")
		}
		for _, remote := range []string{"git@mydomain.example:a/b.git", "https://mydomain.example/a/b.git"} {
			w.git(t, "project", "config", "remote.origin.url", remote)
			named := netrc && strings.HasPrefix(remote, "https")
			if plan := oneLine(succeed(t, w.claudebox("plan"))); strings.Contains(plan, "git logs in nowhere") != named {
				t.Errorf("netrc %v, %s: %s", netrc, remote, plan)
			}
		}
	}
}

// U20: an SSH remote failed with `cannot run ssh`, and nobody knew what to do.
func TestAnSSHRemoteSaysWhatTheProfileWouldNeed(t *testing.T) {
	w := newWorld(t)
	w.git(t, "project", "init", "-q")
	got := w.inside(t, `git fetch git@github.com:a/b.git 2>&1 || echo status $?; git ls-remote ssh://git@h.example/x 2>&1 | head -n1`)
	if strings.Count(got, "claudebox: there is no ssh inside.") != 2 || !strings.Contains(got, "ssh_to_https: true") || !strings.Contains(got, "status 128") {
		t.Errorf("got %q", got)
	}
}

// U6: git did not work inside when claudebox was called in a subfolder.
func TestTheRepositoryIsTheProjectOfItsSubfolders(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	root := w.project
	w.project = w.folder(t, "project/src/deep")
	got := w.inside(t, "pwd; git rev-parse --show-toplevel; touch "+root+"/new; git status --short")
	wantEqual(t, w.normal(got), "HOME/project/src/deep\nHOME/project\n?? ../../new\n")
}

// U5: git worktree remove of what an earlier session had made deleted a part of
// it, and said that something was busy.
func TestAWorktreeFromBeforeIsRemovedWholeOrNotAtAll(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.inside(t, `git worktree add -q .claude/worktrees/x && git worktree add -q .claude/worktrees/y && git worktree remove .claude/worktrees/y`)
	got := run(t, w.session(`git worktree remove .claude/worktrees/x; git worktree prune; git -C .claude/worktrees/x status --short`))
	if !strings.Contains(got.stderr, "lock reason: claudebox protects what was there before this session; remove it outside") {
		t.Errorf("it says %q", got.stderr)
	}
	w.git(t, "project/.claude/worktrees/x", "diff", "--exit-code", "HEAD")
	w.git(t, "project", "worktree", "remove", ".claude/worktrees/x")
}

// U5: a worktree that the user has made beside the project is worked in where the
// profile names it.
func TestAWorktreeBesideTheProjectIsGivenByTheProfile(t *testing.T) {
	w := newWorld(t)
	w.project = w.folder(t, "src/project")
	w.git(t, "src/project", "init", "-q", "-b", "main")
	w.git(t, "src/project", "commit", "-qm", "begin", "--allow-empty")
	w.git(t, "src/project", "worktree", "add", "-q", w.path("src/wt-1"))
	profile := w.profile(t, `worktrees: ["../wt-*"]`)
	script := `cd ../wt-1 && echo a >a && git add a && git -c user.name=A -c user.email=a@b commit -qm a; git worktree list | wc -l`
	wantEqual(t, w.inside(t, script, "-P", profile), "2\n")
	w.git(t, "src/wt-1", "rev-parse", "--verify", "wt-1:a")
	w.git(t, "src/wt-1", "diff", "--exit-code", "HEAD")
}

// A hook whose program is not inside stops git: the user is told before, by which program.
func TestAGitHookThatCannotRunIsNamed(t *testing.T) {
	const cannot, node = " cannot run inside: ", "add its package to the profile: `packages: [nodejs]`"
	for name, tc := range map[string]struct{ place, script, config, want string }{
		"an interpreter":   {"project/.git/hooks/pre-commit", "#!/usr/bin/env node\n", "", "the git hook pre-commit cannot run inside: node is not inside: " + node},
		"one by env -S":    {"project/.git/hooks/pre-push", "#!/usr/bin/env -S node --test\n", "", "the git hook pre-push cannot run inside: node is not inside: " + node},
		"a command":        {"project/.git/hooks/commit-msg", "#!/bin/sh\nset -e\nnpx lint \"$1\"\n", "", "the git hook commit-msg cannot run inside: npx is not inside: " + node},
		"of husky":         {"project/.husky/_/pre-commit", "#!/usr/bin/env sh\n. \"${0%/*}/h\"\n", ".husky/_", "the git hook pre-commit cannot run inside: npx is not inside: " + node},
		"of the user":      {"hooks/pre-commit", "#!/usr/bin/env node\n", "~/hooks", "the git hook pre-commit cannot run inside: node is not inside: " + node},
		"one that asks":    {"project/.git/hooks/pre-commit", "#!/bin/sh\ncommand -v npx && npx lint\n", "", ""},
		"one that can":     {"project/.git/hooks/pre-commit", "#!/usr/bin/env bash\njq . <a\n", "", ""},
		"one that helps":   {"hooks/pre-commit", "#!/bin/sh\n. ~/hooks/lib\n", "~/hooks", ""},
		"one with its own": {"project/.git/hooks/pre-commit", "#!/bin/sh\n. .git/hooks/lint\n.git/hooks/lint\n", "", ""},
		"one of no shell":  {"project/.git/hooks/pre-commit", "#!\n", "", ""},
		"no hook of git's": {"project/.git/hooks/lint", "#!/usr/bin/env node\n", "", ""},
		"one that is off":  {"project/.git/hooks/pre-commit", "#!/usr/bin/env node\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", me)
			w.write(t, "hooks/lib", "")
			w.write(t, "project/.husky/pre-commit", "npx lint-staged\n")
			w.script(t, "project/.git/hooks/lint", "#!/bin/sh\n")
			w.script(t, tc.place, tc.script)
			if name == "one that is off" {
				must.Do(t, os.Chmod(w.path(tc.place), 0o644))
			}
			if tc.config != "" {
				w.git(t, "project", "config", "core.hooksPath", tc.config)
			}
			for _, when := range []string{"at first", "with the agent's own"} {
				got := oneLine(succeed(t, w.claudebox("plan", "--mount-ro", w.path("hooks"))))
				if strings.Contains(got, cannot) != (tc.want != "") || !strings.Contains(got, tc.want) {
					t.Errorf("%s: %s", when, got)
				}
				told := run(t, w.session("true", "--mount-ro", w.path("hooks"))).stderr
				if red := tc.want != "" && !strings.Contains(tc.want, "pre-push"); strings.Contains(told, cannot) != red {
					t.Errorf("%s, with --yes: %s", when, told)
				}
				if strings.Contains(tc.place, "/.git/") { // the agent's git folder has a copy
					must.Do(t, os.RemoveAll(w.path(tc.place)))
				}
			}
		})
	}
}

// A remote in a folder of this machine looked like no repository.
func TestARemoteOfThisMachineThatIsNotInsideIsNamed(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", me)
	w.git(t, ".", "init", "-q", "--bare", "srv/x y.git")
	w.git(t, ".", "clone", "-q", "--bare", "project", "project/in.git")
	for name, url := range map[string]string{
		"path": w.path("srv/x y.git"), "url": "file://" + w.path("srv/x y.git"), "above": "../srv/x y.git", "gone": "/nowhere/x.git",
		"push": "in.git", "in": "in.git", "ssh": "me@host.example:srv/x.git", "https": "https://host.example/srv/x.git",
	} {
		w.git(t, "project", "remote", "add", name, url)
	}
	w.git(t, "project", "remote", "set-url", "--push", "push", w.path("srv/x y.git"))
	got := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, got, "left out: 4 git remotes ")
	for _, name := range []string{"path", "url", "above", "push"} {
		expect.Contains(t, got, "the remote "+name+" is not reached: "+w.path("srv/x y.git")+" is not inside: --mount-ro '"+w.path("srv/x y.git")+"', or")
	}
	expect.Contains(t, got, "brings it; to push there, --mount-rw")
	const push = "git push -q path HEAD:refs/heads/made && git ls-remote path"
	expect.Contains(t, w.inside(t, push, "--mount-rw", w.path("srv/x y.git")), "refs/heads/made")
}

// A repository that signs by its own settings went unsigned without a word.
func TestARepositoryThatSignsIsToldThatItDoesNot(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", me)
	for _, tc := range []struct{ set, want string }{
		{"commit.gpgsign=yes", "your key is not there"}, {"gpg.format=ssh", "signs them with your key"}, {"commit.gpgsign=off", ""},
	} {
		key, value, _ := strings.Cut(tc.set, "=")
		w.git(t, "project", "config", key, value)
		got := oneLine(succeed(t, w.claudebox("plan")))
		if strings.Contains(got, "commits are not signed inside") != (tc.want != "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s", tc.set, got)
		}
	}
}
