package project_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
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
	must.Do(t, unix.Mkfifo(w.path("lent/pipe.sh"), 0o600))
	w.write("closed", "secret")
	must.Do(t, os.Link(w.path("closed"), w.path("lent/other.md")))
	var st unix.Stat_t
	must.Do(t, unix.Stat(w.path("closed"), &st))
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
		must.Do(t, err)
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
	must.Do(t, err)
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

// TestALentFileThatChangedIsSearchedAgain: of the same size and with the old time of its content (touch -r), in its
// place or by another file or folder that takes it; and one that came.
func TestALentFileThatChangedIsSearchedAgain(t *testing.T) {
	for name, change := range map[string]func(w world){
		"the file itself": func(w world) { w.write("lent/s/a.py", lentToken) },
		"another file in its place": func(w world) {
			w.write("lent/new", lentToken)
			must.Do(t, os.Rename(w.path("lent/new"), w.path("lent/s/a.py")))
		},
		"another folder in its place": func(w world) {
			w.write("new/a.py", lentToken)
			must.Do(t, os.Rename(w.path("lent/s"), w.path("old")))
			must.Do(t, os.Rename(w.path("new"), w.path("lent/s")))
		},
		"a file that came":          func(w world) { w.write("lent/s/b.py", lentToken) },
		"a file in a folder deeper": func(w world) { w.write("lent/s/t/u/b.py", lentToken) },
		"another name of a secret": func(w world) {
			w.write("secret", strings.Repeat("y", len(lentToken)))
			must.Do(t, os.Link(w.path("secret"), w.path("lent/s/b.py")))
		},
		"another name in its place": func(w world) {
			must.Do(t, os.Remove(w.path("lent/s/a.py")))
			w.write("secret", strings.Repeat("x", len(lentToken)))
			must.Do(t, os.Link(w.path("secret"), w.path("lent/s/a.py")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("lent/s/a.py", strings.Repeat("x", len(lentToken)))
			w.write("lent/s/t/u/plain", "")
			info, err := os.Stat(w.path("lent/s/a.py"))
			must.Do(t, err)
			folder, err := os.Stat(w.path("lent/s"))
			must.Do(t, err)
			if n := len(w.lookLent(true).Secrets); n != 0 {
				t.Fatalf("%d secrets before", n)
			}
			change(w)
			must.Do(t, os.Chtimes(w.path("lent/s/a.py"), info.ModTime(), info.ModTime()))
			if now, err := os.Stat(w.path("lent/s")); err == nil && !now.ModTime().Equal(folder.ModTime()) {
				must.Do(t, os.Chtimes(w.path("lent/s"), folder.ModTime(), folder.ModTime()))
			}
			if found := w.lookLent(true); len(found.Secrets) != 1 {
				t.Errorf("found %+v", found.Secrets)
			}
		})
	}
}

// lookLent looks through the folder lent, with a cache, and looks again until that has what was found. What has another
// name is a secret.
func (w world) lookLent(all bool) (found project.LentFound) {
	w.t.Helper()
	q := project.LentQuestion{
		Shown: func(string) bool { return false }, All: all, Cache: w.path("cache"), Build: "1",
		Named: func(homelink.Inode) string { return "another name" },
	}
	for round := range 10 { // what was written in this very moment is not kept
		now, err := project.LookLent(w.path("lent"), q)
		must.Do(w.t, err)
		if round == 0 {
			found = now
		}
		time.Sleep(5 * time.Millisecond)
	}
	return found
}

// TestALinkIsSeenInALentFolderThatWasLookedThrough: a folder that was one becomes a link, and what it leads to is not
// looked at.
func TestALinkIsSeenInALentFolderThatWasLookedThrough(t *testing.T) {
	w := newWorld(t)
	w.write("lent/s/a.py", "x")
	w.write("outside/a.py", lentToken)
	w.link("s", "lent/first")
	if found := w.lookLent(true); !slices.Equal(found.Links, []string{"first"}) {
		t.Errorf("at first: %q", found.Links)
	}
	must.Do(t, os.Rename(w.path("lent/s"), w.path("old")))
	w.link(w.path("outside"), "lent/s")
	if found := w.lookLent(true); !slices.Equal(found.Links, []string{"first", "s"}) || len(found.Secrets) > 0 {
		t.Errorf("then: links %q, secrets %+v", found.Links, found.Secrets)
	}
}

// TestWhatOneQuestionFoundIsNoAnswerToAnother: a folder that was mounted is of the user's own set-up now, and what
// was shown is not any more.
func TestWhatOneQuestionFoundIsNoAnswerToAnother(t *testing.T) {
	w := newWorld(t)
	w.write("lent/auth.json", `{"x":{"type":"oauth","refresh":"Zq3vK9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiOtYbN"}}`)
	w.write("lent/b", lentToken)
	q := project.LentQuestion{Shown: func(string) bool { return true }, All: true, Cache: w.path("cache"), Build: "1"}
	if _, err := project.LookLent(w.path("lent"), q); err != nil {
		t.Fatal(err)
	}
	for _, all := range []bool{false, true} {
		if found := w.lookLent(all); len(found.Secrets) != 1 && !all || len(found.Secrets) != 2 && all {
			t.Errorf("all %t: %+v", all, found.Secrets)
		}
	}
}

// TestALentFileByItselfIsSearchedAgain: what was found in it is kept, too.
func TestALentFileByItselfIsSearchedAgain(t *testing.T) {
	w := newWorld(t)
	q := project.LentQuestion{Shown: func(string) bool { return false }, All: true, Cache: w.path("cache"), Build: "1"}
	w.write("lent/a.py", strings.Repeat("x", len(lentToken)))
	for _, want := range []int{0, 1} {
		for range 10 {
			found, err := project.LookLent(w.path("lent/a.py"), q)
			if err != nil || len(found.Secrets) != want {
				t.Fatalf("%+v, %v; want %d", found, err, want)
			}
			time.Sleep(5 * time.Millisecond)
		}
		w.write("lent/a.py", lentToken)
	}
}

// TestAFileThatCannotBeSearchedDoesNotEnter: an agent could have taken all descriptors that this machine has.
func TestAFileThatCannotBeSearchedDoesNotEnter(t *testing.T) {
	w := newWorld(t)
	w.write("lent", strings.Repeat("x", len(lentToken)))
	q := project.LentQuestion{Shown: func(string) bool { return false }, All: true}
	var before unix.Rlimit
	must.Do(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	next, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	must.Do(t, err)
	unix.Close(next)
	few := before
	few.Cur = uint64(next + 1) // the folder alone
	must.Do(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	found, err := project.LookLent(w.path("lent"), q)
	must.Do(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	if err != nil || len(found.Secrets) != 1 || !strings.Contains(found.Secrets[0].What, "searched") {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestALentFileThatCameSinceTheFolderWasWalkedDoesNotEnter: a launch that fetches packages first takes minutes.
func TestALentFileThatCameSinceTheFolderWasWalkedDoesNotEnter(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		wait time.Duration
	}{
		"in the folder itself, at once": {"b", 0},
		"in a folder in it, later":      {"s/b", 150 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("lent/s/a", "x")
			q := project.LentQuestion{Shown: func(string) bool { return false }, All: true, Cache: w.path("cache"), Build: "1"}
			q.Walked = project.WalkLent(w.path("lent"), q)
			w.write("lent/"+tc.file, lentToken)
			time.Sleep(tc.wait)
			if found, err := project.LookLent(w.path("lent"), q); err != nil || len(found.Secrets) != 1 {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// TestADamagedCacheOfALentFolderIsNotBelieved: one bit in it would make a secret file plain.
func TestADamagedCacheOfALentFolderIsNotBelieved(t *testing.T) {
	w := newWorld(t)
	w.write("lent/a", lentToken)
	w.write("lent/b", "x")
	w.write("other/a", strings.Repeat("x", len(lentToken)))
	q := project.LentQuestion{Shown: func(string) bool { return false }, All: true, Cache: w.path("cache"), Build: "1"}
	w.lookLent(true)
	caches, err := os.ReadDir(w.path("cache"))
	must.Do(t, err)
	if len(caches) != 1 {
		t.Fatalf("%d files in the cache", len(caches))
	}
	file := w.path("cache/" + caches[0].Name())
	whole, err := os.ReadFile(file)
	must.Do(t, err)
	if _, err := project.LookLent(w.path("other"), q); err != nil {
		t.Fatal(err)
	}
	look := func(what string) {
		t.Helper()
		if found, err := project.LookLent(w.path("lent"), q); err != nil || len(found.Secrets) != 1 {
			t.Fatalf("%s: %+v, %v", what, found, err)
		}
	}
	for n := range whole {
		for _, bit := range []byte{1, 0x80} {
			damaged := slices.Clone(whole)
			damaged[n] ^= bit
			must.Do(t, os.WriteFile(file, damaged, 0o600))
			look("a bit of a byte")
		}
		must.Do(t, os.WriteFile(file, whole[:n], 0o600))
		look("a part")
	}
	caches, err = os.ReadDir(w.path("cache"))
	must.Do(t, err)
	for _, entry := range caches {
		if other := w.path("cache/" + entry.Name()); other != file {
			content, err := os.ReadFile(other)
			must.Do(t, err, os.WriteFile(file, content, 0o600))
			look("that of another folder")
		}
	}
}
