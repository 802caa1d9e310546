// Claudebox-stage belongs to claudebox, which starts it in a sandbox's
// namespaces: it makes the network there and becomes bwrap. It is a program of
// its own because every start waits for it, and a small one begins sooner.
package main

import (
	"os"

	"claudebox/internal/network/stage"
)

func main() { os.Exit(stage.Main(os.Args[1:])) }
