package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func firstNameserver(text string) (string, error) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "nameserver" {
			return f[1], nil
		}
	}
	return "", unix.ENOENT
}

// names resolves each of the words as a program would, and prints name and
// addresses, then the texts of names that start with "text:".
func names(words []string) error {
	resolver := net.Resolver{PreferGo: true}
	for _, word := range words {
		lookup := resolver.LookupHost
		name, isText := strings.CutPrefix(word, "text:")
		if isText {
			lookup = resolver.LookupTXT
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
		found, err := lookup(ctx, name)
		cancel()
		slices.Sort(found)
		fmt.Printf("%s\t%s\n", name, outcome(strings.Join(found, " "), err))
	}
	return nil
}
