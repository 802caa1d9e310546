package beneath_test

import (
	"os"
	"path/filepath"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
)

func TestLeadsFollowsLinksThatDangle(t *testing.T) {
	at := must.Folder(t)
	for name, target := range map[string]string{
		"to-file": "file", "to-nothing": "gone/deep", "absolute": at + "/gone", "up": "../" + filepath.Base(at) + "/to-nothing", "loop": "loop",
	} {
		must.Do(t, os.Symlink(target, filepath.Join(at, name)))
	}
	must.Write(t, filepath.Join(at, "file"), "")
	for path, want := range map[string]string{
		"file": "file", "gone": "gone", "to-file": "file", "to-nothing/x": "gone/deep/x", "absolute/x": "gone/x", "up": "gone/deep", "a/../to-file": "file",
	} {
		if got, err := beneath.Leads(at + "/" + path); err != nil || got != at+"/"+want {
			t.Errorf("%s leads to %s, %v; want %s", path, got, err, want)
		}
	}
	if got, err := beneath.Leads(at + "/loop/x"); err == nil {
		t.Errorf("a circle leads to %s", got)
	}
}
