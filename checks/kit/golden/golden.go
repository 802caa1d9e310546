// Package golden compares what a test makes with a file of the repository. With
// the flag -update the file is written instead. Only tests import it.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"claudebox/checks/kit/must"
)

// Update says that files are to be written anew.
var Update = flag.Bool("update", false, "write the files anew that tests compare with")

// Compare fails where a file has not the content that was made.
func Compare(t *testing.T, file string, made []byte) {
	t.Helper()
	if *Update {
		must.Do(t, os.WriteFile(file, made, 0o644))
		return
	}
	is := must.Read(t, file)
	if diff := cmp.Diff(is, string(made)); diff != "" {
		t.Errorf("%s is stale: run this test with -update: -is +made\n%s", file, diff)
	}
}
