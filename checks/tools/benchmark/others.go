package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"claudebox/internal/plan/resolve"
)

// builds measures what a shell script would do for the base packages: one
// `nix build` each. Nothing is built or fetched any more by then.
func (w *world) builds(out io.Writer, rounds int) error {
	nix := w.manifest.Tools[resolve.ToolNix]
	var ways []way
	for _, attribute := range w.manifest.Base {
		ways = append(ways, func() (*exec.Cmd, error) {
			return exec.Command(nix, "--extra-experimental-features", "nix-command", "build", "--no-link", "--offline",
				"--file", w.manifest.Nixpkgs.Path, attribute), nil
		})
	}
	times, err := takeTurns(max(3, rounds/10), ways...)
	if err != nil {
		return err
	}
	var sum duration
	for _, t := range times {
		sum += t
	}
	fmt.Fprintf(out, "| the %d base packages | in the start above | `nix build --no-link`, one each: %s | |\n", len(ways), sum)
	return nil
}

// parent looks at the memory of a claudebox whose agent waits.
func (w *world) parent(out io.Writer, _ int) error {
	words := []string{"-P", w.profileOf("waiting", "sleep, inf", ""), "--yes"}
	time.Sleep(settled)
	for _, start := range []string{"cold", "warm"} {
		memory, err := w.waiting(words)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| memory of the waiting parent, %s start | %s | | |\n", start, memory)
	}
	return nil
}

// waiting is the memory of a claudebox whose agent has been waiting for a
// while.
func (w *world) waiting(words []string) (string, error) {
	cmd := exec.Command(w.home+"/bin/claudebox", words...)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	time.Sleep(3 * time.Second)
	return memoryOf(cmd.Process.Pid)
}

// memoryOf reads proc(5)'s smaps_rollup: what is resident, and what of it no
// other process shares.
func memoryOf(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return "", err
	}
	field := func(name string) float64 {
		_, rest, _ := strings.Cut(string(text), "\n"+name+":")
		var kib float64
		fmt.Sscan(rest, &kib)
		return kib / 1024
	}
	return fmt.Sprintf("%.1f MiB, %.1f of it private and written", field("Rss"), field("Private_Dirty")), nil
}

// method says how and on what it was measured.
func method(out io.Writer, rounds int) error {
	bwrap, err := filepath.Glob("/nix/store/*-bubblewrap-*/bin/bwrap")
	if err != nil || len(bwrap) == 0 {
		return fmt.Errorf("no bwrap in the store: %w", err)
	}
	version, err := exec.Command(bwrap[0], "--version").Output()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nMedian of %d rounds after at most %d to warm up, in turns, each after %s of rest; tier full, `--yes --no-report`, a project without git. "+
		"Bare bwrap has the same words and descriptors. %s, %d CPUs; Linux %s; %s; %s.\n",
		rounds, warmUp, rest, processor(), runtime.NumCPU(), release(), bytes.TrimSpace(version), runtime.Version())
	return err
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(text), "model name\t: ")
	name, _, _ := strings.Cut(rest, "\n")
	return name
}

func release() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(text))
}
