package hostnet

import "testing"

func TestX(t *testing.T) { n, err := Read(); t.Log(n, err) }
func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		Read()
	}
}
