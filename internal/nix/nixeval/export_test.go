package nixeval

import (
	"io"
	"strings"
)

// ReasonOf finds the cause in what Nix printed.
var ReasonOf = reason

// Keep writes parts to what keeps the first max bytes and to what keeps the
// last, and gives what they keep.
func Keep(limit int, parts ...string) (first string, over bool, last string) {
	h, t := &head{max: limit}, &tail{max: limit}
	for _, p := range parts {
		_, _ = io.Copy(h, strings.NewReader(p))
		_, _ = io.Copy(t, strings.NewReader(p))
	}
	return h.kept.String(), h.over, string(t.kept)
}
