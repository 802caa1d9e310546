package nixeval

import (
	"io"
	"strings"

	"claudebox/internal/linux/capture"
)

// ReasonOf finds the cause in what Nix printed.
var ReasonOf = reason

// Keep writes parts to what keeps the first max bytes and to what keeps the
// last, and gives what they keep.
func Keep(limit int, parts ...string) (first string, over bool, last string) {
	h, t := &capture.Head{Most: limit}, &tail{max: limit}
	for _, p := range parts {
		_, _ = io.Copy(h, strings.NewReader(p))
		_, _ = io.Copy(t, strings.NewReader(p))
	}
	return string(h.Bytes()), h.Over, string(t.kept)
}
