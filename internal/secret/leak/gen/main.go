// Command gen makes the table of package leak from the rules of gitleaks
// (MIT, see LICENSE.gitleaks; gitleaks.toml is its file as released, v8.30.1)
// and from a few of our own. It takes those of gitleaks' rules that recognise a
// token by its beginning; the others look for a name next to it, and package leak
// judges names itself. Run gen by go generate in package leak; a test
// fails when the table is stale.
package main

import (
	_ "embed"
	"log"
	"os"
)

//go:embed gitleaks.toml
var gitleaks string

func main() {
	table, err := generate(gitleaks, own)
	if err == nil {
		err = os.WriteFile("table.go", table, 0o644)
	}
	if err != nil {
		log.Fatalf("gen: %v", err)
	}
}
