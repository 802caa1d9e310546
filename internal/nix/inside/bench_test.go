package inside_test

import (
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixdaemon"
)

// BenchmarkConnection is what each nix process costs the filter: a connection, a
// handshake, and a question whose answer is known.
func BenchmarkConnection(b *testing.B) {
	f := newFiltered(b, nil)
	for b.Loop() {
		c, err := nixdaemon.Dial(b.Context(), f.socket, nixdaemon.Options{})
		must.Do(b, err)
		if ok, err := c.IsValidPath(b.Context(), pathA); err != nil || !ok {
			b.Fatal(ok, err)
		}
		c.Close()
	}
}
