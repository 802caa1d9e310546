package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"claudebox/checks/promises/network/target"
)

// attempt is one try to change the rules or to go round them. It succeeds
// when it returns no error.
type attempt struct {
	name string
	try  func(out outlet) error
}

// kinds of attempts, each in a file of its own.
var kinds = []struct {
	name     string
	attempts []attempt
}{
	{"rights", rights},
	{"namespaces", namespaces},
	{"sockets", sockets},
	{"roundabout", roundabout},
}

// guarded are tried again after each attempt: a rule may have gone although the
// attempt complained.
var guarded = []string{"LAN", "LAN router", "metadata", "CGNAT", "ULA", "host LAN", "host loopback"}

// undo makes all attempts, or those of one kind. It prints for each its kind,
// name, what came of it, and what of the guarded answered after it.
func undo(words []string) error {
	for _, k := range kinds {
		if len(words) > 0 && words[0] != k.name {
			continue
		}
		for _, a := range k.attempts {
			out, err := findOutlet()
			if err != nil {
				return err
			}
			got := outcome("success", a.try(out))
			fmt.Printf("%s\t%s\t%s\t%s\n", k.name, a.name, got, strings.Join(leaks(out), ", "))
		}
	}
	return nil
}

// leaks lists what is guarded and answers nevertheless.
func leaks(out outlet) []string {
	plain := ways[0].within(impatience)
	var (
		group sync.WaitGroup
		lock  sync.Mutex
		found []string
	)
	for _, t := range target.All {
		if !slices.Contains(guarded, t.Name) {
			continue
		}
		group.Go(func() {
			if _, err := plain.reach(t, out); err == nil {
				lock.Lock()
				defer lock.Unlock()
				found = append(found, t.Name)
			}
		})
	}
	group.Wait()
	slices.Sort(found)
	return found
}
