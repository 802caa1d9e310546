package project_test

import (
	"strings"
	"testing"

	"claudebox/internal/diag"
	"claudebox/internal/workspace/project"
)

// A command of a remedy is whole, also where a terminal cannot show the folder's name.
func TestARemedyForAFolderWhoseNameCannotBeShown(t *testing.T) {
	w := newWorld(t)
	w.repo("r", "x")
	w.link(w.path("r/.git"), "a\x01b/.git")
	_, err := project.Open(w.request("a\x01b"))
	if remedy := diag.Remedy(err); !strings.Contains(remedy, ": cd FOLDER && rm .git && ") {
		t.Errorf("it says %q", remedy)
	}
}
