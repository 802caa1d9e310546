package cli_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"claudebox/checks/kit/golden"
	"claudebox/internal/cli"
)

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
		UpdateScripts:       *golden.Update,
		Setup: func(env *testscript.Env) error {
			home := env.WorkDir + "/home"
			env.Setenv("HOME", home)
			return os.MkdirAll(home, 0o700)
		},
	})
}
