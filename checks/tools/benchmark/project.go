package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// project measures what it costs that a project is protected, that secret
// files in it are hidden, and that what the session changed is told: how much
// longer than in an empty folder a start takes in a small repository, and in
// 50,000 files with 20 repositories in them.
func (w *world) project(out io.Writer, rounds int) error {
	empty := filepath.Join(w.home, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		return err
	}
	ways := []way{w.startIn(empty)}
	for _, p := range projects {
		dir := filepath.Join(w.home, fmt.Sprint("of-", p.files))
		if err := makeProject(dir, p.files, p.repos); err != nil {
			return err
		}
		ways = append(ways, w.startIn(dir))
	}
	time.Sleep(settled)
	times, err := takeTurns(rounds, ways...)
	if err != nil {
		return err
	}
	for i, p := range projects {
		fmt.Fprintf(out, "| protection, hiding and report in %s | %s | a start there %s, in an empty folder %s | |\n",
			p.name, times[i+1]-times[0], times[i+1], times[0])
	}
	return nil
}

var projects = []struct {
	name         string
	files, repos int
}{{"a small repository", 20, 0}, {"50,000 files and 20 repositories", 50_000, 20}}

// startIn is a launch in a folder, with its report.
func (w *world) startIn(dir string) way {
	command := w.command("-P", w.profile("plain", ""), "--yes")
	return func() (*exec.Cmd, error) {
		cmd, err := command()
		if err == nil {
			cmd.Dir = dir
		}
		return cmd, err
	}
}

// perFolder is how many files a folder of a project has, as in most.
const perFolder = 20

func makeProject(dir string, files, repos int) error {
	if err := repository(dir); err != nil {
		return err
	}
	for n := range files {
		name := fmt.Sprintf("%s/%d/%d/file-%d.go", dir, n/perFolder%50, n/perFolder, n)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			return err
		}
	}
	for _, name := range []string{"package.json", "Makefile", ".envrc", ".env", "flake.nix"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return err
		}
	}
	for n := range repos {
		if err := repository(fmt.Sprintf("%s/nested/%d", dir, n)); err != nil {
			return err
		}
	}
	return git(dir, "add", "[0-9]*")
}

func repository(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return git(dir, "init", "-q")
}

func git(dir string, words ...string) error {
	said, err := exec.Command("git", append([]string{"-C", dir}, words...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %q: %w\n%s", words, err, said)
	}
	return nil
}
