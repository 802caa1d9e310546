package project_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/project"
)

// indexes are ways git can write an index; the same files are tracked in all.
var indexes = map[string]func(w world){
	"version 2": func(w world) { w.git("p", "update-index", "--index-version", "2") },
	"version 3": func(w world) {
		w.git("p", "update-index", "--index-version", "3")
		w.write("p/later", "")
		w.git("p", "add", "-N", "later") // needs the extended flags of version 3
	},
	"version 4":        func(w world) { w.git("p", "update-index", "--index-version", "4") },
	"an untracked one": func(w world) { w.git("p", "update-index", "--untracked-cache") },
	"skip-worktree": func(w world) {
		w.git("p", "update-index", "--index-version", "4", "--skip-worktree", ".envrc")
	},
}

// manyFiles makes names of all lengths, so that every padding occurs.
func manyFiles() []string {
	files := []string{".envrc", ".vscode/settings.json", "mise.toml"}
	name := "f"
	for range 40 {
		name += "x"
		files = append(files, name, ".d/"+name, "z/"+name)
	}
	return files
}

func TestTrackedPlacesAreReportedNotReadOnly(t *testing.T) {
	for name, rewrite := range indexes {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(name+" in "+format, func(t *testing.T) {
				w := newWorld(t)
				w.mkdir("p")
				w.git("p", "init", "-q", "--object-format="+format)
				for _, f := range manyFiles() {
					w.write("p/"+f, "")
				}
				w.git("p", "add", "-A")
				w.git("p", "commit", "-qm", "x")
				w.write("p/.idea/x", "")
				w.write("p/.vimrc", "")
				rewrite(w)
				p := w.open("p")
				if want := []string{".envrc", ".vscode", "mise.toml"}; !slices.Equal(p.Reported, want) {
					t.Errorf("reported %q, want %q", p.Reported, want)
				}
				if got := w.mounts(p); !slices.Contains(got, "ro ~/p/.idea") || !slices.Contains(got, "ro ~/p/.vimrc") || slices.Contains(got, "ro ~/p/.envrc") {
					t.Errorf("mounts %q", got)
				}
			})
		}
	}
}

func TestTrackedIsJudgedFromThePartThatIsTheProject(t *testing.T) {
	w := newWorld(t)
	w.repo("r", ".vimrc", "p/.envrc", "q/.idea/x")
	w.write("r/p/.vimrc", "")
	w.write("r/p/.idea/x", "")
	p := w.open("r/p")
	if !slices.Equal(p.Reported, []string{".envrc"}) {
		t.Errorf("reported %q", p.Reported)
	}
}

func TestStrictProtectsTrackedPlacesToo(t *testing.T) {
	w := newWorld(t)
	w.repo("p", ".envrc")
	req := w.request("p")
	req.Strict = true
	p, err := project.Open(req)
	must.Do(t, err)
	if !slices.Contains(w.mounts(p), "ro ~/p/.envrc") {
		t.Errorf("mounts %q", w.mounts(p))
	}
}

// TestABrokenIndexProtectsEverything cuts and spoils an index at every place:
// what cannot be read is never an excuse to leave something writable.
func TestABrokenIndexProtectsEverything(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "a", "zz")
	w.write("p/.envrc", "")
	index := w.path("p/.git/index")
	good, err := os.ReadFile(index)
	must.Do(t, err)
	for n := range good {
		spoilt := slices.Clone(good)
		spoilt[n] ^= 0xff
		for what, content := range map[string][]byte{"cut": good[:n], "spoilt": spoilt} {
			must.Do(t, os.WriteFile(index, content, 0o600))
			p := w.open("p")
			if !slices.Contains(w.mounts(p), "ro ~/p/.envrc") {
				t.Errorf("%s at %d: mounts %q", what, n, w.mounts(p))
			}
		}
	}
	must.Do(t, os.Remove(index))
	w.link("/dev/zero", "p/.git/index")
	if p := w.open("p"); !slices.Contains(w.mounts(p), "ro ~/p/.envrc") {
		t.Errorf("a link: mounts %q", w.mounts(p))
	}
}

// small and large are what a launch meets.
func BenchmarkOpen(b *testing.B) {
	for _, files := range []int{20, 50_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			req := benchWorld(b, files)
			for b.Loop() {
				_, err := project.Open(req)
				must.Do(b, err)
			}
		})
	}
}

func benchWorld(b *testing.B, files int) project.Request {
	w := newWorld(b)
	w.mkdir("p")
	w.git("p", "init", "-q")
	for n := range files {
		w.write(fmt.Sprintf("p/%c/%c/file-with-a-name-%d", 'A'+n%26, 'a'+n/26%26, n), "")
	}
	w.git("p", "add", "-A")
	w.write("p/.envrc", "")
	w.write("p/mise.toml", "")
	return w.request("p")
}
