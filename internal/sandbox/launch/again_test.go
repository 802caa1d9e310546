package launch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// What another session's agent replaces between looking and opening does not end a launch for good.
func TestAPathThatWasReplacedMeanwhileIsWorthAnotherTry(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	file := filepath.Join(dir, "file")
	must.Do(t, os.Symlink(dir, link), os.WriteFile(file, nil, 0o600))
	for _, path := range []string{link + "/file", dir + "/gone", file + "/in"} {
		if _, err := (Runner{}).open([]Descriptor{{Path: path}}); !errors.Is(err, ErrAgain) {
			t.Errorf("%s: %v", path, err)
		}
		above := Place{Root: dir, Path: path[len(dir)+1:]}
		if _, err := (Runner{}).open([]Descriptor{{Path: dir, Point: above}}); !errors.Is(err, ErrAgain) {
			t.Errorf("mount point %s: %v", path, err)
		}
	}
	if err := moved(unix.EACCES); errors.Is(err, ErrAgain) {
		t.Error("what cannot be read is tried again")
	}
}

// bwrap says of such a path that it cannot open it, and by then there may be another of that name.
func TestAPathIsThereAgainAfterItWasReplaced(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	if isReplaced(dir, began.Add(time.Hour)) {
		t.Error("a folder that was there before counts as another")
	}
	if !isReplaced(dir+"/gone", began) {
		t.Error("one that is gone does not count")
	}
	must.Do(t, os.Mkdir(dir+"/anew", 0o700))
	if !isReplaced(dir+"/anew", began) {
		t.Error("one that was made since does not count")
	}
}
