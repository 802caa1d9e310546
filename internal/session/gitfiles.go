package session

import (
	"os"

	"claudebox/internal/linux/smallfile"
)

// gitFiles are the files of the user's git configuration. Each is read once in
// a session: for the identity, and for each folder in which git obeys it.
type gitFiles map[string]gitFile

type gitFile struct {
	content []byte
	err     error
}

func (f *gitFiles) read(name string) ([]byte, error) {
	if *f == nil {
		*f = gitFiles{}
	}
	file, known := (*f)[name]
	if !known {
		file.content, file.err = readGitFile(name)
		(*f)[name] = file
	}
	return file.content, file.err
}

// readGitFile reads a file of the user's git configuration, which may include
// one of the project: it neither waits for a pipe nor reads without end.
func readGitFile(name string) ([]byte, error) {
	const limit = 1 << 20
	if name == os.DevNull { // GIT_CONFIG_GLOBAL=/dev/null is a habit
		return nil, nil
	}
	return smallfile.Read(name, limit)
}
