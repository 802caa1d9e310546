package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	"claudebox/checks/network/target"
)

// brief tries all that one broken rule could open or close, in few ways: every target, a sample of every range, the sandbox's own
// loopback, the resolvers. It prints a line for each.
func brief() error {
	out, err := findOutlet()
	if err != nil {
		return err
	}
	var (
		group sync.WaitGroup
		lock  sync.Mutex
	)
	try := func(name string, attempt func() (string, error)) {
		group.Go(func() {
			got := outcome(attempt())
			lock.Lock()
			defer lock.Unlock()
			fmt.Printf("%s\t%s\n", name, got)
		})
	}
	for _, t := range slices.Concat(target.All, target.Samples()) {
		t.Addr = out.address(t)
		if !t.Addr.IsValid() {
			continue
		}
		for _, w := range ways {
			if w.brief && w.suits(t.Addr) && !(w.control && t.Addr.IsUnspecified()) { // that alone is met by silence
				try(t.Name+"\t"+w.protocol+"\t"+w.trick, func() (string, error) { return w.reach(t, out) })
			}
		}
	}
	for _, own := range []string{"127.0.0.1", "::1"} {
		try("own loopback\ttcp\t"+own, func() (string, error) { return overLoopback(own) })
	}
	for _, server := range ownResolvers {
		for _, network := range []string{"udp", "tcp"} {
			try("resolver\t"+network+"\t"+server, func() (string, error) { return "answers", query(network, server, patience) })
		}
	}
	group.Wait()
	return nil
}

// ownResolvers are where tier inet answers names.
var ownResolvers = []string{"169.254.1.1", "2001:db8:cb::53"}

func overLoopback(address string) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return "", err
	}
	return "answers", conn.Close()
}
