package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

// requests sends each line of its input, a quoted string, to the proxy of tier
// allow, on a connection of its own, and prints what comes back, quoted, in the
// order of the lines.
func requests() error {
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		return err
	}
	var (
		group   sync.WaitGroup
		answers []*string
	)
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		request, err := strconv.Unquote(input.Text())
		if err != nil {
			return err
		}
		answer := new(string)
		answers = append(answers, answer)
		group.Go(func() { *answer = talk(proxy.Host, request) })
	}
	group.Wait()
	for _, a := range answers {
		fmt.Println(strconv.Quote(*a))
	}
	return nil
}

// talk hears until the other side has closed, or is silent for a while.
func talk(address, request string) string {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		return err.Error()
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err.Error()
	}
	answer, _ := io.ReadAll(conn)
	return string(answer)
}
