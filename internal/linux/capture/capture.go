// Package capture keeps a bounded part of what a program prints.
package capture

import "bytes"

// Head keeps the first Most bytes that are written to it. It takes the rest without an error and drops it, so that the
// program is not held up. It must not have a ReadFrom: io.Copy would call that instead of Write, and keep all.
type Head struct {
	Most int  // bytes
	Over bool // some were dropped
	kept bytes.Buffer
}

// Write takes all of p.
func (h *Head) Write(p []byte) (int, error) {
	room := min(len(p), h.Most-h.kept.Len())
	h.Over = h.Over || room < len(p)
	h.kept.Write(p[:room])
	return len(p), nil
}

// Bytes returns what was kept.
func (h *Head) Bytes() []byte { return h.kept.Bytes() }
