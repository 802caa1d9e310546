// The runtime need not ask the cgroups how many processors it may use: this
// process waits, and the asking takes a fiftieth of a start.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Claudebox runs a coding agent in a bubblewrap sandbox, by a pinned plan.
package main

import (
	"os"

	"claudebox/internal/cli"
)

func main() {
	growStack(false)
	os.Exit(cli.Main(os.Args[1:], cli.FromOS()))
}
