package aside

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Claudebox's own programs, in ../libexec beside the one that runs.
const (
	NetworkProgram = "claudebox-network" // serves a sandbox's network
	HelperProgram  = "claudebox-helper"  // does other work outside: secrets, ssh keys, systemd, addresses
)

// Program returns the path of one of claudebox's own programs.
func Program(name string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fmt.Errorf("find claudebox's own programs: %w", err)
	}
	return filepath.Join(filepath.Dir(filepath.Dir(self)), "libexec", name), nil
}

// AskHelper has claudebox-helper answer a question, see [Ask].
func AskHelper(ctx context.Context, word string, question, answer any) error {
	program, err := Program(HelperProgram)
	if err == nil {
		err = Ask(ctx, program, word, question, answer)
	}
	return err
}
