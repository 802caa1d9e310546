// See cmd/claudebox.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Claudebox-devshell runs inside a sandbox, before the agent: it makes the environment of the
// project's dev shell, and becomes the agent. It is a program of its own because a small one
// begins sooner, and because it trusts nothing.
package main

import (
	"os"

	"claudebox/internal/nix/devshell"
)

func main() { os.Exit(devshell.Main(os.Args[1:])) }
