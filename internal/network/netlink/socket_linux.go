package netlink

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Socket is an open netlink socket, whoever made it. It is for one user at a
// time.
type Socket struct {
	fd     int
	number uint32 // of the last message
}

// On takes a socket over.
func On(fd int) *Socket { return &Socket{fd: fd} }

// Open makes a socket here that hears of these groups (RTMGRP_…).
func Open(protocol int, groups uint32) (*Socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return On(fd), nil
}

// FD is the descriptor, to wait on.
func (s *Socket) FD() int { return s.fd }

// Close closes the socket.
func (s *Socket) Close() error { return unix.Close(s.fd) }

// answerWait bounds, in milliseconds, what the kernel may take. It answers
// while it is asked; only its memory may keep it.
const answerWait = 5000

// Ask sends requests, as one, and waits until the kernel has acknowledged the
// last, which must ask for it. The first fault that the kernel names is the
// error.
func (s *Socket) Ask(requests ...Message) error {
	first, err := s.send(requests)
	if err != nil {
		return err
	}
	for {
		list, err := s.read(first)
		if err != nil {
			return err
		}
		for _, a := range list {
			if a.Type != unix.NLMSG_ERROR {
				continue
			}
			if err := a.failure(); err != nil {
				return err
			}
			if a.Sequence == s.acknowledged(requests) {
				return nil
			}
		}
	}
}

// acknowledged is the number of the last request that asks for an
// acknowledgement.
func (s *Socket) acknowledged(requests []Message) uint32 {
	for i := len(requests) - 1; i >= 0; i-- {
		if binary.NativeEndian.Uint16(requests[i][6:])&unix.NLM_F_ACK != 0 {
			return s.number - uint32(len(requests)-1-i)
		}
	}
	panic("bug: no request asks for an acknowledgement")
}

// Dump asks for a table, and returns what is in it. Its error is EINTR when
// the table changed meanwhile, so that some of it may be missing.
func (s *Socket) Dump(request Message) ([]Answer, error) {
	first, err := s.send([]Message{request})
	if err != nil {
		return nil, err
	}
	var all []Answer
	var torn error
	for {
		list, err := s.read(first)
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			if a.Flags&unix.NLM_F_DUMP_INTR != 0 {
				torn = unix.EINTR
			}
			switch a.Type {
			case unix.NLMSG_DONE:
				return all, torn
			case unix.NLMSG_ERROR:
				return nil, cmp.Or(a.failure(), error(unix.EBADMSG))
			}
			all = append(all, a)
		}
	}
}

// Drain takes what the kernel has told by itself, and reports whether there was
// anything. Its error is ENOBUFS when some was lost.
func (s *Socket) Drain() (told bool, err error) {
	piece := make([]byte, 1<<14)
	for {
		_, _, err := unix.Recvfrom(s.fd, piece, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return told, nil
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return true, err
		}
		told = true
	}
}

// send numbers the requests and returns the first number.
func (s *Socket) send(requests []Message) (first uint32, err error) {
	first = s.number + 1
	var all []byte
	for _, m := range requests {
		s.number++
		binary.NativeEndian.PutUint32(m, uint32(len(m)))
		binary.NativeEndian.PutUint32(m[8:], s.number)
		all = append(all, m...)
	}
	return first, unix.Sendto(s.fd, all, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// read waits for answers to requests from this number on. Older ones belong
// to a request that failed half-way.
func (s *Socket) read(first uint32) ([]Answer, error) {
	for {
		size, _, err := unix.Recvfrom(s.fd, nil, unix.MSG_PEEK|unix.MSG_TRUNC)
		if errors.Is(err, unix.EAGAIN) {
			err = s.wait()
			if err == nil {
				continue
			}
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		piece := make([]byte, size)
		if _, _, err := unix.Recvfrom(s.fd, piece, 0); err != nil {
			return nil, err
		}
		list := answers(piece)
		if len(list) > 0 && list[0].Sequence >= first {
			return list, nil
		}
	}
}

func (s *Socket) wait() error {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, answerWait)
	if err == nil && n == 0 {
		return fmt.Errorf("the kernel does not answer")
	}
	return err
}
