package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// project measures what it costs that a project is protected, that secret
// files in it are hidden, and that what the session changed is told: a small
// repository, and 50,000 files with 20 repositories in them.
func (w *world) project(out io.Writer, rounds int) error {
	defer os.Chdir(w.home + "/project")
	for _, p := range []struct {
		name         string
		files, repos int
	}{{"a small repository", 20, 0}, {"50,000 files and 20 repositories", 50_000, 20}} {
		dir := filepath.Join(w.home, fmt.Sprint("of-", p.files))
		if err := errors.Join(makeProject(dir, p.files, p.repos), os.Chdir(dir)); err != nil {
			return err
		}
		if err := w.againstBwrap(out, "the same in "+p.name, w.profile("plain", ""), rounds); err != nil {
			return err
		}
	}
	return nil
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
