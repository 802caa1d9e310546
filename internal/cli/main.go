package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent"
	"claudebox/internal/agent/editor"
	"claudebox/internal/diag"
	"claudebox/internal/nix/inside"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/storetree"
	"claudebox/internal/ui/attack"
)

// Exit statuses that are claudebox's own, as timeout(1) and env(1) use them. Any other status is the agent's.
const (
	exitRefused  = 125 // claudebox refused or failed
	exitCannot   = 126 // the agent was found but cannot be run
	exitNotFound = 127 // the agent was not found
)

// Main runs claudebox and returns its exit status. words are os.Args. If they are those of a stage that this program
// holds (the store's tree, the filters of the Nix daemon and of an editor, the attacker), it runs that stage and
// nothing else.
func Main(words []string, sys System) int {
	for _, stage := range []func([]string) (int, bool){storetree.Run, inside.Run, editor.Run, attack.Run} {
		if status, ran := stage(words); ran {
			return status
		}
	}
	withoutCores()
	err := secureDescriptors()
	if err == nil {
		err = run(words[1:], sys)
	}
	var ended *launch.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return ended.Code
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		err = limited(err, limit.Max)
	}
	err = contained(err)
	diag.Print(sys.Stderr, err)
	switch {
	case errors.Is(err, agent.ErrNotFound):
		return exitNotFound
	case errors.Is(err, agent.ErrNotExecutable):
		return exitCannot
	}
	return exitRefused
}

// limited says of an error that the limit on open files is its cause, if that is lower than systems have it. Whoever
// met it could not know: watches of files have the same errno.
func limited(err error, most uint64) error {
	const usual = 1024
	if !errors.Is(err, unix.EMFILE) || most >= usual {
		return err
	}
	return &diag.Error{
		Op: fmt.Sprintf("work with %d open files at most", most), Err: err,
		Remedy: diag.RaiseFiles,
	}
}

// contained says of an error without a remedy that what claudebox runs in is its cause, if that refuses a system call.
func contained(err error) error {
	if !errors.Is(err, unix.ENOSYS) || diag.Remedy(err) != "" {
		return err
	}
	return &diag.Error{
		Op: "run in a sandbox or container that refuses system calls", Err: err, Remedy: "run claudebox outside of it",
	}
}

// run runs a command, or launches the agent.
func run(args []string, sys System) error {
	words, err := commandWords(args)
	switch {
	case err != nil:
		return err
	case words != nil:
		return runCommand(words, sys)
	}
	o, err := split(args)
	if err != nil {
		return err
	}
	switch {
	case o.Help:
		return runCommand([]string{"help"}, sys)
	case o.Version:
		return runCommand([]string{"version"}, sys)
	case o.Check:
		return checkLaunch(sys, o, "text")
	case isLone(args, o.Words) && isTerminal(sys.Stderr):
		diag.Note(sys.Stderr, o.Words[0]+" goes to the agent: claudebox has no such command (`claudebox help` lists them)")
	}
	return runLaunch(sys, o, nil)
}

// Version is set by the linker.
var Version = "dev"

// System has the standard streams and the path of the manifest, so that tests can give others.
type System struct {
	Stdin          *os.File
	Stdout, Stderr io.Writer
	Manifest       string // the manifest's file; it may not exist
}

// FromOS returns the process's own streams. For a program PREFIX/bin/claudebox the manifest is
// PREFIX/share/claudebox/manifest.json.
func FromOS() System {
	sys := System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if program, err := os.Executable(); err == nil {
		sys.Manifest = filepath.Join(filepath.Dir(filepath.Dir(program)), "share/claudebox/manifest.json")
	}
	return sys
}

// withoutCores keeps the kernel from handing a crash of what claudebox starts to the host's handler of core files, such
// as systemd-coredump, which runs as root outside of all namespaces: a limit of 1 byte is the sign for that
// (fs/coredump.c). Where the user's own hard limit is 0 it stays.
func withoutCores() {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1})
}

// secureDescriptors marks every descriptor from 3 on close-on-exec. It returns an error if a standard one would give
// the agent a part of the host: a folder (all below it, by /proc/self/fd/0/), a disk, or an O_PATH descriptor.
func secureDescriptors() error {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		const remedy = "use Linux 5.14 or newer, outside of containers that filter system calls"
		return &diag.Error{Op: "close inherited descriptors", Err: err, Remedy: remedy}
	}
	for fd, name := range []string{"standard input", "standard output", "standard error"} {
		if err := checkStandard(fd, name); err != nil {
			return err
		}
	}
	return nil
}

func checkStandard(fd int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil // nothing is open there, so nothing can be given away
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	kind := st.Mode & unix.S_IFMT
	if kind == unix.S_IFDIR || kind == unix.S_IFBLK || err == nil && flags&unix.O_PATH != 0 {
		return diag.Errorf("check "+name, "redirect it to a file, a pipe or /dev/null",
			"it is a folder or a device, which the agent could look into")
	}
	return nil
}
