//go:build lab

package attacks_test

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// P1: the default profile reaches every port of this machine, so a project that
// asks for one asks for no more. Under `--network inet` it does.
func TestAProjectsProfileAsksForAPortThatAFlagTookAway(t *testing.T) {
	w := newWorld(t)
	service, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer service.Close()
	go func() {
		for {
			c, err := service.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(canary + "\n"))
			c.Close()
		}
	}()
	port := strconv.Itoa(service.Addr().(*net.TCPAddr).Port)
	w.write("project/.claudebox.yaml", "ports: {out: ["+port+"]}\n")
	script := "exec 3<>/dev/tcp/127.0.0.1/" + port + " && cat <&3; true"
	for _, tier := range []string{"inet", "none"} {
		w.wantNoCanary(w.attack(script, "--network", tier))
	}
	if got := w.claudebox("allow", "--network", "inet", "--yes"); got.status != 0 {
		t.Fatal(got)
	}
	if got := w.attack(script, "--network", "inet"); got.stdout != canary+"\n" {
		t.Errorf("what the user allowed is not there\n%s", got)
	}
}

// What a profile's mount covers in a folder of the host must not show in one
// that a flag mounts because the project's profile leaves the cover out.
func TestAProjectsProfileLeavesOutAMountThatCoversAFlagsMount(t *testing.T) {
	w := newWorld(t)
	w.folder("nothing")
	flags := append(w.profile("mounts: [{host: ~/nothing, sandbox: /data/documents}]"), "--mount-ro", w.home+"/kept:/data")
	w.write("kept/documents/letter", canary)
	w.write("project/.claudebox.yaml", "mounts: !replace []\n")
	w.wantNoCanary(w.attack("cat /data/documents/letter", flags...))
}

// P3: what says what the next sandbox may do can lie in the project, by a link
// of the user's. There an agent must not write it.
func TestAnAgentWritesAProfileThatALinkLeadsTo(t *testing.T) {
	const wide = "mounts: [{host: ~/documents, secret: true}]"
	for name, tc := range map[string]struct {
		lay   func(w *world)
		write string
		where []string // flags of the next launch
	}{
		"a profile of another name": {
			func(w *world) {
				w.write("project/shared.yaml", "name: work\n")
				w.link("../../project/shared.yaml", ".claudebox/profiles/work.yaml")
			},
			"shared.yaml",
			[]string{"-P", "work"},
		},
		"a profile that is not there": {
			func(w *world) { w.link("../../../project/default.yaml", ".config/claudebox/profiles/default.yaml") },
			"default.yaml", nil,
		},
		"the folder of profiles": {
			func(w *world) {
				w.folder("project/profiles")
				w.link("../project/profiles", ".claudebox/profiles")
			},
			"profiles/default.yaml", nil,
		},
		"a folder of profiles that is not there": {
			func(w *world) {
				w.folder(".config/claudebox")
				w.link(w.path("project/profiles"), ".config/claudebox/profiles")
			},
			"profiles/default.yaml", nil,
		},
		"claudebox's own folder that is not there": {
			func(w *world) { w.link("../project/deep/claudebox", ".config/claudebox") },
			"deep/claudebox/profiles/default.yaml", nil,
		},
		"the folder of profiles in a folder beside": {
			func(w *world) {
				w.folder("dotfiles/profiles")
				w.link("../dotfiles/profiles", ".claudebox/profiles")
			},
			"../dotfiles/profiles/default.yaml", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.folder("dotfiles")
			tc.lay(w)
			script := "mkdir -p $(dirname " + tc.write + "); echo '" + wide + "' >" + tc.write
			got := w.attack(script, "--mount-rw", "~/dotfiles")
			if got.status == 125 && !strings.Contains(got.stderr, "remedy: ") {
				t.Error(got)
			}
			if w.exists("project/"+tc.write) && strings.Contains(w.read("project/"+tc.write), wide) {
				t.Errorf("it was written\n%s", got)
			}
			w.wantNoCanary(w.attack("cat ~/documents/letter", tc.where...))
		})
	}
}

// P4, P3: no flag and no profile gives away what this host's git or claudebox
// obeys.
func TestAReadWriteMountReachesWhatTheHostObeys(t *testing.T) {
	for name, tc := range map[string]struct{ host, reason string }{
		"hooks":                       {"repo/.git/hooks", "git obeys"},
		"a git configuration":         {"repo/.git/config", "git obeys"},
		"a git folder":                {"repo/.git", "git obeys"},
		"hooks of a bare repository":  {"bare.git/hooks", "git obeys"},
		"hooks of a submodule":        {"repo/.git/modules/sub/hooks", "git obeys"},
		"the user's configuration":    {".gitconfig", ".gitconfig"},
		"what it includes":            {"included", "git obeys"},
		"the user's hooks":            {"githooks", "git obeys"},
		"a hook of the user":          {"githooks/post-checkout", "git obeys"},
		"a program of an alias":       {"programs/tool", "git obeys"},
		"claudebox's configuration":   {".config/claudebox", "says what a sandbox may do"},
		"what is not there yet in it": {".config", "~/.config/gh"},
		"profiles":                    {".config/claudebox/profiles", "says what a sandbox may do"},
		"where a link of one leads":   {"elsewhere/default.yaml", "says what a sandbox may do"},
		"claudebox's cache":           {".cache/claudebox", "says what a sandbox may do"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, git := range []string{"repo/.git", "bare.git", "repo/.git/modules/sub"} {
				w.write(git+"/HEAD", "ref: refs/heads/main\n")
				w.write(git+"/config", "")
				for _, dir := range []string{"objects", "refs", "hooks"} {
					w.folder(git + "/" + dir)
				}
			}
			w.write(".gitconfig", "[include]\npath = included\n[core]\nhooksPath = ~/githooks\n[alias]\nx = !"+w.path("programs/tool")+" --flag\n[safe]\ndirectory = "+w.path("data")+"\n")
			w.write("included", "")
			w.write("githooks/post-checkout", "")
			w.write("programs/tool", "")
			w.write("elsewhere/default.yaml", "name: default\n")
			w.link(w.path("elsewhere/default.yaml"), ".config/claudebox/profiles/default.yaml")
			w.folder(".cache/claudebox")
			w.folder("data")
			for _, flags := range [][]string{
				{"--mount-rw", w.path(tc.host) + ":/opt/given"},
				{"--mount-rw", w.path(tc.host)},
				w.profile(`mounts: [{host: "~/` + tc.host + `", sandbox: /opt/given, mode: rw}]`),
			} {
				w.wantRefused(w.attack("true", flags...), tc.reason)
			}
			if got := w.attack("touch /opt/given/made", "--mount-rw", w.path("data")+":/opt/given"); got.status != 0 {
				t.Errorf("what may be given is not\n%s", got)
			}
		})
	}
}

// P2: an agent that ignores TERM went on in strict mode with what was uncovered.
func TestAnAgentOutlivesTheEndThatStrictModeMakes(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.write("project/conf/.env", canary)
	l := w.begin(w.profile("protect_mode: strict")...)
	l.sh(`trap "" TERM HUP INT; (trap "" TERM HUP; setsid sleep inf) >/dev/null 2>&1 &`)
	l.watched()
	// No agent can move the folder of a hidden file; the user can.
	must.Do(t, os.Rename(w.path("project/conf"), w.path("project/other")), os.Mkdir(w.path("project/conf"), 0o755))
	l.sh("while :; do sleep 0.1; done")
	if said := l.end(); !strings.Contains(said, "the session ends") {
		t.Error(said)
	}
	if got := trial.Status(l.cmd.ProcessState); got != 143 {
		t.Errorf("status %d", got)
	}
}

// An editor of the user replaces a covered file. The agent can read the new one for a moment, if it waits for that.
func TestAnAgentWaitsForACoveredFileToBeReplaced(t *testing.T) {
	for mode, want := range map[string]string{
		"default": "project/.env was replaced outside while the agent worked",
		"strict":  "project/.env was replaced outside; the session ends",
	} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.write("project/.env", canary)
			l := w.begin(w.profile("protect_mode: " + mode)...)
			l.watched()
			w.write("project/.env.new", canary)
			must.Do(t, os.Rename(w.path("project/.env.new"), w.path("project/.env")))
			if mode == "strict" {
				l.sh("while :; do sleep 0.1; done")
			} else {
				l.until("cat .env", "")
			}
			if said := l.end(); !strings.Contains(said, want) {
				t.Error(said)
			}
			if got := trial.Status(l.cmd.ProcessState); (got == 143) != (mode == "strict") {
				t.Errorf("status %d", got)
			}
		})
	}
}

// The user's editor saves a hidden file of a folder that is mounted read-only, or that lies elsewhere inside: until the
// session ended the agent read it, and nothing was said.
//
// Promise: no secret of the project.
func TestAnAgentReadsWhatAnEditorReplacesInAMount(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		at    string
	}{
		"read-only":               {[]string{"--mount-ro", "~/lent"}, "~/lent"},
		"read-only, elsewhere":    {[]string{"--mount-ro", "~/lent:/mnt/lent"}, "/mnt/lent"},
		"read-only, twice":        {[]string{"--mount-ro", "~/lent", "--mount-ro", "~/lent:/mnt/lent"}, "/mnt/lent"},
		"read-only, within":       {[]string{"--mount-ro", "~/lent", "--mount-rw", "~/lent/other"}, "~/lent"},
		"read-write":              {[]string{"--mount-rw", "~/lent"}, "~/lent"},
		"read-write, elsewhere":   {[]string{"--mount-rw", "~/lent:/mnt/lent"}, "/mnt/lent"},
		"what is the user's own":  {nil, "~/.claude/skills/lent"},
		"on a branch":             {[]string{"--branch", "b", "--mount-ro", "~/lent"}, "~/lent"},
		"read-only, in its place": {[]string{"--mount-ro", "~/lent", "--mount-ro", "~/lent/conf"}, "~/lent"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.git("project", "init", "-q")
			w.git("project", "commit", "-qm", "x", "--allow-empty")
			lent := "lent"
			if tc.flags == nil {
				lent = ".claude/skills/lent"
				w.write(lent+"/SKILL.md", "# lent\n")
			}
			w.write(lent+"/conf/.env", canary)
			w.folder(lent + "/other")
			l := w.begin(tc.flags...)
			l.watched()
			file := w.path(lent + "/conf/.env")
			for range 3 {
				w.write(lent+"/conf/.env.new", canary)
				must.Do(t, os.Rename(file+".new", file))
				l.until("cat "+tc.at+"/conf/.env", "")
			}
			if said := l.end(); !strings.Contains(said, "conf/.env was replaced outside while the agent worked") {
				t.Error(said)
			}
		})
	}
}
