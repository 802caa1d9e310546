package confine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"claudebox/checks/kit/must"
)

// A broker in tier full looked no name up where resolv.conf leads to a folder that is not one of the usual.
func TestTheFolderOfResolversIsReadWhereverItIs(t *testing.T) {
	dir := t.TempDir()
	conf, real := filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "elsewhere/resolv.conf")
	must.Write(t, real, "nameserver 127.0.0.1\n")
	must.Do(t, os.Symlink(real, conf))
	if got := resolving(conf); !slices.Contains(got, filepath.Dir(real)) || !slices.Contains(got, "/etc") {
		t.Errorf("it reads %q", got)
	}
	if got := resolving(filepath.Join(dir, "none")); slices.Contains(got, dir) {
		t.Errorf("without one it reads %q", got)
	}
}
