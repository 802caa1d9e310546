//go:build lab

package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
)

// An agent that cannot reach what answers it says "Not logged in": claudebox says why, also where nobody is asked.
func TestAnAgentThatReachesNothingIsNamed(t *testing.T) {
	w := newWorldHere(t)
	must.Do(t, os.Remove(w.path(".local/bin/claude")))
	w.script(t, ".local/bin/claude", "#!/bin/bash\nexit 0\n")
	for name, tc := range map[string]struct{ profile, says string }{
		"no network":             {"network: none", "claude reaches no model"},
		"a list without its API": {"network: {tier: allow, allow: [github]}", "api.anthropic.com is not listed"},
		"a list with it":         {"network: {tier: allow, allow: [anthropic]}", ""},
		"all":                    {"network: inet", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, w.claudebox("-y", "--profile", w.profile(t, tc.profile)))
			if got.status != 0 {
				t.Fatalf("status %d: %s", got.status, got.stderr)
			}
			if tc.says == "" {
				wantEqual(t, got.stderr, "")
			} else {
				expect.Contains(t, got.stderr, tc.says)
			}
		})
	}
	wantEqual(t, succeed(t, w.claudebox("shell", "-y", "--network", "none", "--", "echo", "a shell")), "a shell\n")
}

// A hook or MCP server by an address failed at each call, in silence, where the tier does not reach its host.
func TestAHookByAnAddressThatIsNotReachedIsNamed(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".claude/settings.json", `{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"http://localhost:9000/h"}]}]}}`)
	w.write(t, ".claude.json", `{"mcpServers":{"web":{"type":"http","url":"https://mcp.example.org/m"}}}`)
	const hook, server = "your hook of Stop does not enter: localhost is the sandbox itself, not this machine: `ports: {out: [9000]}`",
		"your MCP server web does not enter: mcp.example.org is not on the list of hosts: `network: {tier: allow, allow: [mcp.example.org]}`"
	for _, tc := range []struct {
		lines  []string
		hook   bool
		server bool
	}{
		{[]string{"network: full"}, true, true},
		{[]string{"network: inet"}, false, true},
		{[]string{"network: inet", "ports: {out: [9000]}"}, true, true},
		{[]string{"network: {tier: allow, allow: [mcp.example.org]}"}, false, true},
		{[]string{"network: {tier: allow, allow: [other.example.org]}"}, false, false},
		{[]string{"network: none"}, false, false},
	} {
		file := w.profile(t, append(tc.lines, "mcp: {import: [web]}")...)
		got := oneLine(run(t, w.claudebox("plan", "--profile", file)).stdout)
		if strings.Contains(got, "your hook of Stop does not enter") == tc.hook || strings.Contains(got, "your MCP server web does not enter") == tc.server ||
			strings.HasPrefix(tc.lines[0], "network: inet") && !tc.hook && !strings.Contains(got, hook) ||
			strings.Contains(tc.lines[0], "other") && !strings.Contains(got, server) {
			t.Errorf("%q: %s", tc.lines, got)
		}
	}
}

// A shell.nix alone is not entered: what would enter it is named, from a subfolder, too.
func TestAShellNixAloneIsNamed(t *testing.T) {
	w := newWorldHere(t)
	w.plain(t, "git init -q .")
	w.write(t, "project/a/shell.nix", "{ }")
	w.write(t, "project/a/b/c", "")
	cmd := w.claudebox("devshell")
	cmd.Dir = w.path("project/a/b")
	expect.Contains(t, succeed(t, cmd), "`devshell: {file: a/shell.nix}` in a profile")
}

// What direnv, devenv and devbox give outside is named where it is not inside.
func TestWhatEnvrcGivesAndNoDevShellDoesIsNamed(t *testing.T) {
	w := newWorldHere(t)
	w.plain(t, "git init -q .")
	w.write(t, "project/devbox.json", "{}")
	expect.Contains(t, oneLine(succeed(t, w.claudebox("plan"))), "devbox.json makes no dev shell here: in the profile `packages` brings programs")
	w.write(t, "project/.envrc", "watch_file x\n# export NO=1\nuse flake . --impure\nuse devenv\nexport A_URL=postgres://u:word@h B=2\ndotenv_if_exists\n  PATH_add bin\ndotenv_if_exists\n")
	got := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, got, "left out: 4 direnv lines ", "of .envrc only `use flake` and `use nix` count inside, and not: "+
		"use devenv, export A_URL, dotenv_if_exists, PATH_add; in the profile `packages` brings programs, and `env` or `extra_env_passthrough` variables")
	if strings.Contains(got, "word") {
		t.Errorf("a value is shown: %s", got)
	}
}

// A project of a version manager got other versions, or none, and nobody said so.
func TestVersionsOfAVersionManagerAreNamed(t *testing.T) {
	w := newWorldHere(t)
	w.plain(t, "git init -q .")
	w.write(t, "project/.nvmrc", "v20.11.1\n")
	w.write(t, "project/.python-version", "3\n")
	w.write(t, "project/.tool-versions", "# ours\nnodejs 20.1.0 # old\npython v2.7\n")
	w.write(t, "project/mise.toml", "[tools]\nruby = { version = \"3.3\" }\n\"npm:prettier\" = [\"3\", \"2\"]\n[env]\nA = \"b\"\n")
	w.write(t, "project/rust-toolchain.toml", "[toolchain]\nchannel = \"1.80\"\n")
	w.write(t, "project/sub/.ruby-version", "3.2\n")
	w.write(t, "project/.prototools", "gleam = \"1\"\npython = \">=2\"\n[settings]\nx = 1\n")
	w.write(t, "project/.sdkmanrc", "java=21.0.2-tem\n")
	w.write(t, "project/package.json", `{"engines": {"node": ">=20", "vscode": "^1", "pnpm": "9"}, "packageManager": "pnpm@9.1.0+sha512.ab"}`)
	_, version, _ := strings.Cut(oneLine(succeed(t, w.claudebox("plan"))), " python3 ") // which differs in the last number only
	version, _, _ = strings.Cut(version, ",")
	w.write(t, "project/sub/.python-version", version+"9\n")
	cmd := w.claudebox("plan")
	cmd.Dir = w.path("project/sub")
	got := oneLine(succeed(t, cmd))
	for _, want := range []string{
		"left out: 11 tool versions ",
		"the project asks for node v20.11.1 (.nvmrc), nodejs 20.1.0 (.tool-versions), node >=20 (package.json): node is not inside: add its package to the profile: `packages: [nodejs]`",
		"the project asks for ruby 3.2 (sub/.ruby-version), ruby 3.3 (mise.toml): ruby is not inside",
		"the project asks for rust 1.80 (rust-toolchain.toml): cargo is not inside",
		"the project asks for python v2.7 (.tool-versions): inside it is python3-3.", "prettier 3 (mise.toml)",
		"gleam 1 (.prototools): gleam is not inside", "java 21.0.2-tem (.sdkmanrc): java is not inside", "pnpm 9.1.0 (package.json): pnpm is not inside",
	} {
		expect.Contains(t, got, want)
	}
}

// What a project is built of elsewhere was named where a manifest says "../x", and not by its whole path.
func TestWhatIsBuiltOfTheHomeIsNamed(t *testing.T) {
	w := newWorldHere(t)
	w.plain(t, "git init -q .")
	for _, made := range []string{"gems/x", "lib/x", ".yarn/berry/cache/x"} {
		w.write(t, made, "")
	}
	w.write(t, "project/.bundle/config", "---\nBUNDLE_PATH: \"../gems\"\n")
	w.write(t, "project/go.mod", "module m\nreplace x => "+w.path("lib")+"\n")
	w.write(t, "project/.pnp.cjs", "")
	got := oneLine(succeed(t, w.claudebox("plan")))
	for _, want := range []string{"left out: 3 dependencies ", "the project's .bundle/config names ../gems: ~/gems is not inside", "the project's go.mod names " + w.path("lib")} {
		expect.Contains(t, got, want)
	}
	_, flag, _ := strings.Cut(got, "the project's .pnp.cjs names what lies in yarn's cache: ~/.yarn/berry/cache is not inside: ")
	flag, _, _ = strings.Cut(flag, ",")
	if got := succeed(t, w.claudebox(append([]string{"plan"}, strings.Fields(flag)...)...)); strings.Contains(got, "pnp.cjs") {
		t.Errorf("it is named still: %s", got)
	}
	w.write(t, "project/.yarn/cache/x", "")
	if got := succeed(t, w.claudebox("plan")); strings.Contains(got, "pnp.cjs") {
		t.Errorf("it is named with a cache of its own: %s", got)
	}
}

// The token of a registry, or of a server, that a file of the project takes from a variable was missing without a word.
func TestVariablesThatTheProjectsFilesUseAreNamed(t *testing.T) {
	w := newWorldHere(t)
	w.plain(t, "git init -q .")
	w.write(t, "project/.npmrc", "//npm.example/:_authToken=${NPM_TOKEN}\nx=${HOME}/${UNSET}/${NPM_TOKEN}\ncafile=${NODE_EXTRA_CA_CERTS}\n")
	w.write(t, "project/.mcp.json", `{"mcpServers": {"m": {"type": "http", "url": "https://m.example/${PATH}", "headers": {"k": "${SERVER_KEY:-x} ${MCP_KEY}"}}}}`)
	for _, name := range []string{"NPM_TOKEN", "SERVER_KEY", "MCP_KEY"} {
		w.env[name] = "value-of-" + name
	}
	w.env["NODE_EXTRA_CA_CERTS"] = "/nowhere.pem" // which has another value inside
	plan := func(lines ...string) string {
		return oneLine(succeed(t, w.claudebox("plan", "--profile", w.profile(t, lines...))))
	}
	got := plan()
	expect.Contains(t, got, "left out: 3 variables ", "set here and not inside: MCP_KEY;", "the project's .mcp.json uses SERVER_KEY, set here and not inside; `secrets: [{env: SERVER_KEY,",
		"the project's .npmrc uses NPM_TOKEN, set here and not inside; `secrets: [{env: NPM_TOKEN, hosts: [HOST]}]` uses it from outside, `extra_env_passthrough: [NPM_TOKEN]` lets it in")
	if strings.Contains(got, "value-of") {
		t.Errorf("a value is shown: %s", got)
	}
	if got := plan("secrets: [{env: NPM_TOKEN, hosts: [npm.example]}]", "extra_env_passthrough: [SERVER_KEY, MCP_KEY]"); strings.Contains(got, "not inside; `secrets") {
		t.Errorf("still named: %s", got)
	}
}
