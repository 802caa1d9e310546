// The runtime need not follow what the cgroups say of processors: this process
// waits, and the following takes a hundredth of a start.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Claudebox runs a coding agent in a bubblewrap sandbox, by a pinned plan. This
// program launches by a plan that is there, and begins quickly; for everything
// else claudebox-full takes its place.
package main

import (
	"os"

	"claudebox/internal/cli/start"
	_ "claudebox/internal/linux/stack"
)

func main() { os.Exit(start.Main(os.Args, start.FromOS(), start.ByPlan)) }
