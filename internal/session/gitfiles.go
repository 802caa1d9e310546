package session

import (
	"os"

	"claudebox/internal/smallfile"
)

// readGitFile reads a file of the user's git configuration, which may include
// one of the project: it neither waits for a pipe nor reads without end.
func readGitFile(name string) ([]byte, error) {
	const limit = 1 << 20
	if name == os.DevNull { // GIT_CONFIG_GLOBAL=/dev/null is a habit
		return nil, nil
	}
	return smallfile.Read(name, limit)
}
