package nixuse

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/inside"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/seccomp"
)

// Collect removes from the Nix store inside, of an instance, all paths that no root refers to; the roots are the links
// in the folders of links, each from a folder of the host to its place inside. It returns notes, and the last line that
// Nix printed. The agent could write the database, so Nix runs in a sandbox that has it, the layer of that store and
// nothing else, and no network.
func Collect(tools map[string]string, instance string, links [][2]string) (said string, err error) {
	const op = "collect the garbage of the Nix store inside"
	dir, busy := inside.Choose(filepath.Join(instance, "nix"))
	if busy {
		return "", diag.Errorf(op, "end it first", "a session of this project uses it")
	}
	if _, err := os.Stat(dir); err != nil {
		return "nothing was built or fetched inside yet", nil
	}
	slot, err := inside.Open(dir)
	if err != nil {
		return "", err
	}
	defer slot.Close()
	nix := filepath.Join(filepath.Dir(tools[resolve.ToolNix]), "nix-store")
	cmd := exec.Command(tools[resolve.ToolBwrap], inside.CollectWords(dir, links, nix)...)
	cmd.Env = []string{}
	filter, err := filterFile()
	if err != nil {
		return "", err
	}
	defer filter.Close()
	cmd.ExtraFiles = []*os.File{filter}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &diag.Error{Op: op, Err: fmt.Errorf("%w: %s", err, diag.Visible(lastLine(out)))}
	}
	return strings.Join(append(slot.Notes, diag.Visible(lastLine(out))), "\n"), nil
}

// filterFile returns a pipe from which bwrap reads the filter of system calls.
func filterFile() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(seccomp.Filter()) // fits into the pipe's buffer, so it does not block
	w.Close()
	return r, err
}

func lastLine(text []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return lines[len(lines)-1]
}
