package proxy

import (
	"errors"
	"net/netip"
)

// Words of SOCKS5 (RFC 1928).
const (
	socks5  = 5
	socks4  = 4
	noLogin = 0

	cmdConnect = 1

	addressIPv4 = 1
	addressName = 3
	addressIPv6 = 4

	socksDone        = 0
	socksNotAllowed  = 2
	socksUnreachable = 4
	socksNoCommand   = 7
)

var errSOCKS = errors.New("not SOCKS5 without a login")

// socksTarget does the first two steps of SOCKS5. The host has to be a name:
// it is judged whole, as it came with its length, NUL bytes included.
func (c *client) socksTarget() (target, error) {
	begin, err := c.take(2)
	if err != nil {
		return target{}, err
	}
	methods, err := c.take(int(begin[1]))
	if err != nil {
		return target{}, err
	}
	if !contains(methods, noLogin) {
		c.Write([]byte{socks5, 0xff})
		return target{}, errSOCKS
	}
	if _, err := c.Write([]byte{socks5, noLogin}); err != nil {
		return target{}, err
	}
	request, err := c.take(4)
	if err != nil {
		return target{}, err
	}
	version, command, kind := request[0], request[1], request[3]
	if version != socks5 || request[2] != 0 {
		return target{}, errSOCKS
	}
	c.refuse = c.socksReply
	t, err := c.socksAddress(kind)
	if command != cmdConnect && err == nil {
		return target{}, &refusal{status: socksNoCommand, what: t.String(), why: "SOCKS for something else than a TCP connection"}
	}
	return t, err
}

func (c *client) socksAddress(kind byte) (target, error) {
	size := 0
	switch kind {
	case addressIPv4:
		size = 4
	case addressIPv6:
		size = 16
	case addressName:
		length, err := c.take(1)
		if err != nil {
			return target{}, err
		}
		size = int(length[0])
	default:
		return target{}, errSOCKS
	}
	host, err := c.take(size)
	if err != nil {
		return target{}, err
	}
	text := string(host)
	number, err := c.take(2)
	if err != nil {
		return target{}, err
	}
	port := int(number[0])<<8 | int(number[1])
	if kind == addressName {
		return makeTarget(text, text, port)
	}
	address, _ := netip.AddrFromSlice([]byte(text))
	return target{}, addressTarget(address, port)
}

// socksReply answers a request, with no or by a nil error with yes. The bound
// address is not told.
func (c *client) socksReply(err error) {
	code := byte(socksDone)
	var no *refusal
	switch {
	case errors.As(err, &no) && no.status == socksNoCommand:
		code = socksNoCommand
	case no != nil:
		code = socksNotAllowed
	case err != nil:
		code = socksUnreachable
	}
	c.Write([]byte{socks5, code, 0, addressIPv4, 0, 0, 0, 0, 0, 0})
}

func contains(list []byte, b byte) bool {
	for _, c := range list {
		if c == b {
			return true
		}
	}
	return false
}
