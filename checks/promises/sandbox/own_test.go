//go:build lab

package sandbox_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
)

// settings writes the user's settings of Claude Code, one hook for each command.
func (w *world) settings(t *testing.T, commands ...string) {
	t.Helper()
	var list []map[string]any
	for _, command := range commands {
		list = append(list, map[string]any{"hooks": []any{map[string]string{"type": "command", "command": command}}})
	}
	text, err := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": list}})
	must.Do(t, err)
	w.write(t, ".claude/settings.json", string(text))
}

func (w *world) script(t *testing.T, name, content string) string {
	t.Helper()
	name = w.path(name)
	must.Program(t, name, content)
	return name
}

// D7: one answer to "is it inside?", that of the sandbox. What a shell inside can run enters, and nothing else does.
func TestAHookEntersWhereASandboxCanRunIt(t *testing.T) {
	w := newWorld(t)
	w.script(t, "project/run.sh", "#!/bin/sh\ntrue\n")
	w.script(t, "project/py.py", "#!/usr/bin/python3\n")
	w.script(t, "project/env.sh", "#!/usr/bin/env bash\ntrue\n")
	w.script(t, "project/perl.pl", "#!/usr/bin/env perl\n")
	w.script(t, ".claude/hooks/mine.sh", "#!/bin/bash\ntrue\n")
	w.script(t, "tools/given.sh", "#!/bin/sh\ntrue\n")
	w.script(t, "other/away.sh", "#!/bin/sh\ntrue\n")
	w.link(t, "../other/away.sh", "project/leads-out.sh")
	w.link(t, "run.sh", "project/leads-in.sh")
	commands := []string{
		"/bin/sh", "/bin/bash", "/usr/bin/env", "/usr/bin/jq", "/usr/bin/python3", "jq", "node", "git", "no-such-program",
		"./run.sh", "./py.py", "./env.sh", "./perl.pl", "./leads-out.sh", "./leads-in.sh", w.project + "/run.sh",
		"~/.claude/hooks/mine.sh", "~/tools/given.sh", "~/other/away.sh", "~/.claude/hooks/gone.sh", "/etc/passwd",
	}
	w.settings(t, commands...)
	flags := []string{"--mount-ro", "~/tools"}
	// env runs a program as a hook's shell does, and says 126 or 127 where it cannot.
	var script strings.Builder
	for _, command := range commands {
		script.WriteString("c=" + command + `; s=0; timeout 2 env -- "$c" </dev/null >/dev/null 2>&1 || s=$?; case $s in 126|127) ;; *) echo ` + "'" + command + "'" + ";; esac\n")
	}
	want := w.inside(t, script.String(), flags...)
	got := w.inside(t, `jq -r '.hooks.Stop[].hooks[].command' ~/.claude/settings.json`, flags...)
	wantEqual(t, got, want)
	for _, command := range []string{"/bin/bash", "./run.sh", "~/tools/given.sh", "~/.claude/hooks/mine.sh"} {
		if !strings.Contains(got, command+"\n") {
			t.Errorf("%s does not enter", command)
		}
	}
}

// D9: CLAUDE_CONFIG_DIR moves what is yours.
func TestAnotherFolderOfClaudeCodeIsTheUsers(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".claude/settings.json", `{"model":"wrong"}`)
	w.write(t, "cc/settings.json", `{"model":"right"}`)
	w.write(t, "cc/CLAUDE.md", "moved memory\n")
	w.write(t, "cc/skills/mine/SKILL.md", "a skill\n")
	w.write(t, "cc/.claude.json", `{"theme":"light"}`)
	w.write(t, "cc/.credentials.json", canary)
	w.env["CLAUDE_CONFIG_DIR"] = w.path("cc")
	got := w.inside(t, `jq -r .model ~/.claude/settings.json; cat ~/.claude/CLAUDE.md ~/.claude/skills/mine/SKILL.md; jq -r .theme ~/.claude/.claude.json; ls ~/cc 2>/dev/null || echo not there`)
	wantEqual(t, got, "right\nmoved memory\na skill\nlight\nnot there\n")
	wantRefused(t, run(t, w.session("true", "--mount-ro", "~/cc")), "Claude Code: login, history")
	w.project = w.path("cc")
	wantRefused(t, run(t, w.session("true")), "CLAUDE_CONFIG_DIR leads to")
}

// D5: what CLAUDE.md imports enters with it, and what a status line beside the hooks' folder is; the rest is named.
func TestWhatIsNamedByWhatEntersEnters(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".claude/CLAUDE.md", "@RTK.md and @docs/deep.md, @~/notes/far.md @~/notes/given.md\n`@no/import.md` me@example.org\n```\n@in/code.md\n```\n@token.md @.credentials.json\n")
	w.write(t, ".claude/RTK.md", "RTK\n@docs/deep.md\n")
	w.write(t, ".claude/docs/deep.md", "deep @./deeper.md\n")
	w.write(t, ".claude/docs/deeper.md", "deeper\n")
	w.write(t, ".claude/token.md", canary)
	w.write(t, ".claude/.credentials.json", "{}")
	w.write(t, ".claude/in/code.md", "code")
	w.write(t, "notes/far.md", "far\n")
	w.write(t, "notes/given.md", "given\n")
	w.script(t, ".claude/statusline.sh", "#!/bin/bash\necho mine\n")
	w.script(t, ".claude/tools/lint.py", "#!/usr/bin/env python3\n")
	w.write(t, ".claude/settings.json", `{"statusLine":{"type":"command","command":"~/.claude/statusline.sh"},
		"hooks":{"Stop":[{"hooks":[{"type":"command","command":"bash ~/.claude/tools/lint.py --fix"}]}]},
		"permissions":{"additionalDirectories":["~/notes","~/other"]}}`)
	w.folder(t, "other")
	flags := []string{"--mount-ro", "~/notes/given.md"}
	script := `cd ~/.claude; cat RTK.md docs/deep.md docs/deeper.md; ./statusline.sh; test -x tools/lint.py; ls token.md in 2>/dev/null || true; ` +
		`jq -r '.statusLine.command, .hooks.Stop[0].hooks[0].command' settings.json; echo x >RTK.md || true`
	got := run(t, w.session(script, flags...))
	wantEqual(t, got.stdout, "RTK\n@docs/deep.md\ndeep @./deeper.md\ndeeper\nmine\n~/.claude/statusline.sh\nbash ~/.claude/tools/lint.py --fix\n")
	if w.read(t, ".claude/RTK.md") != "RTK\n@docs/deep.md\n" {
		t.Error("the agent wrote to the user's file")
	}
	plan := run(t, w.claudebox(append([]string{"plan"}, flags...)...)).stdout
	expect.Contains(t, oneLine(plan),
		"the import @~/notes/far.md of your CLAUDE.md does not enter:", "the import @token.md of your CLAUDE.md does not enter: it holds",
		"the import @.credentials.json of your CLAUDE.md does not enter: it is private", "your additional directory ~/other is not inside: --mount-rw ~/other",
	)
	// what is named no more goes
	w.write(t, ".claude/CLAUDE.md", "plain\n")
	wantEqual(t, w.inside(t, `cd ~/.claude; ls RTK.md docs/deep.md statusline.sh 2>/dev/null || true`), "statusline.sh\n")
}

// D6: links among skills, agents and hooks (dotfiles, stow) lead somewhere inside, or are named.
func TestLinkedSkillsEnter(t *testing.T) {
	w := newWorld(t)
	w.write(t, "dotfiles/claude/skills/stowed/SKILL.md", "stowed\n")
	w.write(t, "dotfiles/claude/skills/absolute/SKILL.md", "absolute\n")
	w.write(t, "dotfiles/claude/agents/a.md", "an agent\n")
	w.write(t, "dotfiles/claude/commands/c.md", "a command\n")
	w.write(t, ".aws/credentials", canary)
	w.write(t, ".claude/skills/own/SKILL.md", "own\n")
	w.link(t, "../../dotfiles/claude/skills/stowed", ".claude/skills/stowed")
	w.link(t, w.path("dotfiles/claude/skills/absolute"), ".claude/skills/absolute")
	w.link(t, "own", ".claude/skills/alias")
	w.link(t, "../../dotfiles/claude/agents/a.md", ".claude/agents/a.md")
	w.link(t, "../dotfiles/claude/commands", ".claude/commands")
	w.write(t, "dotfiles/claude/themes/dark.json", "a theme\n")
	w.link(t, "../dotfiles/claude/themes", ".claude/themes")
	w.write(t, ".claude/workflows/w.js", "a workflow\n")
	w.write(t, ".claude/loop.md", "a loop\n")
	w.link(t, "../../.aws", ".claude/skills/evil")
	w.link(t, "/no/such/place", ".claude/skills/dangling")
	w.link(t, w.path(".aws/credentials"), "dotfiles/claude/commands/planted.md")
	got := w.inside(t, `cd ~/.claude; cat skills/stowed/SKILL.md skills/absolute/SKILL.md skills/alias/SKILL.md agents/a.md commands/c.md themes/dark.json workflows/w.js loop.md; cat skills/evil/* commands/planted.md 2>/dev/null || true`)
	wantEqual(t, got, "stowed\nabsolute\nown\nan agent\na command\na theme\na workflow\na loop\n")
	plan := run(t, w.claudebox("plan")).stdout
	expect.Contains(t, oneLine(plan), "left out: 1 command, 1 skill", "your skill evil does not enter: it is a link to", "your command planted.md does not enter")
	if list := findings(t, succeed(t, w.search())); len(list) > 0 {
		t.Errorf("inside was found %q", list)
	}
}

// D10: plugins of a marketplace that is a folder.
func TestAMarketplaceThatIsAFolderEnters(t *testing.T) {
	w := newWorld(t)
	w.write(t, "market/.claude-plugin/marketplace.json", `{"name":"m"}`)
	w.write(t, ".claude/plugins/known_marketplaces.json", `{"m":{"source":{"source":"directory","path":"`+w.path("market")+`"},"installLocation":"`+w.path("market")+`"},
		"bad":{"source":{"source":"directory","path":"`+w.path(".ssh")+`"},"installLocation":"`+w.path(".ssh")+`"}}`)
	w.write(t, ".ssh/id", canary)
	wantEqual(t, w.inside(t, `jq -r .name ~/market/.claude-plugin/marketplace.json; ls ~/.ssh 2>/dev/null || true; touch ~/market/x 2>/dev/null || echo read-only`), "m\nread-only\n")
}

// D14, D23: a program that is not inside gets a sentence, and its way in.
func TestACommandThatIsNotInsideSaysHowItWouldBe(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/.venv/pyvenv.cfg", "home = /usr/bin\n")
	w.link(t, "/usr/bin/python3", "project/.venv/bin/python")
	for command, want := range map[string]string{
		"nosuch":           "nosuch is not inside: add the package that has it to the profile's `packages`; inside, `, nosuch` looks for one",
		"node":             "node is not inside: add its package to the profile: `packages: [nodejs]`",
		".venv/bin/python": ".venv/bin/python leads to /usr/bin/python3, which is not inside: `python3` alone is found there",
	} {
		got := run(t, w.claudebox("shell", "--yes", "--no-report", "--", command))
		if got.status != 127 || !strings.Contains(got.stderr, "claudebox: "+want) {
			t.Errorf("%s: status %d, %s", command, got.status, got.stderr)
		}
	}
	if plan := run(t, w.claudebox("plan")).stdout; !strings.Contains(plan, "left out: 1 virtual environment") {
		t.Errorf("the plan says %s", plan)
	}
	for word, want := range map[string]string{"/bin/bash": "yes:", "node": "`packages: [nodejs]`", "~/.claude/gone.sh": "sandbox: /mnt/gone.sh"} {
		if got := run(t, w.claudebox("why", strings.ReplaceAll(word, "~", w.home))).stdout; !strings.Contains(oneLine(got), want) {
			t.Errorf("why %s: %s", word, got)
		}
	}
}

// uv's environment leads by a link "3.13" into a folder that the sandbox has one of its own for. The remedy is followed.
func TestAVirtualEnvironmentOfUVRunsOnceItsPythonIsMounted(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".local/share/uv/python/3.13.5/bin/python3.13", "#!/bin/sh\necho ran\n")
	w.write(t, ".local/share/uv/python/3.13.5/lib/python3.13/os.py", "")
	must.Do(t, os.Chmod(w.path(".local/share/uv/python/3.13.5/bin/python3.13"), 0o755))
	w.link(t, "3.13.5", ".local/share/uv/python/3.13")
	w.write(t, "project/.venv/pyvenv.cfg", "home = "+w.path(".local/share/uv/python/3.13/bin")+"\n")
	w.link(t, w.path(".local/share/uv/python/3.13/bin/python3.13"), "project/.venv/bin/python")
	remedy := "--mount-ro " + w.path(".local/share/uv/python")
	for _, words := range [][]string{{"plan"}, {"why", ".venv/bin/python"}, {"shell", "--yes", "--no-report", "--", ".venv/bin/python"}} {
		got := run(t, w.claudebox(words...))
		said := oneLine(got.stdout + got.stderr)
		if !strings.Contains(strings.ReplaceAll(said, "~", w.home), remedy) || strings.Contains(said, "home-uv") {
			t.Errorf("%s: %s", words, said)
		}
	}
	wantEqual(t, w.inside(t, ".venv/bin/python", strings.Fields(remedy)...), "ran\n")
}

// Environments of other names, and those of a monorepo's folders, were not named.
func TestEachVirtualEnvironmentIsNamed(t *testing.T) {
	w := newWorld(t)
	for _, at := range []string{"env", "backend/.venv"} {
		w.write(t, "project/"+at+"/pyvenv.cfg", "home = /usr/bin\n")
		w.link(t, "/usr/bin/true", "project/"+at+"/bin/python")
	}
	// Those of poetry and pipenv lie in the home, by a sum of the project's path, or of its Pipfile's.
	for of, at := range map[string]string{"": ".cache/pypoetry/virtualenvs/app-SUM-py3.11", "/Pipfile": ".local/share/virtualenvs/app-SUM"} {
		sum := sha256.Sum256([]byte(w.project + of))
		at = strings.Replace(at, "SUM", base64.URLEncoding.EncodeToString(sum[:6]), 1)
		w.write(t, at+"/pyvenv.cfg", "home = /usr/bin\n")
		w.script(t, at+"/bin/python", "#!/bin/sh\necho "+at+"\n")
	}
	w.write(t, ".cache/pypoetry/virtualenvs/app-00000000-py3.11/pyvenv.cfg", "home = /usr/bin\n") // of another project
	got := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, got, "left out: 4 virtual environments ", "/env/bin/python leads to ", "/backend/.venv/bin/python leads to ")
	for _, folder := range []string{".cache/pypoetry", ".local/share"} {
		_, remedy, _ := strings.Cut(got, "is not inside: --mount-ro "+w.path(folder))
		at, _, _ := strings.Cut(remedy, ",")
		at = w.path(folder) + at
		expect.Contains(t, w.inside(t, at+"/bin/python", "--mount-ro", at), folder)
	}
}

// What the user has activated is not what a program inside meets; that is said, and the mount that brings it works.
func TestAnActivatedEnvironmentIsNamed(t *testing.T) {
	w := newWorld(t)
	w.write(t, "conda/envs/x/bin/python", "#!/bin/sh\necho ran\n")
	w.write(t, "conda/envs/x/lib/python3.11/os.py", "")
	w.write(t, "venvs/p/pyvenv.cfg", "home = /usr/bin\n")
	w.write(t, "venvs/p/bin/python", "#!/bin/sh\necho ran\n")
	for name, folder := range map[string]string{"CONDA_PREFIX": "conda/envs/x", "VIRTUAL_ENV": "venvs/p"} {
		at := w.path(folder)
		must.Do(t, os.Chmod(at+"/bin/python", 0o755))
		w.env[name] = at
		got := strings.ReplaceAll(oneLine(succeed(t, w.claudebox("plan"))), "~", w.home)
		expect.Contains(t, got, "activated here: "+at+"/bin/python is not inside: --mount-ro "+at+", or")
		wantEqual(t, w.inside(t, at+"/bin/python", "--mount-ro", at), "ran\n")
		if got := succeed(t, w.claudebox("plan", "--mount-ro", at)); strings.Contains(got, "activated here") {
			t.Errorf("%s: %s", name, got)
		}
		delete(w.env, name)
	}
}

// The agent's git folder has the hooks that the user had when it was made. One that comes later is said in red, and a
// folder of the project has it.
func TestAHookThatComesAfterTheAgentsGitFolderIsNamed(t *testing.T) {
	w := newWorld(t)
	w.git(t, "project", "init", "-q")
	hook := func(at, text string) {
		w.write(t, at, "#!/bin/sh\n"+text+"\n")
		must.Do(t, os.Chmod(w.path(at), 0o755))
	}
	const commit, said = "git -c user.name=n -c user.email=e commit -q --allow-empty -m x", "hooks of the repository are not as in the agent's git folder"
	commits := func(wantStatus int, wantSaid bool) {
		t.Helper()
		if got := run(t, w.session(commit)); got.status != wantStatus || strings.Contains(oneLine(got.stderr), said) != wantSaid {
			t.Errorf("%d: %s", got.status, got.stderr)
		}
	}
	hook("project/.git/hooks/pre-commit", "echo first >&2")
	commits(0, false)
	commits(0, false)
	hook("project/.git/hooks/pre-commit", "exit 1")
	commits(0, true)
	hook("project/hooks/pre-commit", "exit 1")
	w.git(t, "project", "config", "core.hooksPath", "hooks")
	commits(1, false)
}

// D15: jj, hg, Sapling and Subversion repositories are the project from a subfolder. D16: a link .git, as of Android's repo, has a remedy,
// which is followed here.
func TestOtherRepositoriesAreTheProject(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []string{".jj", ".hg", ".sl", ".svn"} {
		w.folder(t, "r"+kind+"/"+kind+"/store")
		w.project = w.folder(t, "r"+kind+"/sub/deep")
		wantEqual(t, w.normal(w.inside(t, "pwd; touch ../../x")), "HOME/r"+kind+"/sub/deep\n")
	}
	w.project = w.folder(t, "work/a")
	const odd = ".repo/it's;touch${IFS}evil;'/a.git" // a part of the remedy
	w.git(t, "work", "init", "-q", "--bare", w.path(odd))
	w.link(t, w.path(odd), "work/a/.git")
	got := run(t, w.session("git status"))
	wantRefused(t, got, "leads through a link")
	_, remedy, _ := strings.Cut(got.stderr, "remedy: put a file in the link's place, by which git finds the folder as well: ")
	remedy = oneLine(strings.ReplaceAll(remedy, "claudebox: ", ""))
	out, err := exec.Command("sh", "-ec", remedy).CombinedOutput()
	if err != nil || exists(w.path("work/a/evil")) {
		t.Fatalf("%s: %v\n%s", remedy, err, out)
	}
	wantEqual(t, w.inside(t, "git status --short; git rev-parse --show-toplevel"), w.project+"\n")
}

// D18: programs ask for a service or a protocol by its name.
func TestServicesHaveTheirNames(t *testing.T) {
	w := newWorld(t)
	wantEqual(t, w.inside(t, `python3 -c 'import socket as s; print(s.getservbyname("https"), s.getservbyname("domain", "udp"), s.getprotobyname("tcp"))'`), "443 53 6\n")
}

// A project leads out of itself, by links, imports and the folders above it. What is not inside is named, with a flag that
// helps; the agent does not learn from that which files the host has.
func TestWhatTheProjectLeadsToIsNamed(t *testing.T) {
	w := newWorld(t)
	w.project = w.folder(t, "work/repo")
	w.write(t, "work/CLAUDE.md", "of all my projects\n")
	w.write(t, "work/.mcp.json", "{}\n")
	w.write(t, "shared/rules/style.md", "style\n")
	w.write(t, "work/AGENTS.md", "by another name\n")
	w.write(t, ".claude/mine.md", "mine\n")
	w.write(t, ".claude/CLAUDE.md", "of all\n")
	w.write(t, ".ssh/id_x", "k\n")
	w.write(t, "work/repo/CLAUDE.local.md", "@~/.claude/mine.md @docs/a.md @~/.ssh/id_x\n")
	w.write(t, "work/repo/docs/a.md", "@../../../shared/rules/style.md @b.md @~/not/there.md\n")
	w.folder(t, "work/repo/.claude/rules")
	w.link(t, w.path("shared/rules"), "work/repo/.claude/rules/team")
	w.link(t, "../../shared", "work/repo/linked")
	w.link(t, "docs/a.md", "work/repo/NOTES.md")
	said := func(flags ...string) string {
		return oneLine(succeed(t, w.claudebox(append([]string{"plan"}, flags...)...)))
	}
	got := said()
	expect.Contains(t, got,
		"the project's linked leads out of it: ~/shared is not inside: --mount-ro "+w.path("shared")+",",
		"the project's .claude/rules/team leads out of it: ~/shared/rules is not inside: --mount-ro "+w.path("shared/rules")+",",
		"of a folder above the project: ~/work/CLAUDE.md is not inside: --mount-ro "+w.path("work/CLAUDE.md")+",",
		"of a folder above the project: ~/work/AGENTS.md is not inside: --mount-ro "+w.path("work/AGENTS.md")+",",
		"of a folder above the project: ~/work/.mcp.json is not inside: --mount-ro "+w.path("work/.mcp.json")+",",
		"the import @../../../shared/rules/style.md of the project's docs/a.md: ~/shared/rules/style.md is not inside: --mount-ro",
		"the import @~/.claude/mine.md of the project's CLAUDE.local.md: ~/.claude/mine.md is not inside: it is private to your own Claude Code; imported by your own CLAUDE.md it enters",
		"~/.ssh/id_x is not inside: it lies in ~/.ssh",
	)
	if strings.Contains(got, "NOTES.md leads") || strings.Contains(got, "there.md") || strings.Contains(got, ".claude/CLAUDE.md is") {
		t.Errorf("named in vain: %s", got)
	}
	notes := run(t, w.session("cat /etc/claude-code/CLAUDE.md")).stdout
	if strings.Contains(notes, "project link") || strings.Contains(notes, "1 import") {
		t.Errorf("the agent is told:\n%s", notes)
	}
	w.write(t, ".claude/CLAUDE.md", "@mine.md\n")
	const ask = "cat ../CLAUDE.md .claude/rules/team/style.md linked/rules/style.md ~/.claude/mine.md"
	flags := []string{"--mount-ro", w.path("work/CLAUDE.md"), "--mount-ro", w.path("work/.mcp.json"), "--mount-ro", w.path("work/AGENTS.md"), "--mount-ro", w.path("shared")}
	wantEqual(t, w.inside(t, ask, flags...),
		"of all my projects\nstyle\nstyle\nmine\n")
	if got := said(flags...); strings.Contains(got, "is not inside: --mount-ro") {
		t.Errorf("still named: %s", got)
	}
}

// What the project is built of beside it is named: folders in its manifests, links of `npm link` and of pnpm's store.
func TestWhatTheProjectIsBuiltOfElsewhereIsNamed(t *testing.T) {
	w := newWorld(t)
	w.write(t, "other/go.mod", "module other\n")
	w.write(t, "project/go.work", "go 1.24\nuse (\n\t.\n\t../other\n\t./../gone\n)\n")
	w.write(t, "project/go.mod", "module p\nreplace other => ../other\n")
	w.write(t, "project/package.json", `{"dependencies": {"l": "link:../lib", "m": "file:./m"}, "workspaces": ["../*"]}`)
	w.write(t, "lib/package.json", "{}")
	w.write(t, "project/crates/a/Cargo.toml", "[dependencies]\nd = { path = \"../../../deep\" }\n")
	w.write(t, "deep/Cargo.toml", "")
	const store = ".local/share/pnpm/store/v10/links/@"
	w.write(t, store+"/a/1/node_modules/a/index.js", "a\n")
	w.write(t, store+"/b/1/node_modules/b/index.js", "b\n")
	w.write(t, "project/node_modules/.pnpm/c/index.js", "c\n")
	w.link(t, ".pnpm/c", "project/node_modules/c")
	w.link(t, "../../"+store+"/a/1/node_modules/a", "project/node_modules/a")
	w.link(t, w.path(store+"/b/1/node_modules/b"), "project/node_modules/@s/b")
	got := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, got, "left out: 4 dependencies ",
		"the project's crates/a/Cargo.toml names ../../../deep: ~/deep is not inside: --mount-ro "+w.path("deep")+",",
		"the project's go.work names ../other: ~/other is not inside: --mount-ro "+w.path("other")+",",
		"the project's package.json names ../lib: ~/lib is not inside: --mount-ro "+w.path("lib")+",",
		"the project's node_modules/@s/b and 1 more lead out of it: ~/"+store+" is not inside: --mount-ro "+w.path(store)+",")
	flags := []string{"--mount-ro", w.path("other"), "--mount-ro", w.path("lib"), "--mount-ro", w.path("deep"), "--mount-ro", w.path(store)}
	wantEqual(t, w.inside(t, "cat node_modules/a/index.js node_modules/@s/b/index.js ../other/go.mod", flags...), "a\nb\nmodule other\n")
	if got := succeed(t, w.claudebox(append([]string{"plan"}, flags...)...)); strings.Contains(got, "dependenc") {
		t.Errorf("still named: %s", got)
	}
	w.link(t, "../../lib", "project/node_modules/lib") // with the store there is no one folder but the home
	got = oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, got, "the project's node_modules/@s/b and 2 more lead out of it: ~/"+store+"/b/1/node_modules/b is not inside: ")
}

// What the project and the user's plugins would run is named where it cannot run inside.
func TestCommandsOfTheProjectAndOfPluginsThatCannotRunAreNamed(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/.claude/settings.json", `{"statusLine":{"type":"command","command":"./line.sh"},`+
		`"hooks":{"Stop":[{"hooks":[{"type":"command","command":"uv run hook.py"},{"type":"command","command":"jq . >/dev/null"}]}]}}`)
	w.script(t, "project/line.sh", "#!/bin/sh\n")
	w.write(t, "project/.mcp.json", `{"mcpServers":{"f":{"command":"uvx","args":["x"]},"h":{"type":"http","url":"https://mcp.example"},"p":{"command":"python3"}}}`)
	at := w.path(".claude/plugins/cache/mk/pl/1.0")
	w.write(t, ".claude/plugins/installed_plugins.json", `{"version":2,"plugins":{"pl@mk":[{"installPath":"`+at+`"}]}}`)
	w.write(t, ".claude/plugins/cache/mk/pl/1.0/hooks/hooks.json", `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/s.sh"},{"type":"command","command":"bunx x"}]}]}}`)
	got := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, got,
		"left out: 2 hooks, 1 MCP server ",
		"- the hook of Stop of the project cannot run: uv is not inside: add its package to the profile: `packages: [uv]`",
		"- the MCP server f of the project cannot run: uvx is not inside: add its package to the profile: `packages: [uv]`",
		"- the hook of SessionStart of the plugin pl@mk cannot run: bunx is not inside: add its package to the profile: `packages: [bun]`",
	)
}

// A plugin says in its manifest, in files that this names, or in its marketplace's list what it runs: language servers,
// too. One that is switched off runs nothing. A server has words and an address.
func TestWhatAPluginRunsIsFoundWhereverItSaysSo(t *testing.T) {
	w := newWorld(t)
	own := ".claude/plugins/"
	var ledger []string
	for _, name := range []string{"inline", "files", "listed", "off"} {
		ledger = append(ledger, `"`+name+`@mk":[{"installPath":"`+w.path(own+"cache/mk/"+name)+`"}]`)
	}
	w.write(t, own+"installed_plugins.json", `{"version":2,"plugins":{`+strings.Join(ledger, ",")+`}}`)
	w.write(t, own+"cache/mk/inline/.claude-plugin/plugin.json", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"bun x"}]}]},
		"mcpServers":{"q":{"command":"python3","args":["~/tools/q.py"]}},"lspServers":{"ra":{"command":"rust-analyzer"}}}`)
	w.write(t, "tools/q.py", "")
	w.write(t, own+"cache/mk/files/.claude-plugin/plugin.json", `{"mcpServers":"./servers.json"}`)
	w.write(t, own+"cache/mk/files/servers.json", `{"mcpServers":{"u":{"command":"uvx"}}}`)
	w.write(t, own+"cache/mk/files/.lsp.json", `{"go":{"command":"gopls"}}`)
	w.write(t, own+"cache/mk/off/hooks/hooks.json", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"deno run x"}]}]}}`)
	w.write(t, own+"marketplaces/mk/.claude-plugin/marketplace.json", `{"plugins":[{"name":"listed","lspServers":{"ts":{"command":"typescript-language-server"}}}]}`)
	w.write(t, ".claude/settings.json", `{"enabledPlugins":{"off@mk":false,"listed@mk":true}}`)
	w.write(t, "project/.mcp.json", `{"mcpServers":{"web":{"type":"http","url":"http://localhost:3333/mcp"}}}`)
	got := oneLine(succeed(t, w.claudebox("plan", "--network", "inet")))
	expect.Contains(t, got, "left out: 3 MCP servers, 3 language servers, 1 hook ",
		"the MCP server web of the project cannot run: localhost is the sandbox itself, not this machine: `ports: {out: [3333]}` in the profile",
		"the hook of Stop of the plugin inline@mk cannot run: bun is not inside",
		"the MCP server q of the plugin inline@mk cannot run: ~/tools/q.py is not inside: --mount-ro "+w.path("tools/q.py"),
		"the language server ra of the plugin inline@mk cannot run: rust-analyzer is not inside: add its package",
		"the MCP server u of the plugin files@mk cannot run: uvx is not inside",
		"the language server go of the plugin files@mk cannot run: gopls is not inside",
		"the language server ts of the plugin listed@mk cannot run: typescript-language-server is not inside")
	if strings.Contains(got, "deno") {
		t.Errorf("one that is off is named: %s", got)
	}
}

// What is no program of the system's packages is mounted, and not looked for in nixpkgs.
func TestAFileOfTheSystemIsMounted(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/CLAUDE.md", "@/etc/hostname\n")
	expect.Contains(t, oneLine(succeed(t, w.claudebox("plan"))), "/etc/hostname is not inside: --mount-ro /etc/hostname, or")
}

// Claude Code looks for an MCP server by the PATH that its configuration sets: one that could not start was not named.
func TestAnMCPServerIsLookedForByItsOwnPath(t *testing.T) {
	w := newWorld(t)
	for env, named := range map[string]bool{`{"PATH":"/gone"}`: true, `{"PATH":"/gone:${PATH}"}`: false, `{}`: false} {
		w.write(t, "project/.mcp.json", `{"mcpServers":{"s":{"command":"python3","env":`+env+`}}}`)
		got := oneLine(succeed(t, w.claudebox("plan")))
		if strings.Contains(got, "leave that PATH out, or end it with `:${PATH}`, which Claude Code replaces") != named {
			t.Errorf("%s: it says %s", env, got)
		}
	}
}

// Where packages come from is said by files of the home: pip asked the public registry instead, without a word.
// On a branch its own links and settings count, not those that the user has checked out.
func TestWhatABranchLeadsToIsNamed(t *testing.T) {
	w := onBranch(t)
	w.write(t, "elsewhere/f", "x\n")
	w.plain(t, `ln -s `+w.path("elsewhere")+` uncommitted; git switch -q other; ln -s ../elsewhere/f out; mkdir -p .claude/skills
ln -s `+w.path("elsewhere")+` '.claude/skills/a b'; echo '@~/elsewhere/f' >CLAUDE.md; echo '{"mcpServers":{"x":{"command":"/nowhere/y"}}}' >.mcp.json
git add out .claude CLAUDE.md .mcp.json; git commit -qm links; git switch -q main; echo ignored >>.git/info/exclude; ln -s ../elsewhere/f ignored`)
	said := func(name string) string { return oneLine(succeed(t, w.claudebox("plan", "--branch", name))) }
	common := []string{"the project's ignored leads out of it"}
	on := append([]string{
		"the project's out leads out of it: ~/elsewhere/f", "the project's .claude/skills/a b leads out", "the import @~/elsewhere/f",
		"x of the project cannot run",
	}, common...)
	for range 2 {
		got := said("other")
		expect.Contains(t, got, on...)
		if strings.Contains(got, "uncommitted leads") {
			t.Errorf("of the user's checkout: %s", got)
		}
		w.branchOf(t, "other", "true")
	}
	got := said("fresh")
	expect.Contains(t, got, common...)
	for _, text := range append(on[:4:4], "uncommitted leads") {
		if strings.Contains(got, text) {
			t.Errorf("%q is said in vain: %s", text, got)
		}
	}
	w.plain(t, "rm ignored; git rm -q --cached mod; git commit -qm 'no links at all'")
	said("bare")
}

func TestFilesOfOtherToolsAreNamedAndCanBeGiven(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".config/pip/pip.conf", "[global]\nindex-url = https://pypi.corp.example/simple\n")
	w.write(t, ".cargo/config.toml", "[build]\n")
	w.write(t, ".npmrc", "registry=https://npm.corp.example/\n")
	w.write(t, "jj/.jj/repo/x", "")
	w.write(t, "project/.jj/repo", "../../jj/.jj/repo")
	w.write(t, "hg/.hg/store", "")
	w.write(t, "project/.hg/sharedpath", w.path("hg/.hg")+"\n")
	got := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, got,
		"2 project links, 3 settings files",
		".hg/sharedpath leads out of it, where hg writes (--mount-rw): ~/hg/.hg is not inside",
		"not inside: ~/.config/pip/pip.conf, ~/.cargo/config.toml; --mount-ro ~/.config/pip/pip.conf, or",
		"as logins lie there: ~/.npmrc;",
		".jj/repo leads out of it, where jj writes (--mount-rw): ~/jj/.jj/repo is not inside",
	)
	for _, file := range []string{".config/pip/pip.conf", ".cargo/config.toml"} {
		wantEqual(t, w.inside(t, "head -n1 ~/"+file+" | cut -c1", "--mount-ro", "~/"+file), "[\n")
	}
}

// Formatters and build tools look in the folders above the project, too: without what is there they write other code.
func TestFilesOfToolsAboveTheProjectAreNamedAndCanBeGiven(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "src/project")
	w.project = w.path("src/project")
	w.write(t, ".editorconfig", "[*]\nindent_size = 3\n")
	w.write(t, ".gradle/init.d/mirror.gradle", "allprojects {}\n")
	w.write(t, ".conda/.condarc", "channels: [https://conda.corp/t/hunter2x9/main]\n")
	w.write(t, "src/go.work", "go 1.25\n")
	got := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, got, "your tools read outside, and not inside: ~/.gradle/init.d, ~/src/go.work, ~/.editorconfig; --mount-ro ~/.gradle/init.d, or",
		"as logins lie there: ~/.conda/.condarc;")
	wantEqual(t, w.inside(t, "cat ~/.editorconfig ~/.gradle/init.d/* ~/src/go.work", "--mount-ro", "~/.editorconfig", "--mount-ro", "~/.gradle/init.d", "--mount-ro", "~/src/go.work"),
		"[*]\nindent_size = 3\nallprojects {}\ngo 1.25\n")
}

// Claude Code's commands have what the user's shell reads outside. What every user of a machine got is not theirs.
func TestWhatTheUsersShellReadsIsNamed(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".bashrc", "alias k=kubectl\n")
	w.write(t, ".zshrc", "alias k=kubectl\n")
	const begin = "the aliases, functions and PATH that Claude Code's commands have outside, "
	for shell, want := range map[string]string{
		"/bin/bash": "~/.bashrc is not inside: --mount-ro " + w.path(".bashrc"), "/usr/bin/fish": "~/.bashrc is not inside: --mount-ro " + w.path(".bashrc"),
		"/usr/bin/zsh": "~/.zshrc is not read inside: the shell is bash there",
	} {
		w.env["SHELL"] = shell
		expect.Contains(t, oneLine(succeed(t, w.claudebox("plan"))), begin+want)
	}
	w.env["CLAUDE_CODE_SHELL"] = "/bin/bash"
	expect.Contains(t, oneLine(succeed(t, w.claudebox("plan"))), begin+"~/.bashrc")
	wantEqual(t, w.inside(t, "shopt -s expand_aliases; . ~/.bashrc; alias k", "--mount-ro", "~/.bashrc"), "alias k='kubectl'\n")
	w.write(t, ".bashrc", "export CORP_TOKEN=hunter2x9\n")
	expect.Contains(t, oneLine(succeed(t, w.claudebox("plan"))), begin+"~/.bashrc is not inside: it is, or holds, a secret")
	given, _ := os.ReadFile("/etc/skel/.bashrc")
	w.write(t, ".bashrc", string(given))
	if got := oneLine(succeed(t, w.claudebox("plan"))); strings.Contains(got, begin) {
		t.Errorf("it is nobody's own: %s", got)
	}
}

// In tier full the broker goes by the user's proxy: it was said to be missing, and how its password would come inside.
func TestAProxyThatTheBrokerUsesIsNotMissed(t *testing.T) {
	w := newWorld(t)
	w.env["HTTPS_PROXY"], w.env["no_proxy"] = "http://me:hunter2x9@proxy.corp:3128", ".corp"
	if got := oneLine(succeed(t, w.claudebox("plan"))); strings.Contains(got, "not inside: HTTPS_PROXY") {
		t.Errorf("it is used: %s", got)
	}
	expect.Contains(t, oneLine(succeed(t, w.claudebox("plan", "--network", "inet"))), "set here and not inside: HTTPS_PROXY, no_proxy")
}

// The agent has a folder of its own in the place of direnv's, where `layout python` makes its environments: a mount in
// that was offered, and `show`, and neither could be.
func TestAnEnvironmentOfDirenvsIsNotOffered(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/.direnv/python-3.11/pyvenv.cfg", "home = /usr/bin\n")
	w.script(t, "project/.direnv/python-3.11/bin/python", "#!/bin/sh\n")
	w.env["VIRTUAL_ENV"] = w.path("project/.direnv/python-3.11")
	got := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, got, "bin/python is not inside: the agent has one of its own in the place of "+w.path("project/.direnv")+";")
	if said := run(t, w.claudebox("why", w.path("project/.direnv"))).stdout; strings.Contains(said, "show:") {
		t.Errorf("why offers what cannot be: %s", said)
	}
}

// Inside are two locales: setlocale(3) failed with any other, and programs took text for ASCII.
func TestALocaleThatIsNotInsideIsReplaced(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string]string{"ja_JP.eucJP": "C.UTF-8", "de_DE": "C.UTF-8", "C": "C", "de_DE.UTF-8": "C.UTF-8", "en_US.utf8": "en_US.utf8"} {
		w.env["LANG"] = name
		wantEqual(t, w.inside(t, "echo $LANG"), want+"\n")
	}
}

// Installers and browsers ask which system and which machine this is, and got an error. The host's own answer would be
// a package manager that is not there, and whose machine it is.
func TestTheSystemAndTheMachineHaveAName(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `python3 -c 'import platform as p; print(p.freedesktop_os_release()["ID_LIKE"])'; . /etc/os-release; echo $ID; grep -cx '[0-9a-f]\{32\}' /etc/machine-id; cat /etc/machine-id`)
	host, err := os.ReadFile("/etc/machine-id")
	if !strings.HasPrefix(got, "nixos\nclaudebox\n1\n") || err == nil && strings.Contains(got, strings.TrimSpace(string(host))) {
		t.Errorf("got %q", got)
	}
}

// D23, D28: the shell says how what is missing comes inside.
func TestTheShellIsAPlaceToBeIn(t *testing.T) {
	w := newWorld(t)
	shown := typed(t, w.claudebox("shell", "--yes", "--no-report"), "nosuch\nsudo x\nssh x\nclear\nls -d /\nexit 0\n")
	expect.Contains(t, shown, "[claudebox]", "claudebox: nosuch is not inside", "claudebox: sudo is of no use inside", "there is no ssh inside", "\x1b[H\x1b[2J", "\x1b[01;34m/")
}

// D22: the remedy names what is wrong, and is followed here.
func TestAnUnreadableFileOfTheUsersHasARemedyThatWorks(t *testing.T) {
	w := newWorld(t)
	file := w.write(t, ".claude/settings.json", "{}")
	must.Do(t, os.Chmod(file, 0))
	got := run(t, w.session("true"))
	wantRefused(t, got, "read your own "+file)
	_, rest, _ := strings.Cut(got.stderr, "readable for you (")
	remedy, _, _ := strings.Cut(rest, ")")
	if out, err := exec.Command("sh", "-ec", remedy).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", remedy, err, out)
	}
	w.inside(t, "true")
}
