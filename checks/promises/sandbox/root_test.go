//go:build lab

package sandbox_test

import (
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// Everything that is in a sandbox but the store and processes, with modes,
// owners and targets. A line more in the golden file is something more that an
// agent sees.
func TestNothingIsInsideButWhatIsListed(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, ".bashrc", "")
			w.write(t, "Documents/letter", "")
			got := succeed(t, w.withProbe([]string{"list"}, "--network", tier))
			golden(t, "listing-"+tier+".txt", w.normalListing(got))
		})
	}
}

// ofTheHost are mounts whose mode is the host's affair.
var ofTheHost = regexp.MustCompile(`^\S+ other (/nix/\S+|/etc/ssl/certs/ca-certificates.crt|/usr/share/zoneinfo)`)

// heldBack is where what is held back lies: by the folder that it is held back of, and by the session.
const heldBack = "/run/claudebox/held"

var session = regexp.MustCompile(`/\.held/[A-Z2-7]{16}\b`)

var loader = regexp.MustCompile(`/lib64?/ld-linux[a-z0-9_.-]*`)

// normalListing leaves out the folders that lead to the home, and the time zones, and writes ids as
// words.
func (w *world) normalListing(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		path := strings.TrimSuffix(strings.SplitN(line, " ", 3)[2], "\n")
		if path != "/" && strings.HasPrefix(w.home, path+"/") || strings.HasPrefix(path, "/usr/share/zoneinfo/") {
			continue
		}
		line = strings.Replace(line, fmt.Sprintf(" %d /", os.Getuid()), " USER /", 1)
		line = ofTheHost.ReplaceAllString(strings.Replace(line, " 65534 /", " other /", 1), "HOST other $1")
		line = strings.ReplaceAll(line, fmt.Sprintf("/run/user/%d", os.Getuid()), "/run/user/UID")
		if held, is := strings.CutPrefix(path, heldBack+"/"); is && strings.HasPrefix(w.project, "/"+held+"/") {
			continue
		}
		line = strings.Replace(line, heldBack+w.project, heldBack+"/FOLDER", 1)
		line = session.ReplaceAllString(line, "/.held/SESSION")
		b.WriteString(loader.ReplaceAllString(w.normal(line), "/LIB/LOADER"))
	}
	return b.String()
}

// Outside of these an agent writes nothing. Where it may write but should not
// keep anything, the folder is a tmpfs.
func TestOnlyTheListedPlacesCanBeWritten(t *testing.T) {
	w := newWorld(t)
	w.project = w.folder(t, "src/project")
	script := `
		find / -xdev \( -path /proc -o -path /nix/store \) -prune -o -type d -print >/tmp/all
		find "$HOME" /dev /run/user/* -type d >>/tmp/all || true
		sort -u /tmp/all | while read -r d; do if touch "$d/.t"; then rm "$d/.t"; echo "$d"; fi; done 2>/dev/null
		for d in /nix/store /run/claudebox/nix-upper $(find /run/claudebox/held -type d); do if touch "$d/.t"; then echo "$d"; fi; done 2>/dev/null`
	got := w.inside(t, script)
	want := []string{
		"/dev/shm", "HOME", "HOME/.cache", "HOME/.claude", "HOME/.claudebox", "HOME/.local", "HOME/.local/share",
		"HOME/src/project", "RUNTIME", "/tmp", "/nix/store", "/nix/var", "HELD", // a store of the sandbox's own
	}
	runtime := fmt.Sprintf("/run/user/%d", os.Getuid())
	for line := range strings.Lines(got) {
		line = strings.ReplaceAll(strings.TrimSuffix(w.normal(line), "\n"), runtime, "RUNTIME")
		line = strings.Replace(line, heldBack+"HOME/src/project", "HELD", 1)
		if line = session.ReplaceAllString(line, ""); !contains(want, strings.TrimSuffix(line, "/.held")) && !strings.HasPrefix(line, "HOME/.cache/") {
			t.Errorf("%s can be written", line)
		}
	}
	for _, place := range want {
		if place == "HELD" {
			place = heldBack + w.project
		}
		place = strings.NewReplacer("HOME", w.home, "RUNTIME", runtime).Replace(place)
		if !strings.Contains(got, place+"\n") {
			t.Errorf("%s cannot be written", place)
		}
	}
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// An empty folder of the user's would else be taken for a place to keep work
// in: `git worktree add ../x` must fail, not vanish.
func TestTheFoldersAboveTheProjectCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	w.project = w.folder(t, "src/deep/project")
	w.write(t, "src/deep/other/file", "")
	got := w.inside(t, `touch here; ls -A ../.. ..; for d in .. ../..; do touch $d/x 2>/dev/null && echo "$d written"; done; true`)
	wantEqual(t, got, "..:\nproject\n\n../..:\ndeep\n")
}

// Every tmpfs that an agent can write has a size, so that it cannot take the
// host's memory.
//
// Promise: no rights at all.
func TestEveryWritableTmpfsIsBounded(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `while read -r _ _ _ _ at options rest; do
		case " $rest" in *" - tmpfs "*) case "$options" in rw*) echo "$at ${rest##* }";; esac;; esac
	done </proc/self/mountinfo`)
	if !strings.Contains(got, "/tmp ") {
		t.Errorf("/tmp is none of %q", got)
	}
	for line := range strings.Lines(got) {
		if !strings.Contains(line, "size=") {
			t.Errorf("no size: %s", line)
		}
	}
}

// A9: /dev is a tmpfs of bwrap's, as large as half of the host's memory.
func TestAnAgentFillsTheMemoryByWayOfDev(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `(: >/dev/x || mkdir /dev/y || ln -s x /dev/z) 2>/dev/null || echo held
		df --output=size -k /dev/shm | tail -n1; echo fine >/dev/null; echo fine >/dev/shm/x; test -c /dev/tty; test -w /dev/ptmx; head -c 1 /dev/zero | wc -c`)
	wantEqual(t, got, "held\n  2097152\n1\n")
}

// A9: a fork bomb ends at a limit that counts what is inside alone.
//
// Promise: no rights at all.
func TestProcessesInsideAreLimited(t *testing.T) {
	w := newWorld(t)
	wantEqual(t, w.inside(t, "ulimit -Su; ulimit -Hu; ulimit -Su 1000000 2>/dev/null || echo held"), "16384\n16384\nheld\n")
}

func TestAccountsAreRootTheUserAndNobody(t *testing.T) {
	w := newWorld(t)
	me, err := user.Current()
	must.Do(t, err)
	group, err := user.LookupGroupId(me.Gid)
	must.Do(t, err)
	got := w.normal(w.inside(t, `cat /etc/passwd /etc/group; id -un; id -gn; id -G`))
	wantEqual(t, got, fmt.Sprintf(`root:x:0:0:root:/root:STORE/bin/bash
%[1]s:x:%[2]s:%[3]s::HOME:STORE/bin/bash
nobody:x:65534:65534:nobody:/:/bin/false
root:x:0:
%[4]s:x:%[3]s:
nogroup:x:65534:
%[1]s
%[4]s
`, me.Username, me.Uid, me.Gid, group.Name)+groups(t, me.Gid))
}

// groups are the ids of this process inside: its own, and one for all others,
// which are not mapped.
func groups(t *testing.T, own string) string {
	t.Helper()
	list, err := os.Getgroups()
	must.Do(t, err)
	text := own
	for _, id := range list {
		if strconv.Itoa(id) != own {
			text += " 65534"
		}
	}
	return text + "\n"
}

func TestScriptsOfOtherSystemsRun(t *testing.T) {
	for name, first := range map[string]string{
		"env finds a program on PATH": "#!/usr/bin/env bash",
		"sh":                          "#!/bin/sh",
		"bash":                        "#!/bin/bash",
		"bash below usr":              "#!/usr/bin/bash",
		"sh below usr":                "#!/usr/bin/sh -eu",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script(t, "project/script", first+"\necho it runs\n")
			wantEqual(t, w.inside(t, "./script"), "it runs\n")
		})
	}
}

// The base, from the store and nowhere else.
func TestTheUsualProgramsAreOnPath(t *testing.T) {
	w := newWorld(t)
	programs := "ls bash git curl jq rg fd find grep sed awk diff less which tar gzip nix ,"
	got := w.inside(t, `for p in `+programs+`; do echo "$p $(command -v "$p")"; done; tr : '\n' <<<"$PATH" | grep -v -e '^/nix/store/' -e '^/run/claudebox/bin$' || true`)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != len(strings.Fields(programs)) {
		t.Errorf("on PATH are others than store paths: %s", got)
	}
	for _, line := range lines {
		if _, where, _ := strings.Cut(line, " "); !strings.HasPrefix(where, "/nix/store/") {
			t.Error(line)
		}
	}
}

func TestPackagesOfTheProfileComeFirstInItsOrder(t *testing.T) {
	w := newWorld(t)
	file := w.profile(t, "packages: [hello, python3]")
	path := strings.Split(w.inside(t, `echo "$PATH"; hello; python3 -c 'print(6*7)'`, "--profile", file), "\n")
	dirs := strings.Split(path[0], ":")
	if !strings.Contains(dirs[0], "-hello-") || !strings.Contains(dirs[1], "-python3-") || !strings.Contains(dirs[2], "-coreutils-") {
		t.Errorf("PATH begins with %q", dirs[:3])
	}
	if path[len(path)-2] != "42" {
		t.Errorf("python3 says %q", path[1:])
	}
}
