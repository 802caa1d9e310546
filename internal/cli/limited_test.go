package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// What fails for want of descriptors names the limit, whatever it was that failed: of watches of files there can be too
// many, too.
func TestALowLimitOfOpenFilesIsTheRemedy(t *testing.T) {
	fault := &diag.Error{Op: "watch", Err: fmt.Errorf("make x: %w", unix.EMFILE), Remedy: "raise the limits of inotify"}
	if got := limited(fault, 64); !strings.Contains(got.Error(), "64 open files") || !strings.Contains(diag.Remedy(got), "ulimit -n") {
		t.Errorf("%v, %s", got, diag.Remedy(got))
	}
	for name, got := range map[string]error{"enough": limited(fault, 1<<20), "another fault": limited(errors.New("x"), 64), "none": limited(nil, 64)} {
		if got != nil && strings.Contains(diag.Remedy(got), "ulimit -n") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// claudebox inside its own sandbox said "function not implemented", and no more.
func TestWhereSystemCallsAreRefusedClaudeboxRunsOutside(t *testing.T) {
	fault := fmt.Errorf("look for .claudebox.yaml: %w", unix.ENOSYS)
	if got := contained(fault); diag.Remedy(got) != "run claudebox outside of it" || !errors.Is(got, fault) {
		t.Errorf("%v, %s", got, diag.Remedy(got))
	}
	other := &diag.Error{Op: "x", Err: unix.ENOSYS, Remedy: "use Linux 5.11"}
	if got := contained(other); got != error(other) {
		t.Errorf("%v", got)
	}
	if got := contained(nil); got != nil {
		t.Errorf("%v", got)
	}
}
