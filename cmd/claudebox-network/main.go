// See cmd/claudebox.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Claudebox-network belongs to claudebox, which starts it to serve a sandbox's
// network from outside. It is a program of its own because a stack of network
// protocols is in it, which no other start is to pay for.
package main

import (
	"encoding/json"
	"os"

	"claudebox/internal/network/flow"
	"claudebox/internal/network/serve"
	"claudebox/internal/secret/swap"
)

func main() {
	os.Exit(serve.Main(func(config json.RawMessage, roots []byte, parent *os.File) (flow.Terminator, error) {
		return swap.NewTerminator(config, roots, parent)
	}))
}
