// Claudebox runs a coding agent in a bubblewrap sandbox, by a pinned plan.
package main

import (
	"os"

	"claudebox/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.FromOS())) }
