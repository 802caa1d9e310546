package git_test

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/internal/workspace/git"
)

// Whatever git itself writes stays: each way of its own to write an index is tried.
func TestEveryIndexThatGitWritesIsLegal(t *testing.T) {
	many := `for i in $(seq 300); do mkdir -p d$i; for j in $(seq 70); do echo $i >d$i/f$j; done; done; git add .`
	for name, tc := range map[string]struct {
		script string
		want   git.IndexKind
		size   int
	}{
		"an empty one":      {`git read-tree --empty`, git.IndexKind{}, 20},
		"version 2":         {`echo x >a; mkdir -p s/t; echo y >s/t/.x; git add .; git update-index --index-version 2`, git.IndexKind{}, 20},
		"version 4":         {`echo x >a; echo y >ab; git add .; git update-index --index-version 4`, git.IndexKind{}, 20},
		"a long name":       {`n=$(printf %03920d 0 | sed 's/0\{200\}/&\//g'); echo x >f; git update-index --index-version 4 --add --cacheinfo 100644,$(git hash-object -w f),$n$(printf %0150d 0)`, git.IndexKind{}, 20},
		"intent to add":     {`echo x >a; git add -N a; echo y >b; git add b; git update-index --skip-worktree b`, git.IndexKind{}, 20},
		"links and a tree":  {`ln -s / l; echo x >run; chmod +x run; git add .; git commit -qm x; git init -q sub; git -C sub commit -qm x --allow-empty; git add sub 2>&1`, git.IndexKind{}, 20},
		"a conflict":        {`echo x >a; git add a; git commit -qm x; git checkout -q -b o; echo y >a; git commit -qam y; git checkout -q main; echo z >a; git commit -qam z; git merge o; true`, git.IndexKind{}, 20},
		"a conflict ended":  {`echo x >a; git add a; git commit -qm x; git checkout -q -b o; echo y >a; git commit -qam y; git checkout -q main; echo z >a; git commit -qam z; git merge o; git add a`, git.IndexKind{}, 20},
		"untracked cache":   {`echo x >a; git add a; git update-index --force-untracked-cache; git status`, git.IndexKind{}, 20},
		"blocks":            {`git config index.threads 2; ` + many, git.IndexKind{}, 20},
		"blocks, 4":         {`git config index.threads 2; git config index.version 4; ` + many, git.IndexKind{}, 20},
		"no sum at its end": {`git config index.skipHash true; echo x >a; git add a`, git.IndexKind{}, 20},
		"a split one":       {`echo x >a; git add a; git update-index --split-index; echo y >a; echo z >b; git add .`, git.IndexKind{Split: true}, 20},
		"a sparse one":      {`mkdir s t; echo x >s/a; echo y >t/b; git add .; git commit -qm x; git sparse-checkout set --cone --sparse-index s`, git.IndexKind{Sparse: true}, 20},
		"SHA-256":           {`rm -rf .git; git init -q --object-format=sha256; echo x >a; git add a`, git.IndexKind{}, 32},
	} {
		w := newWorld(t)
		if out, err := w.sh("git init -q && { " + tc.script + "\n}"); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		index, err := os.ReadFile(w.dir + "/p/.git/index")
		must(t, err)
		if kind, ok := git.CheckIndex(index, tc.size); !ok || kind != tc.want {
			t.Errorf("%s: %+v, legal %t; want %+v", name, kind, ok, tc.want)
		}
		if _, ok := git.CheckIndex(index, 52-tc.size); ok && tc.script != `git read-tree --empty` {
			t.Errorf("%s: legal with the other length of object names, too", name)
		}
	}
}

// made is an index of version 2 with entries that git would refuse to add, and what follows them.
func made(blob string, extension string, names ...string) []byte {
	index := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(names)))
	sum, _ := hex.DecodeString(blob)
	for _, name := range names {
		entry := make([]byte, 40)
		binary.BigEndian.PutUint32(entry[24:], 0o100755)
		entry = binary.BigEndian.AppendUint16(append(entry, sum...), uint16(len(name)))
		entry = append(entry, name...)
		index = append(append(index, entry...), make([]byte, 8-len(entry)%8)...)
	}
	index = append(index, extension...)
	end := sha1.Sum(index)
	return append(index, end[:]...)
}

// flagged returns an index with one entry, which has further flags.
func flagged(flags uint16) []byte {
	index := append([]byte("DIRC\x00\x00\x00\x03\x00\x00\x00\x01"), make([]byte, 60)...)
	binary.BigEndian.PutUint32(index[12+24:], 0o100644)
	index = binary.BigEndian.AppendUint16(append(index, 0x40, 1), flags)
	index = append(append(index, 'a'), make([]byte, 7)...)
	end := sha1.Sum(index)
	return append(index, end[:]...)
}

// An agent writes an index by hand: the user's `git restore .` would write a hook and run it, or a file anywhere.
func TestAnIndexThatLeadsElsewhereGoes(t *testing.T) {
	for _, name := range []string{
		".git/hooks/post-checkout", ".GIT/config", "a/.git/config", "../out", "a/../.git/hooks/post-checkout", "/tmp/out", "./a", "a//b", "a/", "git~1/config",
		".git /x", ".git::$INDEX_ALLOCATION/x",
	} {
		w := newWorld(t)
		blob, err := w.sh("git init -q; git commit -qm x --allow-empty; printf '#!/bin/sh\n'\"$EVIL\" | git hash-object -w --stdin")
		must(t, err)
		before := w.look(nil, ".git")
		index := made(strings.TrimSpace(blob), "", name)
		must(t, os.WriteFile(w.dir+"/p/.git/index", index, 0o644))
		w.defuse(before, ".git")
		if _, err := os.Lstat(w.dir + "/p/.git/index"); err == nil {
			t.Errorf("%s stays", name)
		}
		if _, err := w.sh("git restore .; git checkout-index -a -f; git status"); w.taken() {
			t.Errorf("%s: the agent's program ran: %v", name, err)
		}
		if out, err := w.sh("git reset && git status --porcelain"); err != nil || strings.Contains(out, "fatal") {
			t.Errorf("%s: the remedy fails: %v, %s", name, err, out)
		}
	}
}

// An agent writes a small index in which each name adds a little to the one before: all names together fill the memory,
// now and at each launch.
func TestASmallIndexHasNoNamesThatFillTheMemory(t *testing.T) {
	head := make([]byte, 60)
	binary.BigEndian.PutUint32(head[24:], 0o100644)
	grown := func(count, first, most int) []byte {
		index := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x04"), uint32(count))
		length := 0
		add := func(drop byte, text string) {
			length += len(text) - int(drop)
			index = binary.BigEndian.AppendUint16(append(index, head...), uint16(min(length, 0xfff)))
			index = append(append(append(index, drop), text...), 0)
		}
		for add(0, strings.Repeat("a", first)); count > 1; count-- {
			if length < most {
				add(0, "b")
			} else {
				add(1, "b")
			}
		}
		end := sha1.Sum(index)
		return append(index, end[:]...)
	}
	for name, tc := range map[string]struct {
		count, first, most int
		ok                 bool
	}{
		"as long as a path can be":  {2, 4_095, 4_095, true},
		"longer than a path can be": {2, 4_095, 4_096, false},
		"few that grow":             {1_400, 1, 1_400, true},
		"many that grow":            {20_000, 1, 4_000, false},
	} {
		index := grown(tc.count, tc.first, tc.most)
		if _, ok := git.CheckIndex(index, 20); ok != tc.ok {
			t.Errorf("%s: legal %t; want %t", name, ok, tc.ok)
		}
		sum := 0
		for e := range git.ScanIndex(index, 20) {
			sum += len(e.Name)
		}
		if limit := 1<<20 + 8*len(index); sum > limit {
			t.Errorf("%s: %d bytes of names in %d bytes", name, sum, len(index))
		}
	}
}

// Names behind something that git skips and claudebox does not, or the other way, would not be seen.
func TestAnIndexThatIsReadInTwoWaysIsNotLegal(t *testing.T) {
	const blob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
	good := made(blob, "TREE\x00\x00\x00\x00", ".env", "a")
	if _, ok := git.CheckIndex(good, 20); !ok {
		t.Fatal("a good one is not legal")
	}
	padded := slices.Clone(made(blob, "", "-", ".env"))
	padded[12+62+1] = 'X'
	unsaid := slices.Clone(good)
	unsaid[12+61] = 2 // the length of the first name
	blocks := func(at uint32, count uint32) string {
		return "IEOT\x00\x00\x00\x0c\x00\x00\x00\x01" + string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, at), count))
	}
	if _, ok := git.CheckIndex(flagged(0x2000), 20); !ok {
		t.Error("one with a file that is yet to be added is not legal")
	}
	for name, index := range map[string][]byte{
		"padding":                       padded,
		"a length that is not":          unsaid,
		"fewer entries than there are":  func() []byte { b := slices.Clone(good); b[11] = 1; return b }(),
		"more entries than there are":   func() []byte { b := slices.Clone(good); b[11] = 9; return b }(),
		"an unknown extension":          made(blob, "ZZZZ\x00\x00\x00\x00", "a"),
		"an extension that is cut":      made(blob, "TREE\x00\x00\x00\x09", "a"),
		"something at the end":          made(blob, "TREE", "a"),
		"blocks elsewhere":              made(blob, blocks(80, 2), ".env", "a"),
		"blocks without the last one":   made(blob, blocks(12, 1), ".env", "a"),
		"another end of the entries":    made(blob, "EOIE\x00\x00\x00\x04\x00\x00\x00\x0c", "a"),
		"a name without letters":        made(blob, "", ""),
		"names in another order":        made(blob, "", "a", ".env"),
		"a name twice":                  made(blob, "", "a", "a"),
		"a flag that git does not know": flagged(0x0001),
		"a flag that is not used yet":   flagged(0x8000),
		"no index":                      []byte("x"),
	} {
		if _, ok := git.CheckIndex(index, 20); ok {
			t.Errorf("%s: legal", name)
		}
	}
	if _, ok := git.CheckIndex(made(blob, blocks(12, 2), ".env", "a"), 20); !ok {
		t.Error("blocks as git writes them are not legal")
	}
}

// What is staged in a split index, or below a folder of a sparse one, is not seen: no session may begin that.
func TestNoSessionSplitsAnIndex(t *testing.T) {
	for name, tc := range map[string]struct {
		before, agent string
		stays         bool
	}{
		"it splits it":         {"true", "git update-index --split-index", false},
		"it was split":         {"git update-index --split-index", "echo y >b; git add b", true},
		"it makes it sparse":   {"true", "git sparse-checkout set --cone --sparse-index s", false},
		"it was a sparse one":  {"git sparse-checkout set --cone --sparse-index s", "echo y >s/b; git add s/b", true},
		"it was one by yes":    {"git sparse-checkout set --cone --sparse-index s; git config --worktree index.sparse yes", "echo y >s/b; git add s/b", true},
		"it is to be split":    {"true", "cp .git/index .git/sharedindex.0000000000000000000000000000000000000001", true},
		"it works as everyone": {"true", "echo y >b; git add b; git commit -qm y", true},
	} {
		w := newWorld(t)
		_, err := w.sh("git init -q; mkdir s t; echo x >s/a; echo x >t/a; git add .; git commit -qm x; " + tc.before)
		must(t, err)
		before := w.look(nil, ".git")
		if out, err := w.sh(tc.agent); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		w.defuse(before, ".git")
		if _, err := os.Lstat(w.dir + "/p/.git/index"); (err == nil) != tc.stays {
			t.Errorf("%s: stays %t; want %t", name, err == nil, tc.stays)
		}
		shared, err := filepath.Glob(w.dir + "/p/.git/sharedindex.*")
		must(t, err)
		if len(shared) > 0 && name != "it was split" {
			t.Errorf("%s: %q is left, for the next session", name, shared)
		}
	}
}
