package view_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
)

// aView is that of a sandbox whose store, home and project are folders of the test.
func aView(t *testing.T) (v *view.View, host string) {
	t.Helper()
	host = must.Folder(t)
	write := func(name, content string, mode os.FileMode) {
		name = filepath.Join(host, name)
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, []byte(content), mode))
	}
	write("store/bash/bin/bash", "\x7fELF", 0o755)
	write("store/jq/bin/jq", "\x7fELF", 0o755)
	write("project/run.sh", "#!/bin/bash\n", 0o755)
	write("project/env.sh", "#!/usr/bin/env -S jq -f\n", 0o755)
	write("project/py.py", "#!/usr/bin/env python3\n", 0o755)
	write("project/zsh", "#!/bin/zsh -e\n", 0o755)
	write("project/near.sh", "#!bin/sh\n", 0o755)
	write("project/plain", "echo\n", 0o644)
	write("project/data.txt", "x", 0o644)
	write("import/a.sh", "#!/bin/sh\n", 0o755)
	write("elsewhere/b.sh", "#!/bin/sh\n", 0o755)
	must.Do(t, os.Symlink("/usr/bin/env", filepath.Join(host, "project/env")))
	must.Do(t, os.Symlink(host+"/elsewhere", filepath.Join(host, "project/out")))
	v = view.Of([]launch.Mount{
		{Kind: plan.Tmpfs, Destination: "/"},
		{Kind: plan.Dev, Destination: "/dev"},
		{Kind: plan.ROBind, Source: host + "/store", Destination: "/nix/store"},
		{Kind: plan.Symlink, Source: "/nix/store/bash/bin/bash", Destination: "/bin/bash"},
		{Kind: plan.Symlink, Source: "bash", Destination: "/bin/sh"},
		{Kind: plan.Symlink, Source: "/nix/store/bash/bin/bash", Destination: "/usr/bin/env"},
		{Kind: plan.File, Source: "passwd", Destination: "/etc/passwd", Mode: "0444"},
		{Kind: plan.Tmpfs, Destination: "/home/u"},
		{Kind: plan.Bind, Source: host + "/instance/that/is/made/later", Destination: "/home/u/.claude"},
		{Kind: plan.Bind, Source: host + "/project", Destination: "/home/u/p"},
		{Kind: plan.ROBind, Source: host + "/import", Destination: "/run/claudebox/import/hooks"},
		{Kind: plan.ROBind, Source: host + "/elsewhere/b.sh", Destination: "/opt/b"},
		{Kind: plan.ROData, Destination: "/run/claudebox/import/hooks/token.sh", Why: launch.WhyHidden},
	}, nil)
	v.Path, v.Home, v.Project, v.Dir = []string{"/nix/store/jq/bin", "/nix/store/bash/bin"}, "/home/u", "/home/u/p", "/home/u/p"
	v.Mountable = func(name string) (string, error) { return "--mount-ro " + name, nil }
	v.Link("/home/u/.claude/hooks", "/run/claudebox/import/hooks")
	return v, host
}

func TestProgramsRunInsideWhereAllThatTheyNeedIsThere(t *testing.T) {
	v, host := aView(t)
	for word, want := range map[string]string{
		"jq": "", "/bin/bash": "", "/bin/sh": "", "/usr/bin/env": "", "./run.sh": "", "$CLAUDE_PROJECT_DIR/run.sh": "",
		"/home/u/p/env.sh": "", "~/p/run.sh": "", "${HOME}/p/run.sh": "", "./env": "", "~/.claude/hooks/a.sh": "", "/opt/b": "",
		"$UNKNOWN/x": "", "/dev/null": "", "/nix/store/jq/bin/jq": "",
		"node":                     "node is not inside: add its package to the profile: `packages: [nodejs]`",
		"sl":                       "sl is not inside: add the package that has it",
		"./py.py":                  "of ./py.py python3 is not inside: add its package to the profile: `packages: [python3]`",
		"/home/u/p/zsh":            "of /home/u/p/zsh /bin/zsh is not inside",
		"~/.claude/hooks/token.sh": "~/.claude/hooks/token.sh is hidden inside: it looks secret",
		"./near.sh":                "",
		"./plain":                  "./plain cannot be executed (chmod +x /home/u/p/plain)",
		"./out/b.sh":               "./out/b.sh leads to ",
		"/usr/bin/jq":              "/usr/bin/jq is not inside",
		"/nix/store/gone/bin/x":    "/nix/store/gone/bin/x is not inside",
		"~/.claude/gone.sh":        "~/.claude/gone.sh is not inside",
		host + "/elsewhere/b.sh": host + "/elsewhere/b.sh is not inside: --mount-ro " + host + "/elsewhere/b.sh, or the profile's `mounts`, " +
			"brings it",
	} {
		if got := v.Program(word); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q; want %q", word, got, want)
		}
	}
}

// An MCP server whose configuration sets a PATH is looked for by that: one that works was left out, and one that cannot
// start was let in.
func TestAProgramIsLookedForByThePathThatItIsStartedWith(t *testing.T) {
	v, _ := aView(t)
	v.Yours = func(program, search string) string {
		if program == "npx" && search == "/home/u/nvm/bin" {
			return "--mount-ro ~/nvm brings yours"
		}
		return ""
	}
	const leave = "leave that PATH out, or end it with `:${PATH}`"
	const lacks = " is in no folder that is inside of the PATH which its `env` sets: "
	for word, want := range map[string]string{
		"/home/u/p\x00run.sh": "", "${HOME}/p\x00run.sh": "", ".\x00run.sh": "", "/gone:/home/u/p\x00run.sh": "",
		"/home/u/p:${PATH}\x00jq": "", "/home/u/p:${PATH}\x00env.sh": "", "${X}/bin\x00jq": "", "/gone\x00/bin/bash": "",
		"~/p\x00run.sh":              "run.sh" + lacks,
		"$HOME/p\x00run.sh":          "run.sh" + lacks,
		"/home/u/p\x00jq":            "jq" + lacks + leave,
		"/home/u/p\x00env.sh":        "of env.sh jq" + lacks + leave,
		"/home/u/p\x00node":          "node" + lacks + "add its package to the profile: `packages: [nodejs]`; and " + leave,
		"${HOME}/nvm/bin\x00npx":     "npx" + lacks + "--mount-ro ~/nvm brings yours",
		"/home/u/p:${PATH}\x00plain": "plain" + lacks + "add the package that has it to the profile's `packages`; inside, `, plain` looks for one",
	} {
		if got := v.Program("PATH=" + word); got != want && (want == "" || !strings.HasPrefix(got, want) || strings.HasPrefix(got, "plain")) {
			t.Errorf("%q: %q; want %q", word, got, want)
		}
	}
	if v.Program("run.sh") == "" || v.Program("jq") != "" {
		t.Error("another program is looked for by another's PATH")
	}
}

func TestFilesAreSeenInsideWhereAMountShowsThem(t *testing.T) {
	v, host := aView(t)
	for word, want := range map[string]bool{
		"./data.txt": true, "/etc/passwd": true, host + "/elsewhere/b.sh": false, "/gone/and/nothing": true, "word": true,
		"/etc/hostname": false, "/home": false, "/home/u": true,
	} {
		if _, err := os.Stat("/etc/hostname"); err != nil && word == "/etc/hostname" {
			continue
		}
		if got := v.File(word); (got == "") != want {
			t.Errorf("%s: %q; want seen %v", word, got, want)
		}
	}
}

func TestAFolderWhoseDestinationLiesDeeperIsThere(t *testing.T) {
	v, _ := aView(t)
	for name, want := range map[string]bool{"/": true, "/run/claudebox": true, "/run/other": false, "/home": true, "/opt/b": true} {
		if got := v.Has(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if at := v.OnHost("/opt/c"); at != "" {
		t.Errorf("got %s", at)
	}
}

// Of a closure only its paths are there.
func TestAClosureIsNotTheWholeStore(t *testing.T) {
	_, host := aView(t)
	v := view.Of([]launch.Mount{{Kind: plan.Closure, Destination: host + "/store"}}, []string{host + "/store/jq"})
	if !v.Has(host+"/store/jq/bin/jq") || v.Has(host+"/store/bash/bin/bash") {
		t.Error("the whole store is there, or nothing of it")
	}
}

// What a dev shell may bring is not said to be missing.
func TestADevShellMayBringAProgram(t *testing.T) {
	v, _ := aView(t)
	v.Brings = func(program string) bool { return program == "node" }
	if got := v.Program("node"); got != "" {
		t.Error(got)
	}
	if got := v.Program("ruby"); got == "" {
		t.Error("ruby is inside")
	}
}

// A virtual environment leads to a Python of the host: what brings it is the folder with its library, and the
// sandbox's own links on the way there are not named, as the user has none of them.
func TestThePythonOfAVirtualEnvironmentIsNamedWithItsFolder(t *testing.T) {
	v, host := aView(t)
	made := func(name string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(host+name), 0o755))
		must.Do(t, os.WriteFile(host+name, []byte("\x7fELF"), 0o755))
	}
	link := func(text, name string) {
		t.Helper()
		made(name + ".folder")
		must.Do(t, os.Symlink(text, host+name))
	}
	made("/uv/3.13.5/bin/python3.13")
	made("/uv/3.13.5/lib/python3.13/os.py")
	link("3.13.5", "/uv/3.13")
	made("/bin/python3.13")
	v.Link(host+"/uv", "/home/u/.cache/home-uv")
	for to, want := range map[string]string{
		host + "/uv/3.13/bin/python3.13":   host + "/uv/3.13/bin/python3.13, which is not inside: --mount-ro " + host + "/uv, or",
		host + "/uv/3.13.5/bin/python3.13": host + "/uv/3.13.5/bin/python3.13, which is not inside: --mount-ro " + host + "/uv/3.13.5, or",
		host + "/bin/python3.13":           host + "/bin/python3.13, which is not inside: --mount-ro " + host + "/bin/python3.13, or",
	} {
		name := strings.ReplaceAll(strings.TrimPrefix(to, host+"/"), "/", "-")
		link(to, "/project/"+name)
		if got := v.Program("./" + name); !strings.Contains(got, " leads to "+want) {
			t.Errorf("%s: %q; want %s", to, got, want)
		}
	}
}
