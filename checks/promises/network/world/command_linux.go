package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// errand is what [becomeCommand] is told.
type errand struct {
	Layout     Layout
	KeepRights bool
	Path       string
	Words      []string
}

// Command is a program on the host, started as the ordinary user, with the
// layout's files. Its environment is the caller's to set.
func (w *World) Command(layout Layout, path string, words ...string) *exec.Cmd {
	return w.command(errand{Layout: layout, Path: path, Words: append([]string{path}, words...)})
}

// Privileged is a program on the host that may do there what root does on a real
// one: what a sandbox must not be able to do, it can.
func (w *World) Privileged(path string, words ...string) *exec.Cmd {
	return w.command(errand{Layout: Systemd, KeepRights: true, Path: path, Words: append([]string{path}, words...)})
}

func (w *World) command(e errand) *exec.Cmd {
	told, err := json.Marshal(e)
	if err != nil {
		panic(err) // bug: strings can be encoded
	}
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{stageName, string(told)},
		ExtraFiles:  []*os.File{w.host.file},
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS},
	}
}

// becomeCommand is the way from the test to the host: into its network, files
// of the layout in the machine's place, rights given up, command executed.
func becomeCommand() int {
	runtime.LockOSThread()
	var e errand
	err := json.Unmarshal([]byte(os.Args[1]), &e)
	steps := []func() error{enterHost, e.Layout.apply}
	if !e.KeepRights {
		steps = append(steps, giveRightsUp)
	}
	for _, step := range steps {
		if err == nil {
			err = step()
		}
	}
	if err == nil {
		err = unix.Exec(e.Path, e.Words, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "start", e.Path, "on the world's host:", err)
	return 1
}

func enterHost() error {
	const network = 3 // the first of ExtraFiles
	if err := unix.Setns(network, unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("setns", err)
	}
	unix.CloseOnExec(network)
	return nil
}

// giveRightsUp leaves the program that is executed next without capabilities:
// it is no root, and nothing is ambient.
func giveRightsUp() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return errors.Join(
		os.NewSyscallError("prctl", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)),
		os.NewSyscallError("capset", unix.Capset(&header, &none[0])),
	)
}
