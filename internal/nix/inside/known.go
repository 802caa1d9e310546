package inside

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"math"

	"claudebox/internal/nix/storepath"
)

// longestLine is more than any store path has.
const longestLine = 512

// collectedLine, at the end of a list, is written when one of its paths is not
// valid any more, though something may still lie there: the list is damaged then.
const collectedLine = "collected\n"

// Known gives the store paths of a list, a line each, in their order; the last
// one comes with an error where the list is damaged. A line without an end is one
// that was being written when the power went, and does not count: nobody had been
// told of that path yet.
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
