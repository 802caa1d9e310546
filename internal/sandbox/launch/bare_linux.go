package launch

import (
	"os"
	"os/exec"
	"slices"
)

// Bare returns the command that runs bwrap directly, with its descriptors opened:
// the same sandbox without claudebox around it, to measure what claudebox costs. The
// command can be started once. The caller must close its ExtraFiles.
func (l Launch) Bare() (*exec.Cmd, error) {
	lines, descriptors, err := l.byWords().Words()
	if err != nil {
		return nil, err
	}
	report, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	list := append([]Descriptor{{Name: "arguments", Data: arguments(lines)}}, descriptors...)
	fds, err := Runner{Launch: l}.open(list)
	if err != nil {
		report.Close()
		return nil, err
	}
	cmd := &exec.Cmd{Path: l.Bwrap, Args: l.commandLine(), Env: []string{}}
	for i, fd := range fds {
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), list[i].Name))
	}
	// The report comes after the arguments, see [StatusDescriptor].
	cmd.ExtraFiles = slices.Insert(cmd.ExtraFiles, 1, report)
	return cmd, nil
}
