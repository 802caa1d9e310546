// Adapting GOMAXPROCS to cgroups would slow the start, see cmd/claudebox.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Claudebox-network is started by claudebox to serve a sandbox's network from
// outside. It is a program of its own because it links a stack of network
// protocols, which would slow the starts of claudebox that do not need it.
package main

import (
	"encoding/json"
	"os"

	"claudebox/internal/network/flow"
	"claudebox/internal/network/serve"
	"claudebox/internal/secret/swap"
)

func main() {
	os.Exit(serve.Main(func(config json.RawMessage, roots []byte, parent *os.File) (flow.Answerer, error) {
		return swap.NewAnswerer(config, roots, parent)
	}))
}
