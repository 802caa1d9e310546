package network

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/network/hostnet"
)

// Pasta is what a pasta can do.
type Pasta struct {
	Lacks []string // words that a launch uses and it does not know
	Old   bool     // from before 2024: no DNS by TCP, slow uploads, now and then a stall
}

// AskPasta finds out what a pasta knows, word by word: its versions are dates
// that distributions leave out, and its help is cut when it goes to a pipe. A
// word that it knows ends with its version.
func AskPasta(program string) (Pasta, error) {
	if err := CheckTool(program); err != nil {
		return Pasta{}, err
	}
	if !knows(program) {
		return Pasta{}, diag.Errorf("run "+program+" --version", ownPasta, "it cannot be run, or is no pasta")
	}
	var p Pasta
	for _, option := range optionsOf(words(0, hostnet.Network{IPv4: true, IPv6: true})) {
		if !knows(program, option...) {
			p.Lacks = append(p.Lacks, option[0])
		}
	}
	p.Old = !knows(program, "--map-host-loopback", "none")
	return p, nil
}

// Suits reports whether launches can use this pasta.
func (p Pasta) Suits() error {
	if len(p.Lacks) > 0 {
		return diag.Errorf("use pasta", ownPasta, "it is too old: it has no %s", strings.Join(p.Lacks, ", "))
	}
	return nil
}

// optionsOf cuts a command line into options with their values, each once.
func optionsOf(line []string) [][]string {
	var options [][]string
	for _, word := range line[1 : len(line)-1] {
		if strings.HasPrefix(word, "--") {
			options = append(options, []string{word})
			continue
		}
		last := len(options) - 1
		options[last] = append(options[last], word)
	}
	slices.SortFunc(options, slices.Compare)
	return slices.CompactFunc(options, func(a, b []string) bool { return a[0] == b[0] })
}

// probeWait bounds a program that ought to answer at once.
const probeWait = 10 * time.Second

func knows(program string, option ...string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(option, "--version")...)
	cmd.Env = []string{}
	return cmd.Run() == nil
}
