package agent_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"claudebox/internal/agent"
	"claudebox/internal/diag"
)

func TestFindRefuses(t *testing.T) {
	static := program("", "")
	const link = "/home/u/.local/bin/claude"
	for name, tc := range map[string]struct {
		files  map[string]string
		owners map[string]owner
		change func(*agent.Request)
		cause  error  // nil: a refusal
		text   string // of the error
		remedy string
	}{
		"no agent anywhere": {
			files: map[string]string{"/usr/bin": ""}, cause: agent.ErrNotFound,
			text: "find claude on PATH: not found", remedy: "npm install -g @anthropic-ai/claude-code",
		},
		"no agent anywhere, and a flake that has one": {
			change: func(r *agent.Request) { r.Flake = "/nix/store/x-source" }, cause: agent.ErrNotFound,
			text: "find claude on PATH: not found", remedy: "nix run /nix/store/x-source#claudebox-with-claude-code",
		},
		"no such agent of another name": {
			change: func(r *agent.Request) { r.Name = "codex" }, cause: agent.ErrNotFound,
			text: "find codex on PATH: not found", remedy: "agent: {command: [...]}",
		},
		"an agent in the project only": {
			files:  map[string]string{"/home/u/p/bin/claude": static},
			change: func(r *agent.Request) { r.Path = "/home/u/p/bin" }, cause: agent.ErrNotFound, text: "not found",
		},
		"a command that is not there": {
			change: func(r *agent.Request) { r.Command = []string{"/opt/codex"} }, cause: agent.ErrNotFound,
			text: "find /opt/codex: not found",
		},
		"a store path that is not valid": {
			change: func(r *agent.Request) { r.Pinned = "/nix/store/a-claude/bin/claude" }, cause: agent.ErrNotFound,
			text: "find /nix/store/a-claude/bin/claude: not found",
		},
		"a mode that does not let the user run it": {
			files: installed(static), owners: map[string]owner{versions: {uid: user, plain: true}},
			cause: agent.ErrNotExecutable, text: "does not let user 1000 run it",
		},
		"a command whose mode does not let the user run it": {
			files: installed(static), owners: map[string]owner{versions: {uid: user, plain: true}},
			change: func(r *agent.Request) { r.Command = []string{versions} },
			cause:  agent.ErrNotExecutable, text: "does not let user 1000 run it", remedy: "chmod +x",
		},
		"a folder for a command": {
			files: map[string]string{"/opt/codex": ""}, change: func(r *agent.Request) { r.Command = []string{"/opt/codex"} },
			cause: agent.ErrNotExecutable, text: "not a regular file",
		},
		"the root for a command": {
			change: func(r *agent.Request) { r.Command = []string{"/"} },
			cause:  agent.ErrNotExecutable, text: "not a regular file",
		},
		"a file that is no program": {
			files: installed("hello\n"), cause: agent.ErrNotExecutable, text: "neither an ELF program nor a script",
		},
		"what stands for a program that npm did not install": {
			files: map[string]string{
				link: "->/opt/node_modules/claude/bin/claude.exe", "/opt/node_modules/claude/bin/claude.exe": "echo \"Error: not installed\"\n",
			},
			cause: agent.ErrNotExecutable, text: "neither an ELF program nor a script", remedy: "pnpm approve-builds -g",
		},
		"an empty script": {
			files: installed("#!\n"), cause: agent.ErrNotExecutable, text: "names no interpreter",
		},
		"a script that names env and nothing to run": {
			files: installed("#!/usr/bin/env\n"), cause: agent.ErrNotExecutable, text: "names no interpreter",
		},
		"broken ELF headers": {
			files: installed("\x7fELF\x02\x01\x01 and no more"), cause: agent.ErrNotExecutable, text: "headers are broken",
		},
		"a program of 32 bits": {
			files: installed("\x7fELF\x01\x01\x01"), cause: agent.ErrNotExecutable,
			text: "cannot be executed: it is a 32-bit program; only 64-bit little-endian ones are served", remedy: "64-bit",
		},
		"a program of the other byte order": {
			files: installed("\x7fELF\x02\x02\x01"), cause: agent.ErrNotExecutable,
			text: "cannot be executed: it is a big-endian program; only 64-bit little-endian ones are served",
		},
		"a script whose interpreter is nowhere": {
			files: installed("#!/usr/bin/env node\n"), cause: agent.ErrNotExecutable,
			text: "its interpreter node is not found", remedy: "packages",
		},
		"a script whose interpreter's path leads nowhere": {
			files: installed("#!/usr/bin/python9\n"), cause: agent.ErrNotExecutable,
			text: "its interpreter /usr/bin/python9 is not found", remedy: "packages",
		},
		"a script that is its own interpreter": {
			files: installed("#!" + versions + "\n"), cause: agent.ErrNotExecutable, text: "more than 5 deep",
		},
		"a shell script that starts itself": {
			files: installed("#!/bin/sh\nexec " + versions + " \"$@\"\n"), cause: agent.ErrNotExecutable, text: "more than 5 deep",
		},
		"a version manager's shim, by its name": {
			files: map[string]string{link: "->/usr/bin/mise", "/usr/bin/mise": static}, cause: agent.ErrNotExecutable,
			text: "it is a shim of mise", remedy: "`mise which claude` prints the program itself",
		},
		"a version manager's shim, by a script": {
			files: map[string]string{link: "#!/usr/bin/env bash\n# asdf-plugin: nodejs 22\nexec /home/u/.asdf/bin/asdf exec \"claude\" \"$@\"\n", "/home/u/.asdf/bin/asdf": static},
			cause: agent.ErrNotExecutable, text: "it is a shim of asdf", remedy: "agent: {command: [PATH]}",
		},
		"asdf's shim, which looks for asdf on PATH": {
			files: map[string]string{link: "#!/usr/bin/env bash\n# asdf-plugin: nodejs 22\nexec asdf exec \"claude\" \"$@\"\n"},
			cause: agent.ErrNotExecutable, text: "it is a shim of asdf", remedy: "`asdf which claude`",
		},
		"a wrapper that looks for the agent once it has set PATH": {
			files: map[string]string{link: "#!/bin/bash\n. \"$NVM_DIR/nvm.sh\"\nexec \"$(command -v claude)\" \"$@\"\n"},
			cause: agent.ErrNotExecutable, text: "it is a script that starts claude, which is not inside", remedy: "agent: {command: [PATH]}",
		},
		"a wrapper that calls the agent, and does not become it": {
			files: map[string]string{link: "#!/bin/bash\nexport A=$(date)\nnice -n 5 claude --verbose \"$@\"\n"},
			cause: agent.ErrNotExecutable, text: "it is a script that starts claude, which is not inside", remedy: "with what the script adds behind it",
		},
		"a version manager behind a variable": {
			files: map[string]string{link: "#!/bin/sh\nA=1 exec mise exec node@22 -- claude \"$@\"\n"},
			cause: agent.ErrNotExecutable, text: "it is a shim of mise", remedy: "`mise which claude`",
		},
		"nodenv's shim": {
			files: map[string]string{link: "#!/usr/bin/env bash\nset -e\n[ -n \"$X\" ] && set -x\n\nprogram=\"${0##*/}\"\nexport NODENV_ROOT=\"/home/u/.nodenv\"\nexec \"/home/u/.nodenv/libexec/nodenv\" exec \"$program\" \"$@\"\n", "/home/u/.nodenv/libexec/nodenv": static},
			cause: agent.ErrNotExecutable, text: "it is a shim of nodenv", remedy: "`nodenv which claude`",
		},
		"a wrapper into a container": {
			files: map[string]string{link: "#!/bin/sh\n# distrobox_binary\nif [ -z \"${CONTAINER_ID}\" ]; then\n exec distrobox-enter -n dev -- claude \"$@\"\nelse\n exec claude \"$@\"\nfi\n"},
			cause: agent.ErrNotExecutable, text: "starts distrobox-enter, which is not inside", remedy: "agent: {command: [PATH]}",
		},
		"a wrapper that decides what it starts": {
			files: merge(installed(static), map[string]string{link: "#!/bin/sh\nif test -e x; then\n  foo=$(date)\nfi\n/opt/claude/claude --a $foo \"$@\"\n", "/opt/claude/claude": static}),
			cause: agent.ErrNotExecutable, text: "a script that starts /opt/claude/claude, which is not inside", remedy: "agent: {command: [/opt/claude/claude]}",
		},
		"a wrapper in Python": {
			files: merge(installed(static), map[string]string{"/usr/bin/python3": static, link: "#!/usr/bin/env python3\nimport os, sys\nos.execv(\"/opt/claude/claude\", [\"claude\"] + sys.argv[1:])\n", "/opt/claude/claude": static}),
			cause: agent.ErrNotExecutable, text: "a script that starts /opt/claude/claude, which is not inside", remedy: "agent: {command: [/opt/claude/claude]}",
		},
		"a wrapper in Python, of a program in the home": {
			files: merge(installed(static), map[string]string{"/usr/bin/python3": static, link: "#!/usr/bin/python3\nimport os, sys\nos.execv(os.path.expanduser(\"~/bin/claude\"), [\"claude\"] + sys.argv[1:])\n", "/home/u/bin/claude": static}),
			cause: agent.ErrNotExecutable, text: "a script that starts /home/u/bin/claude, which is not inside", remedy: "agent: {command: [/home/u/bin/claude]}",
		},
		"a wrapper in Perl, of a program in the home": {
			files: merge(installed(static), map[string]string{"/usr/bin/python3": static, link: "#!/usr/bin/python3\nexec(\"$ENV{HOME}/bin/claude\", @ARGV);\n", "/home/u/bin/claude": static}),
			cause: agent.ErrNotExecutable, text: "a script that starts /home/u/bin/claude, which is not inside", remedy: "agent: {command: [/home/u/bin/claude]}",
		},
		"a wrapper in JavaScript, of a program in the home": {
			files: merge(installed(static), map[string]string{"/usr/bin/python3": static, link: "#!/usr/bin/python3\nspawnSync(`${process.env.HOME}/bin/claude`, process.argv.slice(2), {stdio: 'inherit'})\n", "/home/u/bin/claude": static}),
			cause: agent.ErrNotExecutable, text: "a script that starts /home/u/bin/claude, which is not inside", remedy: "agent: {command: [/home/u/bin/claude]}",
		},
		"a wrapper in Python that looks for the program on PATH": {
			files: merge(installed(static), map[string]string{"/usr/bin/python3": static, link: "#!/usr/bin/python3\nimport subprocess, sys\nsys.exit(subprocess.call([\"docker\", \"run\"] + sys.argv[1:]))\n"}),
			cause: agent.ErrNotExecutable, text: "a script that starts docker, which is not inside", remedy: "agent: {command: [PATH]}",
		},
		"a secret for a loader, by its own path": {
			files: merge(installed(program("/home/u/.ssh/id", "")), map[string]string{"/home/u/.ssh/id": "secret"}),
			cause: agent.ErrNotExecutable, text: "its loader /home/u/.ssh/id is no program",
		},
		"a loader that this host lacks": {
			files: installed(program(loader64, "")), cause: agent.ErrNotExecutable, text: "not on this host", remedy: "compat: nix-ld",
		},
		"a loader that is a link to the store, with no other in the plan": {
			files: nixos(installed(program(loader64, ""))), cause: agent.ErrNotExecutable, text: "not on this host", remedy: "compat: nix-ld",
		},
		"a circle of links": {
			files:  map[string]string{"/opt/a": "->b", "/opt/b": "->a"},
			change: func(r *agent.Request) { r.Command = []string{"/opt/a"} }, text: "too many levels of symbolic links",
		},
		"a relative command, which would lead into the project": {
			files:  map[string]string{"/home/u/p/bin/claude": static},
			change: func(r *agent.Request) { r.Command = []string{"bin/claude"} }, text: "into the project", remedy: "write the whole path, or the name alone",
		},
		"a command in the project": {
			files:  map[string]string{"/home/u/p/bin/claude": static},
			change: func(r *agent.Request) { r.Command = []string{"/home/u/p/bin/claude"} }, text: "lies in the project",
		},
		"a link on PATH into the project": {
			files: map[string]string{link: "->/home/u/p/claude", "/home/u/p/claude": static}, text: "/home/u/p lies in the project",
		},
		"a link through the project to a good program": {
			files: merge(installed(static), map[string]string{link: "->/home/u/p/link", "/home/u/p/link": "->" + versions}),
			text:  "/home/u/p lies in the project",
		},
		"a link through the project to the store": {
			files: map[string]string{link: "->/home/u/p/link", "/home/u/p/link": "->/nix/store/a-x/claude", "/nix/store/a-x/claude": static},
			text:  "/home/u/p lies in the project",
		},
		"a program of another user": {
			files: installed(static), owners: map[string]owner{versions: {uid: 1001}}, text: "belongs to user 1001",
			remedy: "only you or root may write",
		},
		"a folder of another user above the program": {
			files: installed(static), owners: map[string]owner{"/home/u/.local/share": {uid: 1001}}, text: "belongs to user 1001",
		},
		"a link of another user": {
			files: installed(static), owners: map[string]owner{link: {uid: 1001}}, text: link + " belongs to user 1001",
		},
		"a program that everyone may write": {
			files: installed(static), owners: map[string]owner{versions: {uid: user, mode: 0o002}}, text: "everyone may write",
		},
		"a folder that everyone may write": {
			files: installed(static), owners: map[string]owner{"/home/u/.local/bin": {uid: user, mode: 0o002}}, text: "everyone may write",
		},
		"a program that a shared group may write": {
			files: installed(static), owners: map[string]owner{versions: {uid: user, gid: 100, mode: 0o020}}, text: "group 100 may write",
		},
		"a private group that is not the user's by number": {
			files: installed(static), owners: map[string]owner{versions: {uid: user, gid: 100, mode: 0o020}},
			change: func(r *agent.Request) { r.GID = 100 }, text: "group 100 may write",
		},
		"an interpreter of another user": {
			files:  merge(installed("#!/usr/bin/env node\n"), map[string]string{"/usr/bin/node": static}),
			owners: map[string]owner{"/usr/bin/node": {uid: 1001}}, text: "belongs to user 1001",
		},
		"a loader of another user": {
			files:  debian(installed(program(loader64, ""))),
			owners: map[string]owner{"/usr/lib64/ld-linux-x86-64.so.2": {uid: 1001}}, text: "belongs to user 1001",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(tc.change)
			r.Files = newTree(tc.files, tc.owners)
			got, err := agent.Find(r)
			var e *diag.Error
			if !errors.As(err, &e) {
				t.Fatalf("Find = %+v, %v; want a diag.Error", got, err)
			}
			for _, cause := range []error{agent.ErrNotFound, agent.ErrNotExecutable} {
				if is := errors.Is(err, cause); is != (cause == tc.cause) {
					t.Errorf("error %q is %q: %v", err, cause, is)
				}
			}
			if !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q; want one line with %q", err, tc.text)
			}
			if !strings.Contains(e.Remedy, tc.remedy) {
				t.Errorf("remedy %q; want %q in it", e.Remedy, tc.remedy)
			}
		})
	}
}

func TestFindTrusts(t *testing.T) {
	const stored = "/nix/store/a-x/bin/x"
	for name, tc := range map[string]struct {
		command string
		owners  map[string]owner
	}{
		"root":                           {versions, map[string]owner{versions: {}}},
		"the user's private group":       {versions, map[string]owner{versions: {uid: user, gid: user, mode: 0o020}}},
		"root's group":                   {versions, map[string]owner{versions: {uid: user, mode: 0o020}}},
		"Debian's staff":                 {versions, map[string]owner{"/home/u/.local": {gid: 50, mode: 0o020}}},
		"a sticky folder, like /tmp":     {versions, map[string]owner{"/home/u/.local": {mode: 0o022 | fs.ModeSticky}}},
		"a link, whatever its mode says": {"/home/u/.local/bin/claude", map[string]owner{"/home/u/.local/bin/claude": {mode: 0o777}}},
		"whoever the store belongs to":   {stored, map[string]owner{"/nix/store": {uid: 30001, mode: 0o022}, stored: {uid: 30001}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(func(r *agent.Request) { r.Command = []string{tc.command} })
			r.Files = newTree(merge(installed(program("", "")), map[string]string{stored: "x"}), tc.owners)
			if _, err := agent.Find(r); err != nil {
				t.Error(err)
			}
		})
	}
}

// A misspelt agent is told the one that was meant, and all that are known.
func TestAMisspeltAgentIsToldWhatIsKnown(t *testing.T) {
	_, err := agent.Find(request(func(r *agent.Request) { r.Name, r.Files = "cluade", newTree(debian(nil), nil) }))
	want := "write `agent: claude`; known are claude, codex, gemini, opencode"
	if got := diag.Remedy(err); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A remedy for an agent is done, word for word, and the agent is found.
func TestRemediesForAgentsWork(t *testing.T) {
	static, link := program("", ""), "/home/u/.local/bin/claude"
	named := func(name string) func(*agent.Request) { return func(r *agent.Request) { r.Name = name } }
	started := func(word string) func(*agent.Request) {
		return func(r *agent.Request) { r.Command = []string{word} }
	}
	const npmClaude = "install Claude Code (npm install -g @anthropic-ai/claude-code, or Anthropic's installer), or "
	for _, tc := range []struct {
		remedy      string
		files       map[string]string
		owners      map[string]owner
		change      func(*agent.Request)
		then        map[string]string
		thenOwners  map[string]owner
		thenChanged func(*agent.Request)
	}{
		{
			remedy: "chmod +x " + link, files: map[string]string{link: static},
			owners: map[string]owner{link: {uid: user, plain: true}}, thenOwners: map[string]owner{link: {uid: user}},
		},
		{remedy: "write `agent: codex`; known are claude, codex, gemini, opencode", change: named("codxe"), then: map[string]string{"/usr/bin/codex": static}, thenChanged: named("codex")},
		{
			remedy: "install codex, add it to the profile (`packages: [codex]`), or give its path in agent: {command: [...]}",
			change: named("codex"), then: map[string]string{"/opt/codex": static}, thenChanged: started("/opt/codex"),
		},
		{
			remedy: "npm install -g @agentclientprotocol/claude-agent-acp, or give its path in agent: {command: [...]}",
			change: named("claude-agent-acp"), then: map[string]string{"/usr/bin/claude-agent-acp": static},
		},
		{
			remedy: "install aider, add its package to the profile's packages, or give its path in agent: {command: [...]}",
			change: named("aider"), then: map[string]string{"/nix/store/a-aider/bin/aider": static},
			thenChanged: func(r *agent.Request) { r.Name, r.Inside = "aider", []string{"/nix/store/a-aider/bin"} },
		},
		{remedy: npmClaude + "set programs.claudebox.agentPackage where a module installs claudebox", then: map[string]string{"/nix/store/a-claude/bin/claude": static}, thenChanged: func(r *agent.Request) { r.Pinned = "/nix/store/a-claude/bin/claude" }},
		{remedy: npmClaude + "`nix run /nix/store/x-source#claudebox-with-claude-code`", change: func(r *agent.Request) { r.Flake = "/nix/store/x-source" }, then: installed(static)},
		{remedy: "use its 64-bit build, for x86_64 or aarch64", files: installed("\x7fELF\x01\x01\x01"), then: installed(static)},
		{
			remedy: "set compat: nix-ld in the profile, or use a claude-code of nixpkgs", files: installed(program(loader64, "")),
			then: installed(program(loader64, "")), thenChanged: func(r *agent.Request) { r.PlanHasLoader = true },
		},
		{
			remedy: "start it outside, where it says what its installation lacks; pnpm leaves scripts of packages out until `pnpm approve-builds -g`",
			files:  map[string]string{link: "->/opt/node_modules/claude/bin/claude.exe", "/opt/node_modules/claude/bin/claude.exe": "echo \"Error: not installed\"\n"},
			then:   map[string]string{link: "->/opt/node_modules/claude/bin/claude.exe", "/opt/node_modules/claude/bin/claude.exe": static},
		},
		{
			remedy: "add the package that has node to the profile's packages", files: installed("#!/usr/bin/env node\n"),
			then:        merge(installed("#!/usr/bin/env node\n"), map[string]string{"/nix/store/a-nodejs/bin/node": static}),
			thenChanged: func(r *agent.Request) { r.Inside = []string{"/nix/store/a-nodejs/bin"} },
		},
		{
			remedy: "name the program that it starts in the profile: `agent: {command: [/opt/claude/claude]}`, with what the script adds behind it",
			files:  merge(installed(static), map[string]string{link: "#!/bin/sh\nif test -e x; then\n  foo=$(date)\nfi\n/opt/claude/claude --a $foo \"$@\"\n", "/opt/claude/claude": static}),
			then:   map[string]string{"/opt/claude/claude": static}, thenChanged: started("/opt/claude/claude"),
		},
	} {
		t.Run(tc.remedy, func(t *testing.T) {
			r := request(tc.change)
			r.Files = newTree(tc.files, tc.owners)
			if _, err := agent.Find(r); diag.Remedy(err) != tc.remedy {
				t.Fatalf("remedy %q: %v", diag.Remedy(err), err)
			}
			r = request(tc.change)
			if tc.thenChanged != nil {
				r = request(tc.thenChanged)
			}
			if tc.then == nil {
				tc.then = tc.files
			}
			r.Files = newTree(tc.then, tc.thenOwners)
			if _, err := agent.Find(r); err != nil {
				t.Error(err)
			}
		})
	}
}
