package main

import (
	"golang.org/x/sys/unix"
)

// sockets are attempts to get a socket, or something like one, that no filter
// for TCP and UDP looks at.
var sockets = []attempt{
	{"raw ICMP socket", open(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	{"raw IP socket", open(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)},
	{"raw TCP socket", open(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP)},
	{"raw IPv6 socket", open(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW)},
	{"packet socket", open(unix.AF_PACKET, unix.SOCK_RAW, 0x0300)},
	{"packet socket without headers", open(unix.AF_PACKET, unix.SOCK_DGRAM, 0x0300)},
	{"vsock", open(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{"XDP socket", open(unix.AF_XDP, unix.SOCK_RAW, 0)},
	{"shared memory communications", open(unix.AF_SMC, unix.SOCK_STREAM, 0)},
	{"io_uring", call(unix.SYS_IO_URING_SETUP)},
	{"bpf", call(unix.SYS_BPF)},
}

func open(family, kind, protocol int) func(outlet) error {
	return func(outlet) error {
		return withSocket(family, kind, protocol, func(int) error { return nil })
	}
}
