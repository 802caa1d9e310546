package inside

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"math"

	"claudebox/internal/nix/storepath"
)

// longestLine is longer than any store path, in bytes.
const longestLine = 512

// collectedLine is added to a list when one of its paths is no longer
// valid, even if a file still exists there: it makes the list count as damaged.
const collectedLine = "collected\n"

// Known yields the store paths of a list, one per line, in order. If the list is damaged,
// the last pair has an error. A last line without a newline is skipped: it was being written
// when the machine lost power, and nobody had been
// told about that path yet.
func Known(file io.ReaderAt) iter.Seq2[string, error] {
	lines := bufio.NewReaderSize(io.NewSectionReader(file, 0, math.MaxInt64), longestLine)
	return func(yield func(string, error) bool) {
		for {
			line, err := lines.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			path := ""
			if err == nil {
				path = string(line[:len(line)-1])
				err = storepath.Check(path)
			}
			if !yield(path, err) || err != nil {
				return
			}
		}
	}
}
