package project_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/project"
)

const lentToken = "ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO"

// utf16 has a zero byte behind each letter.
func utf16(text string) string { return strings.Join(strings.Split(text, ""), "\x00") + "\x00" }

// TestATokenInAScriptOfALentFolder: whatever the file is called, and wherever in it the token stands; what only looks
// like one enters.
//
// Promise: no secret place.
func TestATokenInAScriptOfALentFolder(t *testing.T) {
	w := newWorld(t)
	far := strings.Repeat("x = 1  # nothing\n", 1<<18) // some pieces of a search
	for name, content := range map[string]string{
		"a.sh": "#!/bin/sh\ncurl -H 'Authorization: token " + lentToken + "' x\n", "b.py": "T = '" + lentToken + "'\n", "c.js": `const t="` + lentToken + `"`,
		"d.min.js": strings.Repeat("a=1;", 50_000) + "t='" + lentToken + "';" + strings.Repeat("b=2;", 50_000), "e.go": "// " + lentToken, "f": lentToken,
		"g.pyc": "\x7fELF\x00\x00\x01" + lentToken + "\x00\x00tail", "h.exe": "MZ\x00\x00" + utf16("x "+lentToken+" y"), "i.rb": far + lentToken, "j.key": "x",
		"k.pl": "$k = '-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("kZ3vQ9xB7mT1wR5n", 4) + "';", "sub/deep/l.ts": "//" + lentToken, ".env": "A=b",
		"m.sh": strings.Repeat("#", 1<<20-20) + " " + lentToken + "\n", // between two pieces
	} {
		w.write("lent/"+name, content)
	}
	for name, content := range map[string]string{
		"plain.py": "T = os.environ['T']  # sk-ant-..., ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "SKILL.md": "-H 'Authorization: Bearer your_access_token'\n",
		"scan.js":   `if (text.includes("-----BEGIN PRIVATE KEY-----")) fail("-----END PRIVATE KEY----- is in it, and that is a private key")`,
		"manual.rb": "connect 'postgres://app:secret@localhost/db'\n", "empty": "", "tool": "\x7fELF\x00\x00" + far,
		"node_modules/dep/index.js": "// " + lentToken,
	} {
		w.write("lent/"+name, content)
	}
	if err := unix.Mkfifo(w.path("lent/pipe.sh"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.write("closed", "secret")
	if err := os.Link(w.path("closed"), w.path("lent/other.md")); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(w.path("closed"), &st); err != nil {
		t.Fatal(err)
	}
	q := project.LentQuestion{
		Shown: func(rel string) bool { return rel == "shown" }, All: true, Cache: w.path("cache"), Build: "1",
		Named: func(i homelink.Inode) string {
			if i == (homelink.Inode{Dev: st.Dev, Ino: st.Ino}) {
				return "another name of closed"
			}
			return ""
		},
	}
	want := strings.Fields(".env a.sh b.py c.js d.min.js e.go f g.pyc h.exe i.rb j.key k.pl m.sh other.md sub/deep/l.ts")
	for _, round := range []string{"first", "from the cache"} {
		found, err := project.LookLent(w.path("lent"), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range found.Secrets {
			got = append(got, l.Rel)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || !slices.Equal(found.Addresses, []string{"manual.rb"}) || len(found.Large) > 0 {
			t.Errorf("%s: got %q, want %q; addresses %q, too large %q", round, got, want, found.Addresses, found.Large)
		}
	}
	found, err := project.LookLent(w.path("lent/b.py"), q)
	if err != nil || len(found.Secrets) != 1 || found.Secrets[0].What != "a GitHub personal token" {
		t.Errorf("a file by itself: %+v, %v", found, err)
	}
}

// TestALoginInALentFileOfAnyName: what tools keep of a login has no known shape, and the file no name that tells. The
// folder of a marketplace may be any of the user's.
func TestALoginInALentFileOfAnyName(t *testing.T) {
	w := newWorld(t)
	const random = "Zq3vK9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiOtYbN"
	want := map[string]string{
		"google.json": `{"access_token":"ya29.` + random + `","refresh_token":"1//0` + random + `"}`, "c": "oauth_token = \"" + random + "\"\n",
		"opencode.json": `{"x":{"type":"oauth","refresh":"` + random + `"}}`, "config.json": `{"auths":{"https://index.docker.io/v1/":{"auth":"bWU6c2VzYW1l"}}}`,
		"cluster.yaml": "users:\n- user:\n    client-key-data: " + random + "\n", "n.txt": "machine github.com\n login me\n password sesame\n",
		"auth.json": `{"x":{"type":"oauth","refresh":"` + random + `"}}`,
	}
	for name, content := range want {
		w.write("lent/"+name, content)
	}
	for name, content := range map[string]string{
		"lock.json": `{"integrity":"sha512-` + random + `","key":"` + random + `","author":"` + random + `"}`, "code.py": `access_token = "` + random + `"`,
		"form.yaml": "access_token: ${TOKEN}\nclient_secret: your-client-secret-of-the-console-2026\nauth: bearer\nmax_tokens: 4096\n",
	} {
		w.write("lent/"+name, content)
	}
	found, err := project.LookLent(w.path("lent"), project.LentQuestion{Shown: func(string) bool { return false }, All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found.Secrets {
		if want[l.Rel] == "" {
			t.Errorf("%s does not enter: %s", l.Rel, l.What)
		}
		delete(want, l.Rel)
	}
	for name := range want {
		t.Errorf("%s enters", name)
	}
}

// TestALentFileThatChangedIsSearchedAgain: the same size, and the old time of its content (touch -r).
func TestALentFileThatChangedIsSearchedAgain(t *testing.T) {
	w := newWorld(t)
	w.write("lent/a.py", strings.Repeat("x", len(lentToken)))
	q := project.LentQuestion{Shown: func(string) bool { return false }, All: true, Cache: w.path("cache"), Build: "1"}
	look := func() int {
		t.Helper()
		found, err := project.LookLent(w.path("lent"), q)
		if err != nil {
			t.Fatal(err)
		}
		return len(found.Secrets)
	}
	kept := func() int {
		files, _ := filepath.Glob(w.path("cache/*"))
		return len(files)
	}
	info, err := os.Stat(w.path("lent/a.py"))
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 { // a file that was written in this very moment is not kept
		if look(); kept() > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if n := look(); n != 0 || kept() != 1 {
		t.Fatalf("%d secrets, %d caches", n, kept())
	}
	w.write("lent/a.py", lentToken)
	if err := os.Chtimes(w.path("lent/a.py"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if look() != 1 {
		t.Error("the token is not seen")
	}
}
