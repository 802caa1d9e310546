package hostrun_test

import (
	"path"
	"strings"
	"testing"

	"claudebox/internal/workspace/hostrun"
)

func TestWhatTheHostRuns(t *testing.T) {
	for rel, want := range map[string]bool{
		"package.json": true, "apps/web/package.json": true, ".github/workflows/x.yml": true, "vendor/.github/workflows/x.yml": true,
		"workflows/x.yml": false, ".github/x.yml": false, ".vscode/tasks.json": true, "a/.vscode/deep/er": true, ".vscode": false,
		".cargo/config.toml": true, "config.toml": false, "cargo/config.toml": false, ".claude/settings.json": true,
		".claude/worktrees/x/main.go": false, ".claude/worktrees/x/Makefile": true, "main.go": false, ".envrc": true, ".envrcx": false,
		".husky/pre-commit": true, "settings.json": false, "a/mise.dev.toml": true, "mise.dev.json": false, ".mise.dev.toml": true,
		"promise.dev.toml": false, "lefthook.toml": true, "lefthook": false, "lefthook-local.yml": true, "xlefthook.toml": false,
		"eslint.config.mjs": true, "eslint.js": false, ".eslintrc.cjs": true, ".mise/config.dev.toml": true, "config.dev.toml": false,
	} {
		if got := hostrun.Means(rel) != ""; got != want {
			t.Errorf("Means(%q) %v, want %v", rel, got, want)
		}
		if got := hostrun.In(path.Dir(rel))(path.Base(rel), true); got != want {
			t.Errorf("In(%q) %v, want %v", rel, got, want)
		}
	}
}

// TestNamesThatToolsObeyAndNobodyWasToldOf are those that a tool runs on its own, or with what it is asked for each day.
func TestNamesThatToolsObeyAndNobodyWasToldOf(t *testing.T) {
	for _, rel := range strings.Fields(`.opencode/plugin/x.js opencode.jsonc .aider.conf.yml .agents/skills/x/SKILL.md
		.claude/output-styles/x.md .github/copilot-instructions.md .vim/coc-settings.json .dir-locals-2.el lefthook-local.yml
		lefthook.toml .config/lefthook-local.yml .lefthook.json prek.toml .lintstagedrc mise/config.toml .config/mise/conf.d/a.toml
		.mise.dev.toml mise.ci.toml .autoenv .rvmrc .luarc.json hie.yaml .pylintrc .flake8 mypy.ini setup.cfg .eslintrc.js
		eslint.config.mjs .prettierrc.js .pnp.cjs .yarn/sdks/typescript/lib/tsserver.js .Rprofile .ghci .irbrc .ocamlinit
		.env .env.local a/.env .claudebox.yml .claudebox/tools.txt .claudebox.toml .claudebox.json claudebox.yml venv/bin/activate _darcs/prefs/defaults .repo/repo/main.py tools/bazel .zshenv .bash_profile
		.qwen/settings.json crush.json .roo/mcp.json .kiro/hooks/x .windsurf/workflows/x.md .clinerules a/.sops.yaml .gpg-id secrets.nix a/Directory.Build.props configure
		.claude/scheduled_tasks.json a/.claude/scheduled_tasks.json .claude/workflows/x.js .claude/loop.md .claude/agent-memory/x/MEMORY.md
		.nvmrc a/.ruby-version global.json .flox/env/manifest.toml devenv.lock devshell.toml npins/sources.json a/nix/sources.json lon.lock`) {
		if hostrun.Means(rel) == "" {
			t.Errorf("%s means nothing", rel)
		}
	}
	for _, rel := range strings.Fields("x.code-workspace compose.yml .fleet/run.json .vs/tasks.vs.json .svn/wc.db gradle.properties") {
		if hostrun.Means(rel) != "" {
			t.Errorf("nobody runs %s unasked", rel)
		}
	}
}

func TestWhatToolsObeyUnasked(t *testing.T) {
	for _, rel := range strings.Fields(`.git a/.GIT .hg/hgrc a/.hg/hgrc-not-shared a/.hg/HGRC .sl/config a/.jj/repo/config.toml .jj/workspace-config.toml
		mise/conf.d/x.toml .config/mise/conf.d/x.toml a/.mise/conf.d/x.toml a/.mise/Conf.d/x.toml .mise.local.toml .config/mise/config.toml a/_FOSSIL_
		.shadowenv.d .shadowenv.d/500_x.lisp .sdkmanrc a/.node-version .prototools .vim/coc-settings.json a/rust-toolchain`) {
		if !hostrun.Unasked(rel) {
			t.Errorf("%s is obeyed", rel)
		}
	}
	for _, rel := range strings.Fields(`conf.d/x.toml etc/conf.d/x.toml repo/config.toml a.jj/repo/config.toml .hg/store hgrc config.toml main.go
		Makefile mise/tasks/x xmise/conf.d/x.toml .shadowenv.d/a/b`) {
		if hostrun.Unasked(rel) {
			t.Errorf("%s is not obeyed", rel)
		}
	}
}

func TestALinkLeadsToWhatToolsObeyUnasked(t *testing.T) {
	for rel, want := range map[string]bool{
		".claude": true, "sub/.claude": true, ".claude/hooks": false, "mise": true, ".config/mise": true, ".config": true, ".mise": true, "a/mise/conf.d": true,
		".hg": true, ".jj/repo": true, "repo": false, ".vim": true, "src": false, "conf.d": false, ".git": false,
	} {
		if got := hostrun.UnaskedLink(rel); got != want {
			t.Errorf("%s: %t", rel, got)
		}
	}
}

func TestSettingsAreKnownByTheirForm(t *testing.T) {
	for _, name := range strings.Fields(".foorc config.yml Config vite.config.ts compose.override.yml appsettings.local.json barrc " +
		"bazrc.json foo.conf x.ini deno.toml tsconfig.json gradle.properties .x") {
		if !hostrun.IsSetting(name) {
			t.Errorf("%s", name)
		}
	}
	for _, name := range strings.Fields("main.go README.md notes.txt src.zip configure.ac data.json reconfigure") {
		if hostrun.IsSetting(name) {
			t.Errorf("%s is none", name)
		}
	}
}

func TestLinksInThePlaceOfFolders(t *testing.T) {
	for rel, want := range map[string]bool{
		".vscode": true, "a/.vscode": true, ".claude": true, ".claude/hooks": true, "hooks": false, ".github": true, ".config": true,
		".cargo": true, "cargo": false, ".venv": true, "node_modules": true, ".envrc": false, "vscode": false, ".mvn": true,
	} {
		if got := hostrun.MeansLink(rel) != ""; got != want {
			t.Errorf("MeansLink(%q) %v, want %v", rel, got, want)
		}
		in := hostrun.In(path.Dir(rel))
		if got := in(path.Base(rel), false); got != (want || hostrun.Means(rel) != "") {
			t.Errorf("In(%q) %v", rel, got)
		}
	}
}

func TestEveryRuleFindsItsOwn(t *testing.T) {
	for r := range hostrun.Rules {
		name, below := strings.CutSuffix(r.Pattern, "/**")
		if below {
			name += "/x"
		}
		if hostrun.Means(name) != r.Means || hostrun.Means("a/"+name) != r.Means {
			t.Errorf("%s: %q, and in a folder %q; want %q", r.Pattern, hostrun.Means(name), hostrun.Means("a/"+name), r.Means)
		}
	}
}

func BenchmarkIn(b *testing.B) {
	in, name := hostrun.In("src/deep"), "some_file_x.go"
	for b.Loop() {
		in(name, false)
	}
}
