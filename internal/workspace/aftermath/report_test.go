package aftermath_test

import (
	"testing"

	"claudebox/internal/workspace/aftermath"
)

func TestReportKeepsItsColumnsAtANarrowTerminal(t *testing.T) {
	r := aftermath.Report{Changes: []aftermath.Change{
		{Path: ".envrc", Change: aftermath.New, Means: "direnv runs it when you enter the folder, once you allow it"},
		{Path: "Makefile", Change: aftermath.Changed, Means: "make runs it"},
	}}
	const head = "claudebox: what your own tools run was changed while the session ran:\n"
	for width, want := range map[int]string{
		0: head + "  new      .envrc    direnv runs it when you enter the folder, once you allow it\n  changed  Makefile  make runs it\n",
		60: head + "  new      .envrc    direnv runs it when you enter the\n" +
			"                     folder, once you allow it\n  changed  Makefile  make runs it\n",
	} {
		if got := r.Text("/home/u", width); got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
	}
}
