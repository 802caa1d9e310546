package session

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/inside"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/seccomp"
)

// CollectGarbage removes from the Nix store inside of the project that the caller
// stands in what no root refers to: no link in the project. It gives what Nix
// said last. The database was the agent's to write, so Nix runs in a sandbox
// that has it, the layer of that store and nothing else, and no network.
func CollectGarbage(c Caller, o Options) (said string, err error) {
	const op = "collect the garbage of the Nix store inside"
	found, instance, err := keptFor(c, o)
	if err != nil {
		return "", err
	}
	dir, busy := inside.Choose(filepath.Join(instance, "nix"))
	if busy {
		return "", diag.Errorf(op, "end it first", "a session of this project uses it")
	}
	if _, err := os.Stat(dir); err != nil {
		return "nothing was built or fetched inside yet", nil
	}
	manifest, err := readManifest(c.Manifest)
	if err != nil {
		return "", err
	}
	slot, err := inside.Open(dir)
	if err != nil {
		return "", err
	}
	defer slot.Close()
	nix := filepath.Join(filepath.Dir(manifest.Tools[resolve.ToolNix]), "nix-store")
	words := inside.CollectWords(dir, found.Root, nix)
	cmd := exec.Command(manifest.Tools[resolve.ToolBwrap], words...)
	cmd.Env = []string{}
	filter, err := filterFile()
	if err != nil {
		return "", err
	}
	defer filter.Close()
	cmd.ExtraFiles = []*os.File{filter}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &diag.Error{Op: op, Err: err, Remedy: "it says: " + diag.Visible(lastLine(out))}
	}
	return diag.Visible(lastLine(out)), nil
}

// filterFile is the filter of system calls as bwrap reads it.
func filterFile() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(seccomp.Filter()) // a pipe takes as much at once
	w.Close()
	return r, err
}

func lastLine(text []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return lines[len(lines)-1]
}
