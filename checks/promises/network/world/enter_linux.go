// Package world makes hosts and worlds of network namespaces, without root, for
// tests. [Main] moves the test program into a user namespace in which it has the
// rights for that; programs that it starts by [World.Command] have none of them,
// and are who the user is.
package world

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	entered   = "CLAUDEBOX_WORLD" // set in the test program once it is in its user namespace
	stageName = "world-stage"     // argv[0] of the program that becomes a command on the host
)

// rights are the capabilities that making a world takes, over namespaces that
// belong to the test alone.
var rights = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN}

// Main runs the tests where they can make worlds, and returns their exit
// status. prepare is run once before, outside.
func Main(prepare func() error, run func() int) int {
	switch {
	case os.Args[0] == stageName:
		return becomeCommand()
	case Entered():
		return run()
	}
	if err := errors.Join(tunnels(), prepare()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return enter()
}

// Entered reports whether this is the program in its user namespace.
func Entered() bool { return os.Getenv(entered) != "" }

// tunnels reports whether claudebox will be able to make one.
func tunnels() error {
	device, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w: run checks/setup as root (it does `chmod 666 /dev/net/tun`)", err)
	}
	return device.Close()
}

// enter runs this program again, in namespaces of its own.
func enter() int {
	one := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), entered+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: one(os.Getuid()),
		GidMappings: one(os.Getgid()),
		AmbientCaps: rights,
		Pdeathsig:   syscall.SIGKILL,
	}
	runtime.LockOSThread() // Pdeathsig is tied to the thread
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT)
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	}
	fmt.Fprintf(os.Stderr, "make the world's user namespace: %v: these tests need user namespaces\n", err)
	return 1
}
