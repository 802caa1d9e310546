package main

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"claudebox/checks/promises/network/target"
)

// converse does what each line of its input says, and ends each answer with a
// line of one dot:
//
//	reach ADDRESS:PORT  who answers there, a line for each way
//	hold ADDRESS:PORT   connects, and says nothing yet
//	use                 asks over the connection that is held
//	matrix              every target in every way
func converse() error {
	held := -1
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		word, rest, _ := strings.Cut(input.Text(), " ")
		var err error
		switch word {
		case "reach":
			err = reachAll(rest)
		case "hold":
			held, err = hold(rest)
		case "use":
			fmt.Println(outcome(request(held, patience)))
		case "matrix":
			err = matrix()
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			return err
		}
		fmt.Println(".")
	}
	return input.Err()
}

// parsed is an address that a line names, as a target.
func parsed(text string) (target.Target, outlet, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return target.Target{}, outlet{}, err
	}
	out, err := findOutlet()
	return target.Target{Addr: at.Addr(), Port: at.Port()}, out, err
}

func reachAll(text string) error {
	t, out, err := parsed(text)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	found := make([]string, len(ways))
	for i, w := range ways {
		if w.suits(t.Addr) && w.protocol != "icmp" {
			group.Go(func() {
				answer, err := w.within(impatience).reach(t, out)
				found[i] = fmt.Sprintf("%s\t%s\t%s\n", w.protocol, w.trick, outcome(answer, err))
			})
		}
	}
	group.Wait()
	fmt.Print(strings.Join(found, ""))
	return nil
}

func hold(text string) (int, error) {
	t, out, err := parsed(text)
	if err != nil {
		return -1, err
	}
	fd, err := way{kind: unix.SOCK_STREAM}.socket(t.Addr.Is6())
	if err != nil {
		return -1, err
	}
	return fd, connect(fd, socketAddress(t, t.Addr.Is6(), out), patience)
}
