//go:build lab

package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/registry"
)

// serve starts a registry of packages.
func serve(t *testing.T, packages ...registry.Package) *registry.Server {
	t.Helper()
	s, err := registry.Start(packages...)
	must.Do(t, err)
	t.Cleanup(s.Close)
	return s
}

// agentPackage is an agent as npm's registry has them: a script of Node's that needs another package, beside a tool.
var agentPackage = []registry.Package{
	{
		Name: "@anthropic-ai/claude-code", Version: "2.9.9", Bin: map[string]string{"claude": "cli.js"}, Dependencies: map[string]string{"@x/words": "^1.0.0"},
		Files: map[string]string{"cli.js": "#!/usr/bin/env node\nconsole.log(require('@x/words'), process.argv.slice(2).join(' '), process.cwd())\n"},
	},
	{Name: "@x/words", Version: "1.0.0", Files: map[string]string{"index.js": "module.exports = 'the agent runs:'\n"}},
	{Name: "greet", Version: "1.0.0", Bin: map[string]string{"greet": "g.js"}, Files: map[string]string{"g.js": "#!/usr/bin/env node\nconsole.log('hello')\n"}},
}

// withRegistry returns a world whose user has node, a registry for all packages, and a folder of the home first in PATH.
func withRegistry(t *testing.T, s *registry.Server, first string) *world {
	t.Helper()
	w := newWorld(t)
	w.link(t, real(t, "CLAUDEBOX_TEST_NODE", ""), ".local/bin/node")
	w.write(t, ".npmrc", "registry="+s.URL+"\nprefix=~/.npm-global\n")
	w.env["PATH"] = w.path(first) + ":" + w.env["PATH"]
	w.env["RELEASES"] = os.Getenv("CLAUDEBOX_LAB_RELEASES")
	return w
}

// nodeInside is the flags of a session with node in /opt/node/bin.
func nodeInside(t *testing.T) []string {
	t.Helper()
	return []string{"--mount-ro", real(t, "CLAUDEBOX_TEST_NODE", "") + ":/opt/node/bin/node"}
}

// Claude Code as package managers install it for one user: npm in a folder of the home, pnpm by a shim that is a script
// of the shell, which leads to a store of links. Another of their programs is named, with a remedy that works.
func TestAnAgentThatAPackageManagerInstalled(t *testing.T) {
	s := serve(t, agentPackage...)
	for name, tc := range map[string]struct{ install, folder, mount string }{
		"npm":     {"node $RELEASES/npm/bin/npm-cli.js install -g --no-audit --no-fund", ".npm-global/bin", ".npm-global"},
		"pnpm 10": {"$RELEASES/pnpm-10 add -g", ".local/share/pnpm", ".local/share/pnpm"},
		"pnpm 12": {"$RELEASES/pnpm-12 add -g", ".local/share/pnpm/bin", ".local/share/pnpm"},
	} {
		t.Run(name, func(t *testing.T) {
			w := withRegistry(t, s, tc.folder)
			w.env["PNPM_HOME"] = w.path(".local/share/pnpm")
			w.plain(t, tc.install+" @anthropic-ai/claude-code greet")
			wantEqual(t, w.plain(t, "greet; claude a b"), "hello\nthe agent runs: a b "+w.project)
			wantEqual(t, succeed(t, w.claudebox("--yes", "--no-report", "--", "a", "b")), "the agent runs: --dangerously-skip-permissions a b "+w.project+"\n")
			got := run(t, w.claudebox("shell", "--yes", "--no-report", "--", "greet"))
			remedy := "--mount-ro " + w.path(tc.mount) + " brings yours, as ~/" + tc.folder + "/greet"
			if said := "claudebox: greet is not inside: " + remedy + "\n"; got.status != 127 || !strings.HasSuffix(got.stderr, said) {
				t.Errorf("it says %s, want %s", got.stderr, said)
			}
			expect.Contains(t, oneLine(run(t, w.claudebox("why", "greet")).stdout), "no: greet is not inside", remedy)
			wantEqual(t, w.inside(t, "PATH=/opt/node/bin:$PATH; ~/"+tc.folder+"/greet", append(nodeInside(t), "--mount-ro", w.path(tc.mount))...), "hello\n")
		})
	}
}

// A shim of a version manager leads to the manager, which has nothing to choose from inside. Both the agent and another
// program are named, and the remedies lead to them: mise's own shims, and one of asdf's.
func TestAnAgentOfAVersionManager(t *testing.T) {
	const shims = ".local/share/mise/shims"
	w := withRegistry(t, serve(t, agentPackage...), shims)
	w.script(t, ".local/bin/npm", "#!/bin/sh\nexec node "+real(t, "CLAUDEBOX_LAB_RELEASES", "npm")+"/bin/npm-cli.js \"$@\"\n")
	w.link(t, real(t, "CLAUDEBOX_LAB_RELEASES", "mise"), ".local/bin/mise")
	w.plain(t, "mise use -g npm:@anthropic-ai/claude-code npm:greet")
	got := run(t, w.claudebox("--yes", "--no-report", "--", "a", "b"))
	expect.Contains(t, oneLine(got.stderr), w.path(shims)+"/claude: cannot be executed: it is a shim of mise, whose installations are not inside", "`mise which claude` prints the program itself: name that in the profile, `agent: {command: [PATH]}`")
	profile := w.profile(t, "agent: {command: ["+w.plain(t, "mise which claude")+"]}")
	wantEqual(t, succeed(t, w.claudebox("--yes", "--no-report", "--profile", profile, "--", "a", "b")), "the agent runs: --dangerously-skip-permissions a b "+w.project+"\n")

	w.script(t, ".asdf/shims/hello", "#!/usr/bin/env bash\n# asdf-plugin: nodejs 22.21.0\nexec "+w.path(".local/bin/asdf")+" exec \"hello\" \"$@\"\n")
	w.env["PATH"] += ":" + w.path(".asdf/shims")
	for program, manager := range map[string]string{"greet": "mise", "hello": "asdf"} {
		got := run(t, w.claudebox("shell", "--yes", "--no-report", "--profile", profile, "--", program))
		expect.Contains(t, got.stderr, program+" is not inside: yours is a shim of "+manager+": `"+manager+" which "+program+
			"` prints the program itself, and `--mount-ro` of the folder of that version brings it, by its path")
	}
	at := w.plain(t, "readlink -f $(mise which greet)")
	version, _, _ := strings.Cut(at, "/node_modules/")
	flags := append(nodeInside(t), "--profile", profile, "--mount-ro", version)
	wantEqual(t, w.inside(t, "PATH=/opt/node/bin:$PATH; "+at, flags...), "hello\n")
}

// A wrapper of the user's in ~/bin stands for what it starts, with its variables and words, where it does no more. What
// does more is refused with the line of a profile that works.
func TestAnAgentByAWrapperOfTheUsers(t *testing.T) {
	w := newWorld(t)
	w.env["PATH"] = w.path("bin") + ":" + w.env["PATH"]
	w.script(t, "tools/agent", "#!/bin/sh\necho \"$GREETING $*\"\n")
	w.script(t, "bin/claude", "#!/usr/bin/env bash\nset -euo pipefail\nexport GREETING=\"hello\"\nTOOLS=$HOME/tools\nexec \"$TOOLS/agent\" --verbose \"$@\"\n")
	wantEqual(t, succeed(t, w.claudebox("--yes", "--no-report", "--", "a")), "hello --verbose --dangerously-skip-permissions a\n")
	w.script(t, "bin/claude", "#!/usr/bin/env bash\nfor i in 1; do export GREETING=hello; done\nexec "+w.path("tools/agent")+" \"$@\"\n")
	got := run(t, w.claudebox("--yes", "--no-report", "--", "a"))
	line := "agent: {command: [" + w.path("tools/agent") + "]}"
	expect.Contains(t, oneLine(got.stderr), "it is a script that starts "+w.path("tools/agent")+", which is not inside", "`"+line+"`")
	wantEqual(t, succeed(t, w.claudebox("--yes", "--no-report", "--profile", w.profile(t, line, "env: {GREETING: hi}"), "--", "a")), "hi a\n")
}

// A script needs its interpreter. The script alone was offered, which then could not start.
func TestAScriptIsOfferedWithItsInterpreter(t *testing.T) {
	w := newWorld(t)
	w.write(t, "conda/lib/python3.12/os.py", "")
	w.script(t, "conda/bin/python", "#!/bin/sh\necho \"python runs $1\"\n")
	w.script(t, "conda/bin/con", "#!"+w.path("conda/bin/python")+"\n")
	w.script(t, ".local/bin/old", "#!/opt/gone/bin/python\n")
	w.env["PATH"] += ":" + w.path("conda/bin") + ":" + w.path(".local/bin")
	expect.Contains(t, oneLine(run(t, w.claudebox("why", "con")).stdout), "--mount-ro "+w.path("conda")+" brings yours, as ~/conda/bin/con")
	wantEqual(t, w.normal(w.inside(t, "~/conda/bin/con", "--mount-ro", w.path("conda"))), "python runs HOME/conda/bin/con\n")
	expect.Contains(t, oneLine(run(t, w.claudebox("why", "old")).stdout),
		"yours cannot start there without /opt/gone/bin/python: add the package that has it to the profile's `packages`; inside, `, old` looks for one")
}
