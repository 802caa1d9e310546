// Gen writes the manual pages into a folder: go run ./internal/cli/manual/gen DIR.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"claudebox/internal/cli"
	"claudebox/internal/cli/manual"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: gen DIR")
	}
	starter, err := profile.Starter("work")
	if err != nil {
		return err
	}
	planPage, err := manual.Plan(plan.Schema(), profile.Schema())
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"claudebox.1":         manual.Command(cli.Tree()),
		"claudebox-profile.5": manual.Profile(profile.Schema(), starter),
		"claudebox-plan.5":    planPage,
	} {
		if err := os.WriteFile(filepath.Join(args[0], name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
