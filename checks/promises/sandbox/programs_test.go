//go:build lab

package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/registry"
)

// settle waits until files that were just written are old enough to be told from
// later ones by their time: nothing is kept of younger ones.
func settle() { time.Sleep(1100 * time.Millisecond) }

// A launch by a kept plan is as the first. A changed profile is read again.
func TestALaunchByAKeptPlanIsAsTheFirst(t *testing.T) {
	w := newWorld(t)
	script := func(last string) string {
		return `agent: {command: [bash, -c, 'echo "$0 $*"; ulimit -Sn; echo >&2 oh; exit ` + last + `']}`
	}
	profile := w.profile(t, script("7"))
	settle()
	launch := func() outcome {
		return run(t, limited(w.claudebox("-P", profile, "-y", "--no-report", "--", "a", "b")))
	}
	want := outcome{7, "a b\n123\n", "oh\n"}
	if first, second := launch(), launch(); first != want || second != want {
		t.Errorf("got  %+v\nthen %+v\nwant %+v", first, second, want)
	}
	w.profile(t, script("8"))
	if third := launch(); third.status != 8 {
		t.Errorf("by a changed profile: %+v", third)
	}
}

// limited is a command with a limit of open files that Go would raise.
func limited(cmd *exec.Cmd) *exec.Cmd {
	cmd.Args = append([]string{"sh", "-c", `ulimit -Sn 123; exec "$@"`, "sh"}, cmd.Args...)
	cmd.Path = "/bin/sh"
	return cmd
}

// A project's own profile counts from when it is there, though a plan is kept,
// and its faults are named.
func TestAProjectsOwnProfileIsReadThoughAPlanIsKept(t *testing.T) {
	w := newWorld(t)
	profile := w.profile(t, "agent: {command: [readlink, /proc/self/ns/net]}", "network: full")
	launch := func() outcome { return run(t, w.claudebox("-P", profile, "-y", "--no-report")) }
	ours, err := os.Readlink("/proc/self/ns/net")
	must.Do(t, err)
	settle()
	if got := launch(); got.stdout != ours+"\n" {
		t.Fatalf("without it: %+v", got)
	}
	w.write(t, "project/.claudebox.yaml", "network: none\n")
	settle()
	for _, which := range []string{"first", "kept"} {
		if got := launch(); got.status != 0 || got.stdout == ours+"\n" {
			t.Errorf("the %s launch with network none: %+v", which, got)
		}
	}
	w.write(t, "project/.claudebox.yaml", "netwrk: none\n")
	if got, want := launch(), `.claudebox.yaml:1:1: unknown key "netwrk"`; got.status != 125 || !strings.Contains(got.stderr, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// U21: a project's Makefile, a patch, an archive or a short script in Python
// failed, as none of the usual small tools was inside.
func TestTheUsualSmallToolsAreInside(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/Makefile", "all:\n\t@echo made\n")
	w.write(t, "project/change", "--- a/text\n+++ b/text\n@@ -1 +1 @@\n-old\n+new\n")
	w.write(t, "project/text", "old\n")
	for words, says := range map[string]string{
		`make`:                          "made\n",
		`patch -p1 <change && cat text`: "patching file text\nnew\n",
		`python3 -c 'import json, ssl, sqlite3; print(json.dumps(3))'`: "3\n",
		`ps -o comm= | grep -c ps`:                                     "1\n",
		`tput -T xterm-256color colors; clear -T xterm | tr -d '\033'`: "256\n[H[2J[3J",
		`file --brief Makefile`:                                        "makefile script, ASCII text\n",
		`tree --noreport -i -P Makefile`:                               ".\nMakefile\n",
		`for z in xz bzip2 zstd; do echo $z | $z -c | $z -dc; done`:    "xz\nbzip2\nzstd\n",
		`cd /tmp && echo a >b && zip -q c.zip b && unzip -p c.zip`:     "a\n",
	} {
		t.Run(strings.Fields(words)[0], func(t *testing.T) {
			if got := run(t, w.claudebox("-y", "shell", "--no-report", "--", "bash", "-c", words)); got.status != 0 || got.stdout != says {
				t.Errorf("%s: %+v, want %q", words, got, says)
			}
		})
	}
	profile := w.profile(t, "toolbox: base")
	got := run(t, w.claudebox("-y", "-P", profile, "shell", "--no-report", "--", "bash", "-c", "command -v git; command -v make python3 unzip"))
	if lines := strings.Count(got.stdout, "\n"); lines != 1 || !strings.Contains(got.stdout, "/git") {
		t.Errorf("with toolbox: base: %+v", got)
	}
}

// An MCP server by npx: npm's own npx fetches a package of a registry, keeps it for the project, and runs it.
func TestNpxRunsAPackageOfARegistry(t *testing.T) {
	s := serve(t, registry.Package{
		Name: "mcp-x", Version: "1.0.0", Bin: map[string]string{"mcp-x": "x.js"}, Files: map[string]string{"x.js": "#!/usr/bin/env node\n" +
			"process.stdin.once('data', m => { console.log(JSON.parse(m).method, 'is answered in', process.cwd()); process.exit() })\n"},
	})
	w := newWorld(t)
	profile := w.profile(t, "network: {tier: allow, allow: [anthropic]}", "ports: {out: ["+s.Port+"]}")
	for _, flags := range [][]string{{"-P", profile}, nil} { // the second finds it kept
		got := w.inside(t, `echo '{"method":"initialize"}' | PATH=/opt/node/bin:$PATH npm_config_registry=`+s.URL+` node /opt/npm/bin/npx-cli.js -y mcp-x`,
			append(flags, "--mount-ro", real(t, "CLAUDEBOX_TEST_NODE", "")+":/opt/node/bin/node", "--mount-ro", real(t, "CLAUDEBOX_LAB_RELEASES", "npm")+":/opt/npm")...)
		wantEqual(t, got, "initialize is answered in "+w.project+"\n")
	}
	if n := s.Fetched(); n != 1 {
		t.Errorf("the package was fetched %d times", n)
	}
}
