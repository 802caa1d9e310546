package beneath_test

import (
	"os"
	"path/filepath"
	"testing"

	"claudebox/internal/linux/beneath"
)

func TestCanonicalIsEvalSymlinks(t *testing.T) {
	_, at := open(t)
	t.Chdir(at)
	for _, path := range []string{
		at, at + "/", at + "/dir/../file", at + "//dir/file", at + "/in/file", at + "/in/../file", at + "/out", at + "/gone", at + "/loop",
		at + "/nothing", at + "/file/below", at + "/pipe", "dir/file", "in/file", ".", "..", "", "/", "/proc/self/cwd",
	} {
		want, wantErr := filepath.EvalSymlinks(path)
		got, err := beneath.Canonical(path)
		if got != want || (err == nil) != (wantErr == nil) || os.IsNotExist(err) != os.IsNotExist(wantErr) {
			t.Errorf("%s: got %q, %v; want %q, %v", path, got, err, want, wantErr)
		}
	}
}
