package main

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connect waits for a connection on a socket that does not block.
func connect(fd int, to unix.Sockaddr, wait time.Duration) error {
	err := unix.Connect(fd, to)
	if !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	if err := await(fd, unix.POLLOUT, wait); err != nil {
		return err
	}
	number, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && number != 0 {
		err = syscall.Errno(number)
	}
	return err
}

// receive is what arrives within a time, or EAGAIN.
func receive(fd int, wait time.Duration) ([]byte, error) {
	if err := await(fd, unix.POLLIN, wait); err != nil {
		return nil, err
	}
	buffer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buffer, 0)
	return buffer[:max(n, 0)], err
}

// await is EAGAIN when nothing happens.
func await(fd int, events int16, wait time.Duration) error {
	for end := time.Now().Add(wait); ; {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, int(max(time.Until(end), 0).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case ready == 0:
			return unix.EAGAIN
		default:
			return nil
		}
	}
}
