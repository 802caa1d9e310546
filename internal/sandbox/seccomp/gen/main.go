// Command gen assembles the filters of package seccomp from the table in
// rules.go, for every architecture that claudebox is built for. Run it by
// go generate in package seccomp; a test fails when the files are stale.
package main

import (
	"log"
	"os"
)

// architectures are those claudebox is built for, by GOARCH.
var architectures = []string{"amd64", "arm64"}

func main() {
	for _, goarch := range architectures {
		filter, err := assemble(goarch, rules)
		if err == nil {
			err = os.WriteFile(fileName(goarch), filter, 0o644)
		}
		if err != nil {
			log.Fatalf("gen: %s: %v", goarch, err)
		}
	}
}

// fileName is the file that package seccomp embeds for goarch.
func fileName(goarch string) string { return "filter_" + goarch + ".bpf" }
