package gitindex_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"claudebox/internal/gitindex"
)

// index makes a real one of a version, with some files in it.
func index(t testing.TB, version string) []byte {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("NOT RUN: needs git on PATH")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	for _, name := range []string{".envrc", "a/b/c", "a/b/d", "a-b", "ab", "z"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("add", "-A")
	run("update-index", "--index-version", version)
	content, err := os.ReadFile(filepath.Join(dir, ".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestTracked(t *testing.T) {
	for name, tc := range map[string]struct {
		prefix string
		places []string
		want   map[string]bool
	}{
		"a file":                          {"", []string{".envrc"}, map[string]bool{".envrc": true}},
		"a folder with something in it":   {"", []string{"a"}, map[string]bool{"a": true}},
		"a folder below":                  {"", []string{"a/b"}, map[string]bool{"a/b": true}},
		"a name that only begins so":      {"", []string{".env", "a/b/", "a-"}, map[string]bool{}},
		"nothing asked":                   {"", nil, map[string]bool{}},
		"the last name":                   {"", []string{"z"}, map[string]bool{"z": true}},
		"below a folder of the tree":      {"a/", []string{"b", "z"}, map[string]bool{"b": true}},
		"below a deeper one":              {"a/b/", []string{"d", "c", "e"}, map[string]bool{"c": true, "d": true}},
		"below one that holds nothing":    {"q/", []string{"b"}, map[string]bool{}},
		"several at once, in no order":    {"", []string{"z", "ab", "nothing", "a-b"}, map[string]bool{"z": true, "ab": true, "a-b": true}},
		"a file taken for a folder is no": {"", []string{"z/y"}, map[string]bool{}},
	} {
		for _, version := range []string{"2", "4"} {
			t.Run(name+", version "+version, func(t *testing.T) {
				got, err := gitindex.Tracked(bytes.NewReader(index(t, version)), 20, tc.prefix, tc.places)
				if err != nil || !maps.Equal(got, tc.want) {
					t.Errorf("got %v, %v; want %v", got, err, tc.want)
				}
			})
		}
	}
}

// FuzzTracked holds the reader to: what is said to be tracked was asked for.
func FuzzTracked(f *testing.F) {
	for _, version := range []string{"2", "3", "4"} {
		f.Add(index(f, version), "", 20)
		f.Add(index(f, version), "a/", 32)
	}
	f.Fuzz(func(t *testing.T, content []byte, prefix string, hash int) {
		if hash != 32 {
			hash = 20
		}
		places := []string{".envrc", "a", "z"}
		found, _ := gitindex.Tracked(bytes.NewReader(content), hash, prefix, places)
		if len(found) > len(places) {
			t.Errorf("found %v", found)
		}
		for place := range found {
			if !bytes.Contains(content, []byte(place[:1])) {
				t.Errorf("found %q, which is not in it", place)
			}
		}
	})
}
