package inside

import (
	"errors"
	"io"
	"strings"

	"claudebox/internal/nix/storepath"
)

// maxKnownBytes bounds the list of paths that an inner store relies on.
const maxKnownBytes = maxKnown * 256

// ReadKnown reads a list of store paths, a line each. A line without an end is
// one that was being written when the power went, and does not count: nobody had
// been told of that path yet.
func ReadKnown(file io.ReaderAt) ([]string, error) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, maxKnownBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxKnownBytes {
		return nil, errors.New("the list of used store paths is too long")
	}
	var paths []string
	for line := range strings.Lines(string(text)) {
		path, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break
		}
		if err := storepath.Check(path); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
