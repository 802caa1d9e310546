// Probe is run inside sandboxes and tells what it finds there. It is built
// without cgo, so that nothing of the host has to be mounted for it.
package main

import (
	"fmt"
	"os"
	"slices"
)

// commands are what the probe can be asked for, by its first word. Each prints
// one line per finding.
var commands = map[string]func(words []string) error{
	"calls":  func([]string) error { return tryCalls() },
	"list":   func([]string) error { return list("/") },
	"search": func(words []string) error { return search(reversed(words[0])) },
	"talk":   func(words []string) error { return talk(words[0], words[1]) },
}

func main() {
	words := os.Args[1:]
	if len(words) > 0 && words[0] == "--dangerously-skip-permissions" {
		words = words[1:] // the probe stands in for Claude Code
	}
	if len(words) == 0 || commands[words[0]] == nil {
		fmt.Fprintln(os.Stderr, "probe: unknown word")
		os.Exit(2)
	}
	if err := commands[words[0]](words[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// reversed is how a canary is handed to the probe: as it is, the probe's own
// command line would be found.
func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
