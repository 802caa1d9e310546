// Command gen assembles the filters of package seccomp from the table in
// rules.go, for every architecture that claudebox is built for. Run it by
// go generate in package seccomp; a test fails when the files are stale. It
// is a program of its own so that claudebox links no assembler.
package main

import (
	"fmt"
	"log"
	"os"
)

// architectures are those claudebox is built for, by GOARCH.
var architectures = []string{"amd64", "arm64"}

func main() {
	for _, goarch := range architectures {
		if err := generate(goarch); err != nil {
			log.Fatalf("gen: %s: %v", goarch, err)
		}
	}
}

// generate writes the filter of goarch into the current folder.
func generate(goarch string) error {
	filter, err := assemble(goarch, rules)
	if err != nil {
		return err
	}
	return os.WriteFile(fileName(goarch), filter, 0o644)
}

// fileName is the file that package seccomp embeds for goarch.
func fileName(goarch string) string { return fmt.Sprintf("filter_%s.bpf", goarch) }
