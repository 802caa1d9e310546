// See cmd/claudebox.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Claudebox-devshell runs inside a sandbox, before the agent: it makes the environment of the
// project's dev shell, and becomes the agent. It is a program of its own because a small one
// begins sooner, and because it trusts nothing. As claudebox-why it asks why something is
// refused inside, as claudebox it says that this is outside.
package main

import (
	"os"
	"path"

	"claudebox/internal/nix/devshell"
	"claudebox/internal/sandbox/ask"
)

func main() {
	switch path.Base(os.Args[0]) {
	case ask.Name:
		os.Exit(ask.Main(os.Args[1:]))
	case ask.Box:
		os.Exit(ask.Outside(os.Args[1:]))
	}
	os.Exit(devshell.Main(os.Args[1:]))
}
