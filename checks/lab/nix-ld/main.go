// Command nix-ld is the lab's stand-in for nix-ld: it stands where programs
// built elsewhere look for their loader and runs them by the loader and the
// libraries that NIX_LD and NIX_LD_LIBRARY_PATH name. The real one maps the
// loader into the same process; this one runs it, so that /proc/self/exe is
// the loader afterwards.
package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	loader := os.Getenv("NIX_LD")
	program, err := os.Readlink("/proc/self/exe")
	if loader == "" || err != nil {
		fmt.Fprintln(os.Stderr, "nix-ld: NIX_LD names no loader, or /proc is missing")
		os.Exit(127)
	}
	args := append([]string{
		loader, "--library-path", os.Getenv("NIX_LD_LIBRARY_PATH"), "--argv0", os.Args[0], program,
	}, os.Args[1:]...)
	err = syscall.Exec(loader, args, os.Environ())
	fmt.Fprintf(os.Stderr, "nix-ld: run %s: %v\n", loader, err)
	os.Exit(127)
}
