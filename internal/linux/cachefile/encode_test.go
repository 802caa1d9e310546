package cachefile

import (
	"reflect"
	"testing"
)

type sample struct {
	Name   string
	Number int64
	Yes    bool
	Parts  []part
	None   []string
}

type part struct {
	Name  string
	Parts []string
}

var full = sample{Name: "a\x00\xff/b", Number: -1 << 40, Yes: true, Parts: []part{{"x", []string{"", "y"}}, {}}}

func TestWhatIsDecodedIsWhatWasEncoded(t *testing.T) {
	var got sample
	if !Decode(Encode(full), &got) || !reflect.DeepEqual(got, full) {
		t.Errorf("got %+v, want %+v", got, full)
	}
}

func TestDecodeRefusesAPartAndABitMore(t *testing.T) {
	whole := Encode(full)
	for n := range whole {
		if Decode(whole[:n], &sample{}) {
			t.Errorf("the first %d of %d bytes were taken", n, len(whole))
		}
	}
	if Decode(append(whole, 0), &sample{}) {
		t.Error("a byte more was taken")
	}
}
