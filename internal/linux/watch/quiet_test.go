package watch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/watch"
)

// Whatever changes a folder is noted, and is still there when it is asked again; what reads is not.
func TestWhateverChangesAFolderIsNoted(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		none   bool
	}{
		"reading":                 {"cat f >/dev/null; ls d; stat f; exec 3<f", true},
		"content":                 {"echo x >>f", false},
		"content by a mapping":    {`python3 -c 'import mmap; f=open("f","r+b"); m=mmap.mmap(f.fileno(),0); f.close(); m[0]=65'`, false},
		"a time":                  {"touch -d 2001-01-01 f", false},
		"a mode":                  {"chmod +x f", false},
		"a mode of a folder":      {"chmod 711 d", false},
		"a new file":              {"echo >d/new", false},
		"a name gone":             {"rm d/g", false},
		"another name":            {"mv d/g d/h", false},
		"from elsewhere":          {"mv ../other d/", false},
		"a folder moved":          {"mv d e", false},
		"a hard link":             {"ln f d/f", false},
		"by another name":         {"echo >>d/l", false},
		"made and removed again":  {"mkdir x; rmdir x", false},
		"the folder itself":       {"chmod 700 .; chmod 500 .; chmod 700 .", false},
		"a file written and back": {"cp -p f ../was; echo >f; cp -p ../was f", false},
	} {
		t.Run(name, func(t *testing.T) {
			top := filepath.Join(t.TempDir(), "top")
			sh := func(script string) {
				t.Helper()
				cmd := exec.Command("bash", "-ec", script)
				cmd.Dir = top
				if text, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", script, err, text)
				}
			}
			must.Do(t, os.Mkdir(top, 0o700))
			sh("mkdir d; echo f >f; echo g >d/g; ln f d/l; echo >../other")
			q, err := watch.Changes([]string{top, top + "/d"})
			must.Do(t, err)
			defer q.Close()
			if !q.None() {
				t.Fatal("something has changed before anything did")
			}
			sh(tc.script)
			for range 2 {
				if q.None() != tc.none {
					t.Errorf("nothing has changed: %v", !tc.none)
				}
			}
		})
	}
	if q, err := watch.Changes([]string{t.TempDir() + "/absent"}); err == nil {
		q.Close()
		t.Error("what is not there is watched")
	}
}
