package main

import (
	"fmt"
	"io"
	"net"
	"os"

	"claudebox/checks/promises/network/target"
)

// listen answers everybody who gets through, by TCP and UDP, until its input
// ends.
func listen() error {
	address := fmt.Sprintf(":%d", target.ListenPort)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(conn, "inside")
			conn.Close()
		}
	}()
	go func() {
		buffer := make([]byte, 64)
		for {
			_, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = c.WriteTo([]byte("inside\n"), from)
		}
	}()
	fmt.Println("listening")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
