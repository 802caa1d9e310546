package main

import (
	"fmt"
	"net"
	"time"
)

// talk connects and prints the first line that it hears, or why it could not.
func talk(network, address string) error {
	const enough = 3 * time.Second
	conn, err := net.DialTimeout(network, address, enough)
	if err != nil {
		fmt.Println("refused:", outcome(err))
		return nil
	}
	defer conn.Close()
	buffer := make([]byte, 256)
	n, _ := conn.Read(buffer)
	fmt.Printf("heard: %s\n", buffer[:n])
	return nil
}
