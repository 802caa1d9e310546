package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
)

// relayed is traffic through a relay, a process of its own that reads and writes and does nothing else: what any
// network in user space costs at least.
func relayed(words []string) error {
	if len(words) != 2 {
		return fmt.Errorf("relayed takes a kind and an address")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	kind, address := words[0], words[1]
	go func() {
		for {
			inner, err := l.Accept()
			if err != nil {
				return
			}
			outer, err := net.Dial("tcp", address)
			if err != nil {
				inner.Close()
				continue
			}
			go pass(inner, outer)
			go pass(outer, inner)
		}
	}()
	client := exec.Command("/proc/self/exe", "traffic", kind, l.Addr().String())
	client.Stdout, client.Stderr = os.Stdout, os.Stderr
	client.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return client.Run()
}

// pass copies one direction without splice(2), which a network in user space cannot use.
func pass(to, from net.Conn) {
	defer to.Close()
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 256<<10))
}
