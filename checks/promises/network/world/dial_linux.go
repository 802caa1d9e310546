package world

import (
	"net"
	"strconv"
	"time"
)

// enough is how long an answer may take that is there at all. By TCP who is not
// there says so at once; by UDP nobody may.
var enough = map[string]time.Duration{"tcp": 20 * time.Second, "udp": time.Second}

// DialFromHost is the answer that somebody on the host gets from an address.
func (w *World) DialFromHost(network, addr string, port uint16) (string, error) {
	return w.host.dial(network, addr, port)
}

// DialFromOutside is the same for somebody on the LAN.
func (w *World) DialFromOutside(network, addr string, port uint16) (string, error) {
	return w.outside.dial(network, addr, port)
}

func (ns namespace) dial(network, addr string, port uint16) (answer string, err error) {
	err = ns.do(func() error {
		conn, err := net.DialTimeout(network, net.JoinHostPort(addr, strconv.Itoa(int(port))), enough[network])
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(enough[network])); err != nil {
			return err
		}
		if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
			return err
		}
		buffer := make([]byte, 1024)
		n, err := conn.Read(buffer)
		answer = string(buffer[:n])
		return err
	})
	return answer, err
}
