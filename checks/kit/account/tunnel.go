package account

import (
	"errors"
	"io"
	"net"
	"net/http"
)

// tunnel joins the client of a CONNECT request with an address on loopback,
// until one of them leaves.
func tunnel(w http.ResponseWriter, address string) error {
	inside, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer inside.Close()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return errors.New("bug: connection cannot be taken over")
	}
	client, buffered, err := hijacker.Hijack()
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return nil //nolint:nilerr // the client has left, and nobody is there to be told
	}
	done := make(chan struct{}, 2)
	copyOne := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go copyOne(inside, buffered)
	go copyOne(client, inside)
	<-done
	return nil
}
