package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() { os.Exit(run(os.Stdout, os.Stderr)) }

func run(stdout, stderr io.Writer) int {
	rounds := flag.Int("n", 50, "rounds of each measurement")
	only := flag.String("only", "", "make one measurement alone: "+names())
	before := flag.String("against", "", "compare starts with those of another claudebox, at this path")
	flag.Parse()
	if err := measure(stdout, *rounds, *only, *before); err != nil {
		fmt.Fprintln(stderr, "benchmark:", err)
		return 1
	}
	return 0
}

func measure(out io.Writer, rounds int, only, before string) error {
	w, err := newWorld(os.Getenv("CLAUDEBOX_BIN"))
	if err != nil {
		return err
	}
	defer w.remove()
	if before == "" {
		return w.report(out, rounds, only)
	}
	other, err := newWorld(before)
	if err != nil {
		return err
	}
	defer other.remove()
	return w.against(other, out, rounds)
}

// measurements are made in this order.
var measurements = []struct {
	name string
	make func(*world, io.Writer, int) error
}{
	{"start", (*world).start},
	{"tiers", (*world).tiers},
	{"inet", (*world).inet},
	{"downloads", (*world).downloads},
	{"secrets", (*world).secrets},
	{"project", (*world).project},
	{"branch", (*world).branch},
	{"adopting", (*world).adopting},
	{"own", (*world).own},
	{"plan", (*world).plan},
	{"mounts", (*world).mounts},
	{"packages", (*world).packages},
	{"nix", (*world).nix},
	{"builds", (*world).builds},
	{"parent", (*world).parent},
}

func names() string {
	var list []string
	for _, m := range measurements {
		list = append(list, m.name)
	}
	return strings.Join(list, ", ")
}

// report makes the measurements and prints the row of each as soon as it is
// there.
func (w *world) report(out io.Writer, rounds int, only string) error {
	fmt.Fprintln(out, "| what | claudebox | compared with | ratio |")
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: |")
	for _, m := range measurements {
		if only != "" && m.name != only {
			continue
		}
		if err := m.make(w, out, rounds); err != nil {
			return err
		}
	}
	return method(out, rounds)
}

// start is the reference: an agent that does nothing, without a Nix daemon
// inside and with every default.
func (w *world) start(out io.Writer, rounds int) error {
	if err := w.againstBwrap(out, "start and end of `true`", w.profile("plain", "nix: {daemon: off}\n"), rounds); err != nil {
		return err
	}
	return w.againstBwrap(out, "a start with every default", w.profile("defaults", ""), rounds)
}

func (w *world) mounts(out io.Writer, rounds int) error {
	for _, n := range counts {
		text := "mounts:\n"
		for i := range n {
			dir := filepath.Join(w.home, "m", fmt.Sprint(i))
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			text += "  - {host: " + dir + ", mode: ro}\n"
		}
		name := fmt.Sprintf("a start with %d mounts more", n)
		if err := w.againstBwrap(out, name, w.profile("mounts", text), fewer(rounds, n)); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) packages(out io.Writer, rounds int) error {
	names, err := w.addPackages(counts[len(counts)-1])
	if err != nil {
		return err
	}
	for _, n := range counts {
		text := "packages:\n"
		for _, name := range names[:n] {
			text += "  - " + name + "\n"
		}
		name := fmt.Sprintf("a start with %d packages more", n)
		if err := w.againstBwrap(out, name, w.profile("packages", text), fewer(rounds, n)); err != nil {
			return err
		}
	}
	return nil
}

var counts = []int{10, 100, 1000}

// fewer rounds will do where one takes long.
func fewer(rounds, n int) int {
	if n >= 1000 {
		return max(3, rounds/5)
	}
	return rounds
}

func (w *world) plan(out io.Writer, rounds int) error {
	plan := w.command("plan", "-P", w.profile("plain", ""))
	times, err := takeTurns(rounds, plan)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| `claudebox plan` | %s | | |\n", times[0])
	return nil
}
