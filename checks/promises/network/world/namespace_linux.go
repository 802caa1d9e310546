package world

import (
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace. It lasts as long as its descriptor, a
// socket or a process in it.
type namespace struct{ file *os.File }

func newNamespace() (namespace, error) {
	var ns namespace
	err := onThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		ns.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return ns, err
}

// do runs f on a thread that is in the namespace. Sockets that f makes stay
// there; a process that f starts must not ask for a signal when the thread
// ends.
func (ns namespace) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(ns.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return f()
	})
}

// onThread runs f on a thread that nothing else will run on: Go ends it, as it
// is still locked when its goroutine is done.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

func (ns namespace) listen(network, address string) (l net.Listener, err error) {
	err = ns.do(func() error { l, err = net.Listen(network, address); return err })
	return l, err
}

func (ns namespace) listenPacket(network, address string) (c net.PacketConn, err error) {
	err = ns.do(func() error { c, err = net.ListenPacket(network, address); return err })
	return c, err
}
