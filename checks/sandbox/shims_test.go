//go:build lab

package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"claudebox/checks/registry"
)

// serve starts a registry of packages.
func serve(t *testing.T, packages ...registry.Package) *registry.Server {
	t.Helper()
	s, err := registry.Start(packages...)
	if err != nil {
		t.Fatal(err)
	}
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
			w := newWorld(t)
			w.link(t, real(t, "CLAUDEBOX_TEST_NODE", ""), ".local/bin/node")
			w.write(t, ".npmrc", "registry="+s.URL+"\nprefix=~/.npm-global\n")
			w.env["PATH"] = w.path(tc.folder) + ":" + w.env["PATH"]
			w.env["RELEASES"], w.env["PNPM_HOME"] = os.Getenv("CLAUDEBOX_LAB_RELEASES"), w.path(".local/share/pnpm")
			w.plain(t, tc.install+" @anthropic-ai/claude-code greet")
			wantEqual(t, w.plain(t, "greet; claude a b"), "hello\nthe agent runs: a b "+w.project)
			wantEqual(t, succeed(t, w.claudebox("--yes", "--no-report", "--", "a", "b")), "the agent runs: --dangerously-skip-permissions a b "+w.project+"\n")
			got := run(t, w.claudebox("shell", "--yes", "--no-report", "--", "greet"))
			remedy := "--mount-ro " + w.path(tc.mount) + " brings yours, as ~/" + tc.folder + "/greet"
			if said := "claudebox: greet is not inside: " + remedy + "\n"; got.status != 127 || !strings.HasSuffix(got.stderr, said) {
				t.Errorf("it says %s, want %s", got.stderr, said)
			}
			wantContains(t, oneLine(run(t, w.claudebox("why", "greet")).stdout), "no: greet is not inside", remedy)
			wantEqual(t, w.inside(t, "PATH=/opt/node/bin:$PATH; ~/"+tc.folder+"/greet", "--mount-ro", w.path(tc.mount), "--mount-ro", real(t, "CLAUDEBOX_TEST_NODE", "")+":/opt/node/bin/node"), "hello\n")
		})
	}
}
