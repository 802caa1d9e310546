package letgo_test

import (
	"io"
	"os"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/letgo"
)

// The last close comes: who reads from the other end of a pipe sees its end.
func TestWhatIsLetGoIsClosed(t *testing.T) {
	for range 100 {
		r, w, err := os.Pipe()
		must.Do(t, err)
		if _, err := w.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		letgo.Close(w)
		if text, err := io.ReadAll(r); err != nil || string(text) != "x" {
			t.Fatalf("%q, %v", text, err)
		}
		r.Close()
	}
}
