// Probe runs inside sandboxes and tells what it can reach there, and what it
// can undo. It is built without cgo, so that nothing of the host has to be
// mounted for it. Each finding is one line of fields with tabs between.
package main

import (
	"fmt"
	"os"
)

// commands are what the probe can be asked for, by its first word.
var commands = map[string]func(words []string) error{
	"converse": func([]string) error { return converse() },
	"matrix":   func([]string) error { return matrix() },
	"undo":     undo,
	"names":    names,
	"listen":   func([]string) error { return listen() },
	"traffic":  traffic,
	"digest":   digest,
	"relayed":  relayed,
	"now":      func([]string) error { return now() },
	"nothing":  func([]string) error { return nil },
}

func main() {
	words := os.Args[1:]
	if len(words) == 0 || commands[words[0]] == nil {
		fmt.Fprintln(os.Stderr, "probe: unknown word")
		os.Exit(2)
	}
	if err := commands[words[0]](words[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}
