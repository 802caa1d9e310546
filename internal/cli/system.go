package cli

import (
	"io"
	"os"
	"path/filepath"
)

// Version is set by the linker.
var Version = "dev"

// System is what the command line is connected to.
type System struct {
	Stdin          *os.File
	Stdout, Stderr io.Writer
	Manifest       string // the manifest's file; it may not exist
}

// FromOS connects to the process's own streams. The manifest is found from the
// folder that the program lies in: bin/claudebox and
// share/claudebox/manifest.json.
func FromOS() System {
	sys := System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if program, err := os.Executable(); err == nil {
		sys.Manifest = filepath.Join(filepath.Dir(filepath.Dir(program)), "share/claudebox/manifest.json")
	}
	return sys
}
