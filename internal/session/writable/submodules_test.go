package writable

import (
	"os"
	"path/filepath"
	"testing"

	"claudebox/checks/kit/must"
)

// The agent of another session has a link on the way to where a submodule lies: its folder would come there.
func TestASubmodulesFolderIsMovedByNoLink(t *testing.T) {
	top := must.Folder(t)
	own, home, project := filepath.Join(top, "own"), filepath.Join(top, "home"), filepath.Join(top, "project")
	must.Do(t, os.Mkdir(own, 0o700), os.MkdirAll(home+"/autostart", 0o700), os.MkdirAll(project+"/real/autostart", 0o700))
	must.Do(t, os.Symlink(home, project+"/x"))
	must.Write(t, own+"/evil", "")
	if err := new(Folders).move(own, project+"/x/autostart"); err == nil {
		t.Error("it was moved through a link")
	}
	if _, err := os.Lstat(home + "/autostart/evil"); err == nil {
		t.Error("the agent's file is in the home")
	}
	must.Do(t, new(Folders).move(own, project+"/real/autostart"))
	must.Read(t, project+"/real/autostart/evil")
}
