package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a TCP socket of this network namespace.
type socket struct {
	local, remote netip.AddrPort
	listens       bool
	uid, inode    uint32 // inode 0: no process has it, for it is not accepted yet, or closed
}

// atPort returns the sockets whose local port is port, those that listen before those that a listening one accepted.
// It asks the kernel by sock_diag(7): /proc/net/tcp is read in pieces, between which a socket can be missed.
func atPort(port uint16) (list []socket, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("sock_diag", err)
	}
	defer unix.Close(fd)
	const patience = 5 * time.Second
	late := unix.NsecToTimeval(patience.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &late); err != nil {
		return nil, os.NewSyscallError("sock_diag", err)
	}
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} { // one of IPv6 accepts IPv4, too
		if err := unix.Sendto(fd, question(family, port), 0, kernel); err != nil {
			return nil, os.NewSyscallError("sock_diag", err)
		}
		some, err := answers(fd)
		if errors.Is(err, unix.ENOENT) && family == unix.AF_INET6 { // the kernel has no IPv6
			break
		}
		if err != nil {
			return nil, os.NewSyscallError("sock_diag", err)
		}
		list = append(list, some...)
	}
	return list, nil
}

// identity is struct inet_diag_sockid. Ports and addresses are in the network's order.
type identity struct {
	Source, Destination               [2]byte
	SourceAddress, DestinationAddress [16]byte
	Interface                         uint32
	Cookie                            [2]uint32
}

// question is a struct inet_diag_req_v2 that asks for all sockets at a port.
func question(family uint8, port uint16) []byte {
	const everyState = ^uint32(0)
	id := identity{}
	binary.BigEndian.PutUint16(id.Source[:], port)
	body := new(bytes.Buffer)
	_ = binary.Write(body, binary.NativeEndian, struct {
		Family, Protocol, Extensions, _ uint8
		States                          uint32
		ID                              identity
	}{Family: family, Protocol: unix.IPPROTO_TCP, States: everyState, ID: id})
	whole := new(bytes.Buffer)
	_ = binary.Write(whole, binary.NativeEndian, unix.NlMsghdr{
		Len: uint32(unix.SizeofNlMsghdr + body.Len()), Type: unix.SOCK_DIAG_BY_FAMILY,
		Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP,
	})
	return append(whole.Bytes(), body.Bytes()...)
}

// answers reads the answers to one question.
func answers(fd int) (list []socket, err error) {
	const enough = 64 << 10 // bytes; the kernel sends less at a time
	buffer := make([]byte, enough)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if m.Header.Type == unix.NLMSG_DONE || m.Header.Type == unix.NLMSG_ERROR {
				if code := int32(binary.NativeEndian.Uint32(m.Data)); code != 0 {
					return nil, unix.Errno(-code)
				}
				return list, nil
			}
			s, err := parse(m.Data)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
}

// parse reads a struct inet_diag_msg.
func parse(data []byte) (socket, error) {
	var in struct {
		Family, State, Timer, Retransmits    uint8
		ID                                   identity
		Expires, ToRead, ToWrite, UID, Inode uint32
	}
	if err := binary.Read(bytes.NewReader(data), binary.NativeEndian, &in); err != nil {
		return socket{}, err
	}
	address := func(bytes [16]byte, port [2]byte) netip.AddrPort {
		a := netip.AddrFrom16(bytes)
		if in.Family == unix.AF_INET {
			a = netip.AddrFrom4([4]byte(bytes[:4]))
		}
		return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(port[:]))
	}
	const listen = 10 // TCP_LISTEN
	return socket{
		local: address(in.ID.SourceAddress, in.ID.Source), remote: address(in.ID.DestinationAddress, in.ID.Destination),
		listens: in.State == listen, uid: in.UID, inode: in.Inode,
	}, nil
}
