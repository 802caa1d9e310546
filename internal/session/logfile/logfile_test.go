package logfile

import (
	"os"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// An agent wrote its own lines into the record of its session, which lay in a folder that it was given.
func TestALogWhereTheAgentWritesIsRefused(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.MkdirAll(dir+"/data/sub", 0o700), os.Mkdir(dir+"/read", 0o700), os.Symlink("data/sub", dir+"/link"))
	for file, refused := range map[string]bool{"data/a": true, "data/sub/a": true, "link/a": true, "read/a": false, "a": false} {
		for _, which := range []string{"record", "network log"} {
			mounts := []launch.Mount{{Kind: plan.Bind, Source: dir + "/data"}, {Kind: plan.ROBind, Source: dir + "/read"}}
			if err := Judge(which, dir+"/"+file, mounts); (err != nil) != refused {
				t.Errorf("%s in %s: %v", which, file, err)
			}
		}
	}
}
