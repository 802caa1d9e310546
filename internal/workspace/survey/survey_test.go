package survey_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/workspace/survey"
)

// wanted wants what is called so.
func wanted(names ...string) func(string) func(string, bool) bool {
	return func(string) func(string, bool) bool {
		return func(name string, _ bool) bool { return slices.Contains(names, name) }
	}
}

type world struct {
	t    testing.TB
	dir  string
	root *beneath.Folder
}

func newWorld(t testing.TB) world {
	t.Helper()
	dir := must.Folder(t)
	root, err := beneath.Open(dir)
	must.Do(t, err)
	t.Cleanup(root.Close)
	return world{t, dir, root}
}

func (w world) write(names ...string) {
	w.t.Helper()
	for _, name := range names {
		must.Write(w.t, filepath.Join(w.dir, name), "")
	}
}

func (w world) remove(name string) { must.Do(w.t, os.RemoveAll(filepath.Join(w.dir, name))) }

func (w world) walk(q survey.Question, before *survey.Survey) *survey.Survey {
	if q.Limit == 0 {
		q.Limit = 1000
	}
	return survey.Walk(w.root, q, before)
}

func wantList(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestAWalkFindsWhatGitTakesForARepository(t *testing.T) {
	w := newWorld(t)
	w.write("a/.git/HEAD", "b/c/.git", "bare/HEAD", "bare/objects/x", "bare/refs/x", "moved/HEAD", "moved/commondir",
		"no/HEAD", "no/objects", "fold/.GIT/HEAD", "skipped/a/.git/HEAD")
	must.Do(t, os.Symlink("a", filepath.Join(w.dir, "link")))
	must.Do(t, os.Symlink("../a/.git", filepath.Join(w.dir, "no/.git")))
	s := w.walk(survey.Question{Skipped: []string{"skipped"}}, nil)
	wantList(t, "git", s.Git, []string{"a/.git", "b/c/.git", "fold/.GIT", "no/.git"})
	wantList(t, "bare", s.Bare, []string{"bare", "moved"})
}

func TestAWalkFindsSockets(t *testing.T) {
	w := newWorld(t)
	w.write("d/x")
	l, err := net.Listen("unix", filepath.Join(w.dir, "d/s"))
	must.Do(t, err)
	defer l.Close()
	wantList(t, "sockets", w.walk(survey.Question{}, nil).Sockets, []string{"d/s"})
}

func TestAWalkEndsAtItsLimitAndSaysSo(t *testing.T) {
	w := newWorld(t)
	for n := range 50 {
		w.write(fmt.Sprintf("%d/x", n))
	}
	w.write("a/.git/HEAD")
	if s := w.walk(survey.Question{Limit: 200}, nil); s.Cut || len(s.Git) != 1 {
		t.Errorf("cut %v, %q", s.Cut, s.Git)
	}
	if s := w.walk(survey.Question{Limit: 60}, nil); !s.Cut {
		t.Error("it does not say that it stopped")
	}
}

func TestAFolderThatCannotBeReadIsNamed(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("NOT RUN: root reads every folder")
	}
	w := newWorld(t)
	w.write("closed/x")
	must.Do(t, os.Chmod(filepath.Join(w.dir, "closed"), 0))
	defer os.Chmod(filepath.Join(w.dir, "closed"), 0o700)
	wantList(t, "closed", w.walk(survey.Question{}, nil).Closed, []string{"closed"})
}

// TestASecondWalkSeesWhatAFirstWould changes a tree in every way and holds the
// quick second walk against a fresh one.
func TestASecondWalkSeesWhatAFirstWould(t *testing.T) {
	at := func(w world, name string) string { return filepath.Join(w.dir, name) }
	for name, change := range map[string]func(w world){
		"nothing":               func(world) {},
		"a repository":          func(w world) { w.write("a/b/c/.git/HEAD") },
		"one at the root":       func(w world) { w.write(".git/HEAD") },
		"one in a new folder":   func(w world) { w.write("a/new/er/.git/HEAD") },
		"one gone":              func(w world) { w.remove("r/.git") },
		"a bare one":            func(w world) { w.write("a/HEAD", "a/objects/x", "a/refs/x") },
		"a wanted file":         func(w world) { w.write("a/b/wanted") },
		"one written to":        func(w world) { must.Write(w.t, at(w, "f/wanted"), "more") },
		"one made executable":   func(w world) { must.Do(w.t, os.Chmod(at(w, "f/wanted"), 0o700)) },
		"one gone, and another": func(w world) { w.remove("f/wanted"); w.write("f/other") },
		"a folder renamed":      func(w world) { must.Do(w.t, os.Rename(at(w, "a/b"), at(w, "f/b"))) },
		"two exchanged": func(w world) {
			must.Do(w.t, os.Rename(at(w, "a"), at(w, "x")))
			must.Do(w.t, os.Rename(at(w, "f"), at(w, "a")))
			must.Do(w.t, os.Rename(at(w, "x"), at(w, "f")))
		},
		"a folder becomes a link": func(w world) {
			must.Do(w.t, os.Rename(at(w, "f"), at(w, "g")))
			must.Do(w.t, os.Symlink("g", at(w, "f")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.write("a/b/c/x", "a/b/wantedx", "f/wanted", "f/other", "r/.git/HEAD", "wanted")
			time.Sleep(50 * time.Millisecond) // so that stamps count
			q := survey.Question{Wanted: wanted("wanted")}
			first := w.walk(q, nil)
			change(w)
			quick, fresh := w.walk(q, survey.Of(first.Folders())), w.walk(q, nil)
			wantList(t, "git", quick.Git, fresh.Git)
			wantList(t, "bare", quick.Bare, fresh.Bare)
			if !slices.Equal(quick.Files, fresh.Files) {
				t.Errorf("got %+v, want %+v", quick.Files, fresh.Files)
			}
			if quick.Same != (name == "nothing") || fresh.Same {
				t.Errorf("the same as before: %t, without a walk before %t", quick.Same, fresh.Same)
			}
		})
	}
}

func BenchmarkWalk(b *testing.B) {
	for _, shape := range []struct{ folders, files int }{{8, 5}, {676, 74}, {2500, 20}, {5000, 10}} {
		w := newWorld(b)
		for d := range shape.folders {
			dir := fmt.Sprintf("%s/%c%c/%c/%d", w.dir, 'a'+d%26, 'a'+d/26%26, 'a'+d%7, d)
			must.Do(b, os.MkdirAll(dir, 0o755))
			for n := range shape.files {
				must.Write(b, fmt.Sprintf("%s/file-number-%d.go", dir, n), "")
			}
		}
		q := survey.Question{Limit: 200_000, Wanted: wanted("package.json")}
		b.Run(fmt.Sprintf("%d folders of %d", shape.folders, shape.files), func(b *testing.B) {
			for b.Loop() {
				survey.Walk(w.root, q, nil)
			}
		})
		time.Sleep(50 * time.Millisecond)
		first := survey.Walk(w.root, q, nil)
		b.Run(fmt.Sprintf("%d folders of %d, again", shape.folders, shape.files), func(b *testing.B) {
			for b.Loop() {
				survey.Walk(w.root, q, first)
			}
		})
	}
}

// An agent makes a tree so deep that to look at it takes hours.
func TestAWalkGoesNoDeeperThanAPathMayBeLong(t *testing.T) {
	w := newWorld(t)
	at, err := os.OpenRoot(w.dir)
	must.Do(t, err)
	for range 4096 {
		must.Do(t, at.Mkdir("d", 0o755))
		next, err := at.OpenRoot("d")
		must.Do(t, err)
		at.Close()
		at = next
	}
	at.Close()
	seen := w.walk(survey.Question{Limit: 2048}, nil)
	if seen.Cut || len(seen.Closed) > 0 {
		t.Errorf("cut %v, closed %d", seen.Cut, len(seen.Closed))
	}
}

// TestAFolderIsKeptWhole: [survey.Folder.Code] has every field, as the codec would see them by itself.
func TestAFolderIsKeptWhole(t *testing.T) {
	type plain survey.Folder
	var folder survey.Folder
	next := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch next++; {
		case v.CanInt():
			v.SetInt(int64(next))
		case v.CanUint():
			v.SetUint(uint64(next))
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.Kind() == reflect.String:
			v.SetString(fmt.Sprint(next))
		case v.Kind() == reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0))
		default:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		}
	}
	fill(reflect.ValueOf(&folder).Elem())
	encoded := cachefile.Encode([]survey.Folder{folder})
	if !bytes.Equal(encoded, cachefile.Encode([]plain{plain(folder)})) {
		t.Error("it is encoded in another way than its fields are")
	}
	var got []survey.Folder
	if !cachefile.Decode(encoded, &got) || !reflect.DeepEqual(got, []survey.Folder{folder}) {
		t.Errorf("got %+v, want %+v", got, folder)
	}
}
