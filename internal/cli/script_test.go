package cli_test

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"claudebox/internal/cli"
)

var update = flag.Bool("update", false, "write what the scripts print into them")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"claudebox": func() { os.Exit(cli.Main(os.Args, cli.FromOS())) },
	})
}

// TestScripts runs what a user can type, by the real command line, in a home
// of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			home := env.WorkDir + "/home"
			env.Setenv("HOME", home)
			return os.MkdirAll(home, 0o700)
		},
	})
}
