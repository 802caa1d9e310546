package world

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// PacketSocket is a packet socket on a device of a process's network namespace.
// It is made by the rights that the tests have over all namespaces in their own:
// nobody in a sandbox has them.
func PacketSocket(process, device string) (fd, index int, err error) {
	err = onThread(func() error {
		ns, err := unix.Open("/proc/"+process+"/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("open", err)
		}
		defer unix.Close(ns)
		if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		link, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		index = link.Index
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return os.NewSyscallError("socket", err)
	})
	return fd, index, err
}
