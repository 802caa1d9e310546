// Go's runtime need not adapt GOMAXPROCS to the CPU limits of cgroups: this process
// mostly waits, and adapting takes a hundredth of a start.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Claudebox runs a coding agent in a bubblewrap sandbox, by a pinned plan.
package main

import (
	"os"
	"runtime/debug"

	"claudebox/internal/cli"
	"claudebox/internal/session"
)

func main() {
	debug.SetGCPercent(session.Brief)
	os.Exit(cli.Main(os.Args, cli.FromOS()))
}
