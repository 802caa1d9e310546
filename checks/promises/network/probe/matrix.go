package main

import (
	"fmt"
	"sync"

	"claudebox/checks/promises/network/target"
)

// matrix tries every target in every way, and prints target, protocol, trick
// and what came of it.
func matrix() error {
	out, err := findOutlet()
	if err != nil {
		return err
	}
	var (
		group sync.WaitGroup
		lines sync.Mutex
	)
	try := func(name, protocol, trick string, attempt func() (string, error)) {
		group.Go(func() {
			got := outcome(attempt())
			lines.Lock()
			defer lines.Unlock()
			fmt.Printf("%s\t%s\t%s\t%s\n", name, protocol, trick, got)
		})
	}
	for _, t := range target.All {
		t.Addr = out.address(t)
		if !t.Addr.IsValid() {
			continue // no gateway, no target
		}
		for _, way := range ways {
			if way.suits(t.Addr) {
				try(t.Name, way.protocol, way.trick, func() (string, error) { return way.reach(t, out) })
			}
		}
	}
	for _, way := range abstractWays {
		try("host abstract", way.protocol, "plain", way.reach)
	}
	group.Wait()
	return nil
}
