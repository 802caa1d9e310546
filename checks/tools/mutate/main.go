// Command mutate breaks claudebox, one line at a time, and holds that a test
// goes red for each break: a protection that can be taken out unseen is none.
//
//	go run ./checks/tools/mutate [-only TEXT] [-unit]
//
// breaks.txt is the table. An entry is
//
//	== what the line protects
//	file: internal/x/y.go
//	- a line as it stands there, once, without its indentation
//	+ what it becomes; empty to take it out
//	test: ./internal/x TestName
//
// The test is the name of a package and an expression for -run. One below
// checks/ runs with a claudebox that has the break in it, in the environment of
// checks/test (CLAUDEBOX_BIN); -unit leaves those out. Files are not changed:
// the compiler is given others in their place.
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed breaks.txt
var table string

// broken is one line that is to be missed.
type broken struct {
	name, file, from, to, pkg, test string
}

// ownTests is the package whose tests start sandboxes by its own code, not by the claudebox that is built.
const ownTests = "./internal/session"

func (b broken) lab() bool { return strings.HasPrefix(b.pkg, "./checks/") || b.pkg == ownTests }

func main() {
	only := flag.String("only", "", "try the breaks whose name or file holds this")
	unit := flag.Bool("unit", false, "leave out what needs a built claudebox")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "mutate: %q is no flag; to try some breaks: -only TEXT\n", flag.Arg(0))
		os.Exit(2)
	}
	if os.Getuid() == 0 { // what a broken claudebox does to files, it does to the machine's
		fmt.Fprintln(os.Stderr, "mutate: not as root: checks/as-user go run ./checks/tools/mutate")
		os.Exit(2)
	}
	if err := run(*only, *unit); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(only string, unit bool) error {
	breaks, err := parse(table)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	missed := 0
	for _, b := range breaks {
		if !strings.Contains(b.name+" "+b.file, only) || unit && b.lab() {
			continue
		}
		verdict := "red"
		if err := b.try(work); err != nil {
			verdict = err.Error()
			missed++
		}
		fmt.Printf("%-6s %s\n", verdict, b.name)
	}
	if missed > 0 {
		return fmt.Errorf("%d breaks are not seen", missed)
	}
	return nil
}

// parse reads the table.
func parse(text string) (list []broken, err error) {
	var b *broken
	for n, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case key == "==":
			list = append(list, broken{name: value})
			b = &list[len(list)-1]
			continue
		case b == nil:
			return nil, fmt.Errorf("breaks.txt:%d: no entry has begun", n+1)
		}
		switch key {
		case "file:":
			b.file = value
		case "-":
			b.from = value
		case "+":
			b.to = value
		case "test:":
			b.pkg, b.test, _ = strings.Cut(value, " ")
		default:
			return nil, fmt.Errorf("breaks.txt:%d: %q is no part of an entry", n+1, key)
		}
	}
	return list, nil
}

// apply gives the file's text with the break in it.
func (b broken) apply() (string, error) {
	content, err := os.ReadFile(b.file)
	if err != nil {
		return "", err
	}
	lines, at := strings.Split(string(content), "\n"), -1
	for n, line := range lines {
		if strings.TrimSpace(line) != b.from {
			continue
		}
		if at >= 0 {
			return "", errors.New("the line stands there more than once")
		}
		at = n
	}
	if at < 0 {
		return "", errors.New("the line is not there any more")
	}
	lines[at] = b.to
	return strings.Join(lines, "\n"), nil
}

// try reports how the test misses the break; nil: it goes red.
func (b broken) try(work string) error {
	text, err := b.apply()
	if err != nil {
		return err
	}
	overlay, err := b.overlay(work, text)
	if err != nil {
		return err
	}
	env := os.Environ()
	words := []string{"test", "-overlay", overlay, "-count=1", "-run", b.test, b.pkg}
	if b.lab() {
		binary, err := build(work, overlay)
		if err != nil {
			return err
		}
		env = append(env, "CLAUDEBOX_BIN="+binary, "CLAUDEBOX_LONG=1") // the short form leaves cases out
		words = []string{"test", "-tags", "lab", "-count=1", "-run", b.test, b.pkg}
		if b.pkg == ownTests {
			words = slices.Insert(words, 1, "-overlay", overlay) // the test is the program
		}
	} else if out, err := exec.Command("go", "vet", "-overlay", overlay, "./"+filepath.Dir(b.file)).CombinedOutput(); err != nil {
		return fmt.Errorf("it does not compile: %s", out)
	}
	cmd := exec.Command("go", words...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(out), "no tests to run"):
		return errors.New("NONE: no test is called so")
	case err == nil:
		return errors.New("GREEN")
	case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic:"):
		return fmt.Errorf("the test does not run: %s", out)
	}
	return nil
}

func (b broken) overlay(work, text string) (string, error) {
	file := filepath.Join(work, "broken.go")
	at, err := filepath.Abs(b.file)
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {at: file}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(work, "overlay.json")
	return overlay, errors.Join(os.WriteFile(file, []byte(text), 0o600), os.WriteFile(overlay, content, 0o600))
}

// build puts a claudebox with the break beside what belongs to the one under
// test.
func build(work, overlay string) (string, error) {
	given := os.Getenv("CLAUDEBOX_BIN")
	if given == "" {
		return "", errors.New("CLAUDEBOX_BIN is not set")
	}
	prefix := filepath.Join(work, "built")
	if _, err := os.Stat(prefix); err != nil {
		if out, err := exec.Command("sh", "-c", `cp -r "$0" "$1" && chmod -R u+w "$1"`, filepath.Dir(filepath.Dir(given)), prefix).CombinedOutput(); err != nil {
			return "", fmt.Errorf("copy claudebox: %s", out)
		}
	}
	for name, to := range map[string]string{
		"claudebox": "bin", "claudebox-helper": "libexec", "claudebox-network": "libexec", "claudebox-stage": "libexec",
	} {
		cmd := exec.Command("go", "build", "-overlay", overlay, "-buildvcs=false", "-o", filepath.Join(prefix, to, name),
			"-ldflags", "-X claudebox/internal/cli.Version=0.1.0", "./cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("it does not compile: %s", out)
		}
	}
	return filepath.Join(prefix, "bin", "claudebox"), nil
}
