package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
)

// A command of a remedy is whole, also where a terminal cannot show the folder's name.
func TestARemedyForAFolderWhoseNameCannotBeShown(t *testing.T) {
	top := t.TempDir()
	real, dir := filepath.Join(top, "real"), filepath.Join(top, "a\x01b")
	must.Do(t, os.MkdirAll(real+"/objects", 0o700), os.MkdirAll(real+"/refs", 0o700), os.Mkdir(dir, 0o700),
		os.WriteFile(real+"/HEAD", []byte("ref: refs/heads/main\n"), 0o600), os.Symlink(real, dir+"/.git"))
	if remedy := diag.Remedy(unprotectable(dir+"/.git", errLink)); !strings.Contains(remedy, ": cd FOLDER && rm .git && ") {
		t.Errorf("it says %q", remedy)
	}
}
