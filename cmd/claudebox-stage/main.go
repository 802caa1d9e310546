// See cmd/claudebox.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Claudebox-stage is started by claudebox in a sandbox's namespaces: it makes
// the network there, and ends. It is a program of its own because every start
// waits for it, and a small one begins sooner.
package main

import (
	"os"

	"claudebox/internal/network/stage"
)

func main() { os.Exit(stage.Main(os.Args[1:])) }
