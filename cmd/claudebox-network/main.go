// Claudebox-network belongs to claudebox, which starts it: in a sandbox's
// namespaces it makes the network there and becomes bwrap, and outside of them
// it serves that network. It is a program of its own because a stack of network
// protocols is in it, which no other start is to pay for.
package main

import (
	"encoding/json"
	"os"

	"claudebox/internal/network/flow"
	"claudebox/internal/network/link"
	"claudebox/internal/network/serve"
	"claudebox/internal/network/stage"
	"claudebox/internal/secret/swap"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == link.StageWord {
		os.Exit(stage.Main(os.Args[2:]))
	}
	os.Exit(serve.Main(func(config json.RawMessage, parent *os.File) (flow.Terminator, error) {
		return swap.NewTerminator(config, parent)
	}))
}
