//go:build lab

package doctor_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

func TestNothingIsWrongInTheLab(t *testing.T) {
	w := newWorld(t)
	before := listing(t, w.home)
	r := w.run(t, "check", "--format", "json")
	list := r.findings(t)
	if failed := of(list, "failed"); r.status != 0 || len(failed) > 0 || r.stderr != "" {
		t.Errorf("status %d, %v, %q", r.status, failed, r.stderr)
	}
	for _, name := range []string{
		"profile", "project", "state", "agent", "git", "mounts", "launch", "kernel", "user namespaces", "bwrap",
		"store", "sandbox", "nix daemon", "state folder", "confirmation",
	} {
		if !slices.ContainsFunc(of(list, "ok"), func(f finding) bool { return f.Name == name }) {
			t.Errorf("%q is not ok in %+v", name, list)
		}
	}
	if after := listing(t, w.home); after != before {
		t.Errorf("the check changed the home:\n%s\nbefore:\n%s", after, before)
	}
	if r := w.run(t, "-c", "exit 42"); r.status != 42 {
		t.Errorf("the launch that was checked: %+v", r)
	}
}

func TestEachSecretIsSaidWithWhereItMayGo(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "OUT_TOKEN=0123456789", "IN_TOKEN=abcdefghijklm")
	profile := filepath.Join(w.home, "secrets.yaml")
	text := labProfile + "secrets:\n- {env: OUT_TOKEN, hosts: [a.example, b.example]}\n- {env: IN_TOKEN, hosts: [a.example], secret: inside}\n"
	must.Write(t, profile, text)
	list := w.run(t, "check", "--format", "json", "--profile", profile).findings(t)
	for level, want := range map[string]string{
		"ok": "OUT_TOKEN stays outside, for a.example, b.example", "warning": "IN_TOKEN can be read inside",
	} {
		if !slices.ContainsFunc(of(list, level), func(f finding) bool { return f.Name == "secrets" && strings.Contains(f.Detail, want) }) {
			t.Errorf("not said: %s: %+v", want, list)
		}
	}
}

// fault is something broken on purpose.
type fault struct {
	script  string // breaks it, with rights over mounts and limits
	name    string // of the finding
	detail  string // in it, and in what a launch says
	says    string // what a launch says, when that is something else
	remedy  string // of both
	without string // a finding that must not be there
	also    string // a finding that the same fault leads to
	untold  bool   // bwrap takes it for the agent's own failure, so a launch has no remedy
}

func faults(t *testing.T) map[string]fault {
	bwrap, env := trial.Tool(t, "bwrap"), trial.Tool(t, "env")
	over := func(target, make string) string {
		return "mount -t tmpfs none /mnt\n" + make + "\nmount --bind /mnt/it " + target
	}
	script := func(text string) string {
		return "printf '%s\\n' '#!/bin/sh' " + text + " >/mnt/it\nchmod 755 /mnt/it"
	}
	return map[string]fault{
		"user namespaces are forbidden": {
			script: "echo 0 >/proc/sys/user/max_user_namespaces",
			name:   "user namespaces", detail: "this is a sandbox or a container already, and it forbids further ones",
			remedy: "run claudebox outside of it", without: "sandbox",
		},
		"bwrap is setuid": {
			script: over(bwrap, "cp "+bwrap+" /mnt/it\nchmod 4755 /mnt/it"),
			name:   "bwrap", detail: "it is setuid", remedy: "sudo chmod ug-s", without: "sandbox",
		},
		"bwrap is too old": {
			script: over(bwrap, script(`'[ "$1" != --version ] || echo bubblewrap 0.7.0' '[ "$1" != --args ]'`)),
			name:   "bwrap", detail: "version 0.7.0 is too old", remedy: "use the claudebox that its flake builds", without: "sandbox",
		},
		"bwrap is gone": {
			script: "mount -t tmpfs none " + filepath.Dir(bwrap),
			name:   "bwrap", detail: "no such file", remedy: "nix-store --realise " + filepath.Dir(filepath.Dir(bwrap)), without: "sandbox", also: "store",
		},
		"bwrap cannot be run": {
			script: over(bwrap, ": >/mnt/it"),
			name:   "bwrap", detail: "it is not a program", remedy: "use the claudebox that its flake builds", without: "sandbox",
		},
		"bwrap fails": {
			script: over(bwrap, script(`'case $1 in --version|--help) exec `+"/mnt/real"+` "$@"; esac' 'echo bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted >&2' 'exit 1'`)+"\ncp "+bwrap+" /mnt/real"),
			name:   "sandbox", detail: "RTM_NEWADDR", remedy: "run claudebox outside of it",
		},
		"what the store holds cannot be run": {
			script: over(env, ": >/mnt/it"),
			name:   "sandbox", detail: "execvp", remedy: "install claudebox again", untold: true,
		},
		"no file can be watched": {
			script: "echo 0 >/proc/sys/user/max_inotify_instances",
			name:   "launch", detail: "watch over what is covered", remedy: "fs.inotify.max_user_instances",
		},
		"git cannot read the project's repository": {
			script: "cd $HOME/project && git init -q . && echo '[' >>.git/config",
			name:   "launch", detail: "bad config line", remedy: "see whether `git fsck`",
		},
		"the disk is full": {
			script: "mkdir -p $HOME/.claudebox\nmount -t tmpfs -o size=64k,mode=700 none $HOME/.claudebox\ncat /dev/zero >$HOME/.claudebox/fill 2>/dev/null || :",
			name:   "state folder", detail: "is full", says: "no space left on device", remedy: "set CLAUDEBOX_HOME",
		},
		"the state folder cannot be written": {
			script: "mkdir -p $HOME/.claudebox\nmount -t tmpfs -o ro,mode=700 none $HOME/.claudebox",
			name:   "state folder", detail: "read-only file system", remedy: "set CLAUDEBOX_HOME",
		},
	}
}

// Each fault is the only one that a check finds, and a launch says the same
// of it.
//
// Promise: what cannot be set up stops the launch.
func TestEachFaultIsNamedWithItsRemedy(t *testing.T) {
	for name, f := range faults(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.runBroken(t, f.script, "check", "--format", "json")
			f.expect(t, r, r.findings(t))
			f.expectLaunch(t, w.runBroken(t, f.script, "shell", "--yes", "--", "bash", "-c", "echo inside"))
		})
	}
}

// expect looks for the fault among the findings, and for nothing else.
func (f fault) expect(t *testing.T, r result, list []finding) {
	t.Helper()
	if r.status != 125 {
		t.Errorf("status %d; want 125", r.status)
	}
	found := false
	for _, got := range of(list, "failed") {
		switch {
		case got.Name == f.name:
			found = strings.Contains(got.Detail, f.detail) && strings.Contains(got.Remedy, f.remedy)
		case got.Name == f.also || got.Name == foreign:
		default:
			t.Errorf("%+v is wrong as well", got)
		}
	}
	if !found {
		t.Errorf("got %+v; want %q with %q, remedy %q", of(list, "failed"), f.name, f.detail, f.remedy)
	}
	if slices.ContainsFunc(list, func(got finding) bool { return got.Name == f.without }) {
		t.Errorf("%q was looked at", f.without)
	}
}

// expectLaunch looks for the same words from a launch.
func (f fault) expectLaunch(t *testing.T, r result) {
	t.Helper()
	says, remedy := cmp.Or(f.says, f.detail), "claudebox: remedy: "
	if f.untold {
		remedy, f.remedy = "", ""
	}
	if r.status != 125 || r.stdout != "" || !strings.Contains(r.stderr, says) ||
		!strings.Contains(r.stderr, remedy) || !strings.Contains(r.stderr, f.remedy) {
		t.Errorf("a launch: %+v; want 125, %q, remedy %q", r, says, f.remedy)
	}
}

func TestAHomeThatCannotBeWrittenIsNamed(t *testing.T) {
	w := newWorld(t)
	must.Do(t, os.Chmod(w.home, 0o500))
	t.Cleanup(func() { os.Chmod(w.home, 0o700) })
	r := w.run(t, "check", "--format", "json")
	failed := of(r.findings(t), "failed")
	if r.status != 125 || len(failed) != 1 || failed[0].Name != "state folder" || !strings.Contains(failed[0].Remedy, "CLAUDEBOX_HOME") {
		t.Errorf("status %d, %+v", r.status, failed)
	}
	launch := w.run(t, "-c", "echo inside")
	if launch.status != 125 || launch.stdout != "" || !strings.Contains(launch.stderr, "CLAUDEBOX_HOME") {
		t.Errorf("a launch: %+v", launch)
	}
}

// What is wrong in several places is found in one run.
func TestIndependentFaultsAreFoundInOneRun(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "NIX_DAEMON_SOCKET_PATH="+w.home+"/socket", "CLAUDEBOX_PROFILE=./wrong.yaml")
	must.Write(t, filepath.Join(w.project, "wrong.yaml"), "name: wrong\npakages: []\nnetwork: nowhere\n")
	r := w.runBroken(t, faults(t)["user namespaces are forbidden"].script+"\n"+faults(t)["bwrap is gone"].script, "check", "--format", "json")
	list := r.findings(t)
	var names []string
	for _, f := range of(list, "failed") {
		names = append(names, f.Name)
	}
	got := strings.Join(names, ", ")
	expect.Contains(t, got, "profile, profile", "user namespaces", "bwrap")
	if warned := of(list, "warning"); len(warned) == 0 || warned[0].Name != "nix daemon" {
		t.Errorf("no word of the daemon: %+v", warned)
	}
}

func TestAnOlderBwrapIsAWarning(t *testing.T) {
	w := newWorld(t)
	bwrap := trial.Tool(t, "bwrap")
	script := "mount -t tmpfs none /mnt\ncp " + bwrap + " /mnt/real\nprintf '%s\\n' '#!/bin/sh' " +
		`'case $1 in --version) echo bubblewrap 0.11.2; exit;; esac' 'exec /mnt/real "$@"'` +
		" >/mnt/it\nchmod 755 /mnt/it\nmount --bind /mnt/it " + bwrap
	r := w.runBroken(t, script, "check", "--format", "json")
	warned := of(r.findings(t), "warning")
	if len(warned) == 0 || warned[0].Name != "bwrap" || !strings.Contains(warned[0].Detail, "CVE-2026-87766") {
		t.Errorf("status %d, %+v", r.status, warned)
	}
}

// From inside, a check says why there is no second sandbox.
func TestASandboxWithinASandboxIsExplained(t *testing.T) {
	w := newWorld(t)
	must.Program(t, filepath.Join(w.project, "claudebox"), must.Read(t, trial.Binary(t)))
	r := w.run(t, "-c", "./claudebox check --format json --profile default")
	var found bool
	for _, f := range of(r.findings(t), "failed") {
		found = found || f.Name == "user namespaces" && strings.Contains(f.Remedy, "outside")
	}
	if r.status != 125 || !found {
		t.Errorf("%+v", r)
	}
}

// What tier inet needs is judged where a launch would be in it, and told of
// where not.
func TestEachFaultOfTierInetIsNamedWithItsRemedy(t *testing.T) {
	helper := filepath.Join(filepath.Dir(filepath.Dir(os.Getenv("CLAUDEBOX_BIN"))), "libexec/claudebox-network")
	for name, f := range map[string]fault{
		"the network helper is gone": {
			script: "mount -t tmpfs none " + filepath.Dir(helper),
			name:   "network helper", detail: "no such file", remedy: "install claudebox again", without: "sandbox",
		},
		"the network helper fails": {
			script: "mount -t tmpfs none /mnt\nprintf '#!/bin/sh\\nexit 1\\n' >/mnt/it\nchmod 755 /mnt/it\nmount --bind /mnt/it " + helper,
			name:   "sandbox", detail: "", remedy: "",
		},
		"the network helper ends at once": {
			script: "mount --bind $(dirname $(command -v realpath))/false " + helper,
			name:   "sandbox", detail: "", remedy: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.runBroken(t, f.script, "check", "--network", "inet", "--format", "json")
			f.expect(t, r, r.findings(t))
			f.expectLaunch(t, w.runBroken(t, f.script, "shell", "--yes", "--network", "inet", "--", "bash", "-c", "echo inside"))
			list := w.runBroken(t, f.script, "check", "--network", "none", "--format", "json").findings(t)
			if slices.ContainsFunc(of(list, "failed"), func(got finding) bool { return got.Name != foreign && got.Name != f.also }) {
				t.Errorf("without tier inet: %+v", of(list, "failed"))
			}
		})
	}
}
