package nixdaemon

import (
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownStore reports whether this user writes the store's database: Nix was
// installed for one user, and has no daemon.
func ownStore() bool { return unix.Access("/nix/var/nix/db", unix.W_OK) == nil }

// startLocal starts a daemon that serves one connection, and ends with it.
func startLocal(program string) (*net.UnixConn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "nix-daemon"), os.NewFile(uintptr(fds[1]), "claudebox")
	defer ours.Close()
	defer theirs.Close()
	cmd := exec.Command(program, "--stdio", "--option", "store", "local")
	cmd.Stdin, cmd.Stdout, cmd.Dir = theirs, theirs, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the agent
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait() }()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}
