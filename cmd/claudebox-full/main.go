// The same as in cmd/claudebox.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Claudebox-full is the whole of claudebox: launches, commands, profiles. It is
// installed as libexec/claudebox.
package main

import (
	"os"

	"claudebox/internal/cli"
	"claudebox/internal/cli/start"
)

func main() { os.Exit(cli.Main(os.Args, start.FromOS())) }
