package git_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/realgit"
	"claudebox/internal/workspace/git"
)

// index makes a real one of a version, with some files in it.
func index(t testing.TB, version string) []byte {
	t.Helper()
	dir := t.TempDir()
	realgit.Do(t, dir, nil, "init", "-q")
	for _, name := range []string{".envrc", "a/b/c", "a/b/d", "a-b", "ab", "z"} {
		must.Write(t, filepath.Join(dir, name), "")
	}
	realgit.Do(t, dir, nil, "add", "-A")
	realgit.Do(t, dir, nil, "update-index", "--index-version", version)
	content, err := os.ReadFile(filepath.Join(dir, ".git/index"))
	must.Do(t, err)
	return content
}

func TestScanSeesEveryName(t *testing.T) {
	want := []string{".envrc", "a-b", "a/b/c", "a/b/d", "ab", "z"}
	for _, version := range []string{"2", "4"} {
		var got []string
		for e := range git.ScanIndex(index(t, version), 20) {
			const empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
			if e.Mode != 0o100644 || hex.EncodeToString(e.Sum) != empty {
				t.Errorf("%s has mode %o and object %x", e.Name, e.Mode, e.Sum)
			}
			got = append(got, string(e.Name))
		}
		if !slices.Equal(got, want) {
			t.Errorf("version %s: got %q, want %q", version, got, want)
		}
	}
}

// FuzzScan holds the reader to: every name seen stands in the index, piece by
// piece, and what is cut gives no more than the whole.
func FuzzScan(f *testing.F) {
	for _, version := range []string{"2", "3", "4"} {
		f.Add(index(f, version), 20, 40)
		f.Add(index(f, version), 32, 1000)
	}
	f.Fuzz(func(t *testing.T, content []byte, hash, cut int) {
		if hash != 32 {
			hash = 20
		}
		scan := func(content []byte) (names []string) {
			for e := range git.ScanIndex(content, hash) {
				names = append(names, string(e.Name))
			}
			return names
		}
		whole := scan(content)
		if cut = max(0, min(cut, len(content))); len(scan(content[:cut])) > len(whole) {
			t.Error("the part holds more than the whole")
		}
		for _, name := range whole {
			if name != "" && !bytes.Contains(content, []byte(name[len(name)-1:])) {
				t.Errorf("saw %q, which is not in it", name)
			}
		}
	})
}
