// Package upstream asks a proxy of the user's network for connections: by
// CONNECT of HTTP (RFC 9110, 9.3.6) or by SOCKS 5 (RFC 1928), always with the
// host's name, which the proxy looks up.
package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

// Proxy is a proxy without a password. The zero value means: connect directly.
type Proxy struct {
	Address string // HOST:PORT
	socks   bool
}

// Parse reads http://HOST:PORT or socks5://HOST:PORT; an empty text means no proxy. A
// password is an error: it does not belong in profiles and plans.
func Parse(text string) (Proxy, error) {
	if text == "" {
		return Proxy{}, nil
	}
	// This comes first because the other errors show the text: "user:password@host:80" has the scheme "user".
	if strings.Contains(text, "@") {
		return Proxy{}, errors.New("a proxy's user and password cannot be named here, where everybody reads them")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return Proxy{}, errors.New("not a proxy URL; expected http://HOST:PORT or socks5://HOST:PORT")
	case u.Scheme != "http" && u.Scheme != "socks5":
		return Proxy{}, fmt.Errorf("%q is not a proxy URL; expected http://HOST:PORT or socks5://HOST:PORT", text)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return Proxy{}, fmt.Errorf("%q has more than a host and a port", text)
	}
	if strings.Trim(u.Host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]") != "" {
		return Proxy{}, fmt.Errorf("%q has characters that a host name cannot have", u.Host)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 || u.Hostname() == "" {
		return Proxy{}, fmt.Errorf("%q has no host with a port", text)
	}
	return Proxy{Address: u.Host, socks: u.Scheme == "socks5"}, nil
}

// Refused means that the proxy refused. Its message is for people, and contains nothing
// that the proxy wrote.
type Refused struct{ why string }

func (r *Refused) Error() string { return r.why }

// Connect has the proxy at the other end of conn connect to a host. All bytes
// that follow on conn are the host's. The error is one of conn, a
// [Refused], or the errno that connect(2) would give.
func (p Proxy) Connect(conn io.ReadWriter, name string, port uint16) error {
	if p.socks {
		return connectSOCKS(conn, name, port)
	}
	return connectHTTP(conn, name, port)
}

func connectHTTP(conn io.ReadWriter, name string, port uint16) error {
	to := name + ":" + strconv.Itoa(int(port))
	if _, err := io.WriteString(conn, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n"); err != nil {
		return err
	}
	status, err := readStatus(conn)
	switch {
	case err != nil:
		return err
	case status >= 200 && status < 300:
		return nil
	case status == 502 || status == 503 || status == 504:
		return syscall.EHOSTUNREACH
	}
	return &Refused{fmt.Sprintf("the proxy refused: HTTP status %d", status)}
}

// readStatus reads the head of an answer, one byte at a time: the bytes that follow
// are the host's.
func readStatus(r io.Reader) (int, error) {
	const longest = 16 << 10
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); {
		if len(head) == longest {
			return 0, &Refused{"the proxy's answer is not HTTP, or too long"}
		}
		if _, err := io.ReadFull(r, one); err != nil {
			return 0, err
		}
		head = append(head, one[0])
	}
	words := strings.Fields(string(head[:bytes.IndexByte(head, '\n')]))
	if len(words) < 2 || !strings.HasPrefix(words[0], "HTTP/1.") {
		return 0, &Refused{"the proxy's answer is not HTTP"}
	}
	status, err := strconv.Atoi(words[1])
	if err != nil || len(words[1]) != 3 {
		return 0, &Refused{"the proxy's answer is not HTTP"}
	}
	return status, nil
}

// Byte values of RFC 1928.
const (
	version5    = 5
	noPassword  = 0
	toConnect   = 1
	addressName = 3
	addressIPv4 = 1
	addressIPv6 = 4
	longestName = 255
)

func connectSOCKS(conn io.ReadWriter, name string, port uint16) error {
	if len(name) > longestName {
		return &Refused{"the name is too long for SOCKS"}
	}
	if _, err := conn.Write([]byte{version5, 1, noPassword}); err != nil {
		return err
	}
	var chosen [2]byte
	if _, err := io.ReadFull(conn, chosen[:]); err != nil {
		return err
	}
	if chosen != [2]byte{version5, noPassword} {
		return &Refused{"the proxy wants a password, or is not SOCKS 5"}
	}
	request := append([]byte{version5, toConnect, 0, addressName, byte(len(name))}, name...)
	if _, err := conn.Write(append(request, byte(port>>8), byte(port))); err != nil {
		return err
	}
	var answer [4]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if answer[0] != version5 {
		return &Refused{"the proxy's answer is not SOCKS 5"}
	}
	if err := socksError(answer[1]); err != nil {
		return err
	}
	return skipAddress(conn, answer[3])
}

// socksError returns the error for a reply (RFC 1928, 6); nil for success.
func socksError(reply byte) error {
	switch reply {
	case 0:
		return nil
	case 3:
		return syscall.ENETUNREACH
	case 4:
		return syscall.EHOSTUNREACH
	case 5:
		return syscall.ECONNREFUSED
	}
	return &Refused{fmt.Sprintf("the proxy refused: SOCKS reply %d", reply)}
}

// skipAddress reads the address and port that end a reply.
func skipAddress(r io.Reader, kind byte) error {
	size := 0
	switch kind {
	case addressIPv4:
		size = 4
	case addressIPv6:
		size = 16
	case addressName:
		var length [1]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return err
		}
		size = int(length[0])
	default:
		return &Refused{"the proxy's answer is not SOCKS 5"}
	}
	_, err := io.ReadFull(r, make([]byte, size+2))
	return err
}
