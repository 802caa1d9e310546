package profile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/profile"
)

// files is an Opener over a map from file to text; a name N is the file
// N.yaml.
type files map[string]string

func (f files) Open(ref string, _ diag.Position) (string, string, []byte, error) {
	for _, file := range []string{ref, ref + ".yaml"} {
		if src, found := f[file]; found {
			return profile.NameOf(file), file, []byte(src), nil
		}
	}
	var known []string
	for file := range f {
		known = append(known, profile.NameOf(file))
	}
	return "", "", nil, &profile.NotFoundError{Ref: ref, Known: known}
}

// readOne reads a single document, which may extend the built-in profile only.
func readOne(file string, src []byte) (profile.Profile, diag.Problems, error) {
	return profile.Load(file, single{file: file, src: src})
}

type single struct {
	file string
	src  []byte
}

func (s single) Open(ref string, _ diag.Position) (string, string, []byte, error) {
	if ref != s.file {
		return "", "", nil, &profile.NotFoundError{Ref: ref, Known: []string{profile.Default}}
	}
	return profile.NameOf(s.file), s.file, s.src, nil
}

// report renders problems as a person sees them, one a line, remedies after
// an arrow.
func report(problems diag.Problems) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.String() + ": " + p.Message)
		if p.Remedy != "" {
			b.WriteString(" -> " + p.Remedy)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// problemsOf is the report of an error that must be a list of problems.
func problemsOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var problems diag.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %T (%v), want diag.Problems", err, err)
	}
	return report(problems)
}

// parse reads a document that must be right.
func parse(t *testing.T, src string) (profile.Profile, diag.Problems) {
	t.Helper()
	p, warnings, err := readOne("work.yaml", []byte(src))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return p, warnings
}

// defaults is what an empty document gives.
func defaults(t *testing.T) profile.Profile {
	p, _ := parse(t, "")
	p.Sources = nil
	return p
}

func TestAnEmptyProfileHasTheDefaults(t *testing.T) {
	want := profile.Profile{
		Name:        "work",
		Agent:       profile.Agent{Name: "claude"},
		Nixpkgs:     "pinned",
		Network:     profile.Network{Tier: profile.TierFull},
		State:       "project",
		Nix:         profile.Nix{Daemon: "own", Store: profile.StoreFull},
		Devshell:    profile.Devshell{Flake: profile.DevshellAuto, Wait: 300},
		Git:         profile.Git{Config: "readonly", Sign: "off"},
		ProtectMode: "default",
		Cache:       profile.CacheProject,
		Compat:      profile.CompatNixLd,
		Toolbox:     "full",
		Project:     profile.ProjectGitRoot,
		Workspace:   "project",
		Confirm:     "changed",
	}
	for name, src := range map[string]string{
		"no bytes":         "",
		"a comment":        "# nothing\n",
		"an empty mapping": "{}",
		"a mark of the byte order, and the line ends of Windows":     "\ufeffname: work\r\n# nothing\r\n",
		"keys without values, as when all entries are commented out": "packages:\nenv:\nmounts:\nhide:\n  # - .env\nnix:\nports:\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings := parse(t, src)
			got.Sources = nil
			if diff := cmp.Diff(want, got); diff != "" || len(warnings) > 0 {
				t.Errorf("warnings %v, difference:\n%s", warnings, diff)
			}
		})
	}
}

func TestTheFirstDesignsJSONExampleLoadsUnchanged(t *testing.T) {
	const src = `{"name": "work", "network": "inet", "env": {"AWS_PROFILE": "work"}, ` +
		`"extra_env_passthrough": ["MY_ORG_TOKEN", "VAULT_TOKEN"], ` +
		`"mounts": [{"host": "~/.aws/credentials", "sandbox": "~/.aws/credentials", "mode": "ro"}], "packages": ["awscli2", "kubectl"]}`
	got, warnings, err := readOne("work.json", []byte(src))
	must.Do(t, err)
	first := profile.Origin{Name: "work", File: "work.json", Line: 1}
	want := defaults(t)
	want.Network.Tier = profile.TierInet
	want.Env = []profile.Constant{{Name: "AWS_PROFILE", Value: "work", Origin: first}}
	want.PassThrough = []profile.Entry{{Text: "MY_ORG_TOKEN", Origin: first}, {Text: "VAULT_TOKEN", Origin: first}}
	want.Mounts = []profile.Mount{{Host: "~/.aws/credentials", Sandbox: "~/.aws/credentials", Origin: first}}
	want.Packages = []profile.Package{{Attr: "awscli2", Origin: first}, {Attr: "kubectl", Origin: first}}
	got.Sources = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const secret = "work.json:1:147: host: ~/.aws/credentials is a secret path (AWS credentials), and no launch mounts it so" +
		" -> add secret: true to the mount if the agent shall read it\n"
	if got := report(warnings); got != secret {
		t.Errorf("warnings:\n%swant:\n%s", got, secret)
	}
}

// everything says every key of the schema.
const everything = `name: work
description: cloud work, no LAN
extends: default
agent: {command: [codex, --yolo], home: {.codex: persist}, env: [OPENAI_BASE]}
packages: [awscli2, openssl^dev, python3Packages.requests]
nixpkgs: github:NixOS/nixpkgs/391b592eb44808b3bd0cb80bb71b63a5a118b8bb
network: {tier: allow, allow: [anthropic, "*.GitHub.com:443"]}
env:
  AWS_PROFILE: work
  PORT: 3000
  VERSION: 1.10
  ANSWER: no
  MODE: 0755
extra_env_passthrough: [MY_ORG, VAULT_ADDR]
mounts:
  - {host: ~/.aws/credentials, sandbox: ~/.aws/credentials, mode: ro, secret: true}
  - {host: ~/datasets/, mode: rw, optional: true}
  - {host: ./fixtures, sandbox: /srv//fixtures}
state: shared
nix: {daemon: "off", store: closure}
git: {hosts: {github.com: GH_TOKEN}, ssh_to_https: true, config: writable, sign: ssh}
ssh: {hosts: [GitHub.com, "git.example.org:2222"]}
hide: [".env", "secrets/**"]
show: [".env.test"]
protect: [".envrc"]
protect_mode: strict
cache: ephemeral
ports: {in: [3000, 80, 3000], out: [8931]}
mcp: {import: [github]}
compat: off
toolbox: base
project: git-root
workspace: branch
worktrees: ["../wt-*"]
devshell: {file: shell.nix, hook: false, vars: [PG*], watch: ["nix/*.json"], require: true, wait: 2m}
confirm: changed
`

func TestEveryKeyReachesTheProfile(t *testing.T) {
	got, warnings := parse(t, everything)
	at := func(line int) profile.Origin { return profile.Origin{Name: "work", File: "work.yaml", Line: line} }
	want := profile.Profile{
		Name:        "work",
		Description: "cloud work, no LAN",
		Agent: profile.Agent{
			Name: "codex", Command: []string{"codex", "--yolo"},
			Home: map[string]string{".codex": "persist"},
			Env:  []profile.Entry{{Text: "OPENAI_BASE", Origin: at(4)}},
		},
		Packages: []profile.Package{
			{Attr: "awscli2", Origin: at(5)},
			{Attr: "openssl", Outputs: []string{"dev"}, Origin: at(5)},
			{Attr: "python3Packages.requests", Origin: at(5)},
		},
		Nixpkgs: "github:NixOS/nixpkgs/391b592eb44808b3bd0cb80bb71b63a5a118b8bb",
		Network: profile.Network{
			Tier: profile.TierAllow, Allow: []string{"anthropic", "*.github.com:443"}, In: []int{80, 3000}, Out: []int{8931},
		},
		Env: []profile.Constant{
			{Name: "ANSWER", Value: "no", Origin: at(12)},
			{Name: "AWS_PROFILE", Value: "work", Origin: at(9)},
			{Name: "MODE", Value: "0755", Origin: at(13)},
			{Name: "PORT", Value: "3000", Origin: at(10)},
			{Name: "VERSION", Value: "1.10", Origin: at(11)},
		},
		PassThrough: []profile.Entry{{Text: "MY_ORG", Origin: at(14)}, {Text: "VAULT_ADDR", Origin: at(14)}},
		Mounts: []profile.Mount{
			{Host: "./fixtures", Sandbox: "/srv/fixtures", Origin: at(18)},
			{Host: "~/.aws/credentials", Sandbox: "~/.aws/credentials", Secret: true, Origin: at(16)},
			{Host: "~/datasets", Sandbox: "~/datasets", Writable: true, Optional: true, Origin: at(17)},
		},
		State: profile.StateShared,
		Nix:   profile.Nix{Daemon: profile.DaemonOff, Store: profile.StoreClosure},
		Devshell: profile.Devshell{
			File: "shell.nix", NoHook: true, Vars: []string{"PG*"}, Watch: []string{"nix/*.json"}, Require: true, Wait: 120,
		},
		Git: profile.Git{
			Hosts:      []profile.GitHost{{Host: "github.com", Variable: "GH_TOKEN", Origin: at(21)}},
			SSHToHTTPS: true, Config: "writable", Sign: profile.GitSignSSH,
		},
		SSHHosts:    []string{"git.example.org:2222", "github.com"},
		Hide:        []profile.Entry{{Text: ".env", Origin: at(23)}, {Text: "secrets/**", Origin: at(23)}},
		Show:        []profile.Entry{{Text: ".env.test", Origin: at(24)}},
		Protect:     []profile.Entry{{Text: ".envrc", Origin: at(25)}},
		ProtectMode: "strict",
		Cache:       "ephemeral",
		MCP:         []string{"github"},
		Compat:      "off",
		Toolbox:     profile.ToolboxBase,
		Project:     profile.ProjectGitRoot,
		Workspace:   "branch",
		Worktrees:   []profile.Entry{{Text: "../wt-*", Origin: at(34)}},
		Confirm:     "changed",
		Sources: []profile.Source{
			{Name: "default", File: "(built in)", SHA256: got.Sources[0].SHA256},
			{Name: "work", File: "work.yaml", SHA256: got.Sources[1].SHA256},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(warnings) > 0 {
		t.Errorf("warnings %v, difference:\n%s", warnings, diff)
	}
}

// The words of the schema and the constants of the package are two lists of
// one thing.
func TestTheSchemaAndTheConstantsKnowTheSameWords(t *testing.T) {
	schema := profile.Schema()
	for name, tc := range map[string]struct {
		words []string
		want  []string
	}{
		"tier":         {schema.Key("network").Key("tier").Words, words(profile.TierFull, profile.TierInet, profile.TierAllow, profile.TierNone)},
		"state":        {schema.Key("state").Words, words("project", profile.StateShared, "ephemeral", "host")},
		"daemon":       {schema.Key("nix").Key("daemon").Words, words("own", profile.DaemonHost, profile.DaemonOff)},
		"store":        {schema.Key("nix").Key("store").Words, words(profile.StoreFull, profile.StoreClosure)},
		"config":       {schema.Key("git").Key("config").Words, words("readonly", "writable")},
		"sign":         {schema.Key("git").Key("sign").Words, words("off", profile.GitSignSSH)},
		"protect_mode": {schema.Key("protect_mode").Words, words("default", "strict")},
		"cache":        {schema.Key("cache").Words, words(profile.CacheProject, "ephemeral")},
		"toolbox":      {schema.Key("toolbox").Words, words("full", profile.ToolboxBase)},
		"compat":       {schema.Key("compat").Words, words(profile.CompatNixLd, "off")},
		"project":      {schema.Key("project").Words, words(profile.ProjectGitRoot, "cwd")},
		"workspace":    {schema.Key("workspace").Words, words("project", profile.WorkspaceBranch)},
		"confirm":      {schema.Key("confirm").Words, words("changed", "always", "never")},
	} {
		if diff := cmp.Diff(tc.want, tc.words); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func words[T ~string](constants ...T) []string {
	var list []string
	for _, c := range constants {
		list = append(list, string(c))
	}
	return list
}

// Each way to name the adapter for editors is Claude Code: its login, its hosts, its home.
func TestTheAdapterForEditorsIsClaudeCode(t *testing.T) {
	for text, want := range map[string]profile.Agent{
		"claude-acp":                                  {Name: "claude", Command: []string{"claude-agent-acp"}},
		"{command: [claude-agent-acp]}":               {Name: "claude", Command: []string{"claude-agent-acp"}},
		"{command: [~/bin/claude-code-acp]}":          {Name: "claude", Command: []string{"~/bin/claude-code-acp"}},
		"{name: claude-acp, command: [/opt/acp, -v]}": {Name: "claude", Command: []string{"/opt/acp", "-v"}},
		"claude":             {Name: "claude"},
		"{command: [codex]}": {Name: "codex", Command: []string{"codex"}},
	} {
		prof, _, err := readOne("x.yaml", []byte("name: x\nextends: default\nagent: "+text+"\n"))
		if diff := cmp.Diff(want, prof.Agent); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
}
