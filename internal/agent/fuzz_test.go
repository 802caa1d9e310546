package agent_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	"claudebox/internal/agent"
	"claudebox/internal/diag"
)

// tooMuch are folders that no program may bring in whole.
var tooMuch = []string{"/", "/home", "/home/u", "/home/u/.local", "/home/u/.local/bin", "/home/u/.local/share", "/usr", "/usr/bin", "/nix", "/run", "/etc"}

// Whatever a program's file holds, it brings in itself, the host's library
// folders and single files, read-only; or the error says why not.
func FuzzFindMountsLittle(f *testing.F) {
	for _, seed := range []string{
		program(loader64, "$ORIGIN:/usr/bin:/home/u"), program("", ""), program("/", "/"), program("/home/u", ""),
		program("/home/u/.ssh/id", ""), program(loader64, "/home/u/.ssh"), program(loader64, "/proc/self"), "#!/home/u/.ssh/id\n",
		"#!/usr/bin/env -S node -x\n", "#!/bin/sh\nexec \"/home/u\" \"$@\"\n", "#!/home/u/.local\n", "#!/usr/bin/node\n", "#!", "\x7fELF",
	} {
		f.Add(seed)
	}
	host := debian(map[string]string{
		"/usr/bin/node": program("", ""), "/usr/lib/libx.so": "x",
		"/home/u/.ssh/id": "secret", "/home/u/.ssh/libx.so": "secret", "/proc/self/libx.so": program("", ""),
	})
	f.Fuzz(func(t *testing.T, content string) {
		if content == "" || strings.HasPrefix(content, "->") {
			t.Skip("the test's words for a folder and a link")
		}
		r := request(nil)
		r.Files = newTree(merge(host, installed(content)), nil)
		got, err := agent.Find(r)
		var e *diag.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%v is not a diag.Error", err)
		}
		for _, m := range got.Mounts {
			holds(t, m)
		}
		if err == nil && (!path.IsAbs(got.Path) || strings.Contains(got.Path, "=")) {
			t.Errorf("path %q", got.Path)
		}
	})
}

func holds(t *testing.T, m agent.Mount) {
	t.Helper()
	for _, secret := range []string{"/home/u/.ssh", "/proc"} {
		if strings.HasPrefix(m.Source, secret) {
			t.Errorf("%s enters, because the program named it", m.Source)
		}
	}
	for _, folder := range tooMuch {
		if !m.Link && path.Clean(m.Source) == folder {
			t.Errorf("%s of the host enters as a whole", folder)
		}
	}
}
