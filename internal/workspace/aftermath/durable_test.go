package aftermath_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// R13: records and memory were read like caches. What could not be read counted as nothing, and was removed.
func TestARecordThatCannotBeReadStaysAndNothingStarts(t *testing.T) {
	w := newWorld(t)
	w.begin().Kill()
	files, err := filepath.Glob(w.path(".claudebox/sessions/*"))
	must.Do(t, err)
	if len(files) != 1 {
		t.Fatalf("records: %q", files)
	}
	must.Write(t, files[0], "claudebox session 99\nx")
	w.sweep()
	if _, err := aftermath.Begin(w.path(".claudebox"), w.open(), aftermath.Agent{}); !errors.Is(err, aftermath.ErrUnread) ||
		!strings.HasSuffix(diag.Remedy(err), "or look through your projects, and remove that file") {
		t.Errorf("it begins: %v", err)
	}
	if _, err := os.Stat(files[0]); err != nil {
		t.Errorf("the record is gone: %v", err)
	}
	must.Do(t, os.Remove(files[0])) // as the remedy says
	w.begin().End()
}

// A session of the claudebox before this one is looked after.
func TestARecordOfTheFormBeforeIsRead(t *testing.T) {
	w := newWorld(t)
	s := w.begin()
	w.sh(`git init -q d; git -C d config core.fsmonitor "$EVIL"`)
	s.KillAsBefore()
	if reports := w.sweep(); len(reports) != 1 || !reports[0].Unfinished {
		t.Errorf("%+v", reports)
	}
	os.Remove(w.path("taken"))
	w.sh("git -C d status")
	w.wantNotTaken()
}

func TestWhatWasHiddenIsNotForgottenBecauseItCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; echo A=b >.env")
	w.session("true")
	files, err := filepath.Glob(w.path(".claudebox/memory/*"))
	must.Do(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		must.Do(t, err)
		must.Do(t, os.WriteFile(file, content[:len(content)-1], 0o600))
		memory := aftermath.NewMemory(w.path(".claudebox"))
		_, err = project.Open(project.Request{Dir: w.path("p"), Home: w.home, UID: os.Getuid(), Memory: memory})
		if err == nil && memory.Err() == nil {
			t.Errorf("%s is damaged, and nothing is said", file)
		}
		must.Do(t, os.WriteFile(file, content, 0o600))
	}
	if len(files) == 0 {
		t.Error("nothing was remembered")
	}
}
