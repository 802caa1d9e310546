// Package golden compares what a test makes with a file of the repository. With
// the flag -update the file is written instead. Only tests import it.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update says that files are to be written anew.
var Update = flag.Bool("update", false, "write the files anew that tests compare with")

// Compare fails where a file has not the content that was made.
func Compare(t *testing.T, file string, made []byte) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(file, made, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(is), string(made)); diff != "" {
		t.Errorf("%s is stale: run this test with -update: -is +made\n%s", file, diff)
	}
}
