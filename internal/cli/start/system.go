package start

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"claudebox/internal/profile/shape"
)

// Version is set by the linker.
var Version = "dev"

// System is what the command line is connected to.
type System struct {
	Stdin          *os.File
	Stdout, Stderr io.Writer
	Manifest       string       // the manifest's file; it may not exist
	Whole          string       // the program that can do everything; it may not exist
	Programs       []string     // what claudebox is made of, for what it keeps between launches
	Parser         shape.Parser // reads profiles; nil in the program that cannot
}

// FromOS connects to the process's own streams. Both programs find the same
// files from the folder that theirs lie in: bin/claudebox, libexec/claudebox and
// share/claudebox/manifest.json.
func FromOS() System {
	sys := System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	exe, err := os.Executable()
	if err != nil {
		return sys
	}
	folder := filepath.Dir(filepath.Dir(exe))
	sys.Manifest = filepath.Join(folder, "share/claudebox/manifest.json")
	sys.Whole = filepath.Join(folder, "libexec/claudebox")
	sys.Programs = []string{filepath.Join(folder, "bin/claudebox"), sys.Whole}
	if !slices.Contains(sys.Programs, exe) { // under another name, or alone
		sys.Programs = append(sys.Programs, "/proc/self/exe")
	}
	return sys
}
