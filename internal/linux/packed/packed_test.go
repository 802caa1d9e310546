package packed

import (
	"reflect"
	"testing"
)

type sample struct {
	Text   string
	Number int64
	Small  uint32
	Yes    bool
	List   []part
	None   []string
}

type part struct {
	Name  string
	Parts []string
}

var full = sample{
	Text: "a\x00b", Number: -1 << 40, Small: 1<<32 - 1, Yes: true,
	List: []part{{"x", []string{"", "y"}}, {}}, None: nil,
}

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	var got sample
	if !Decode(Encode(full), &got) || !reflect.DeepEqual(got, full) {
		t.Errorf("got %+v, want %+v", got, full)
	}
}

func TestNothingElseIsRead(t *testing.T) {
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

// FuzzDecode holds the reader to its law: what it takes is what the writer
// writes, and nothing makes it fall over.
func FuzzDecode(f *testing.F) {
	f.Add(Encode(sample{}))
	f.Add(Encode(full))
	f.Fuzz(func(t *testing.T, src []byte) {
		var first, second sample
		if !Decode(src, &first) {
			return
		}
		if !Decode(Encode(first), &second) || !reflect.DeepEqual(first, second) {
			t.Errorf("%q: %+v, then %+v", src, first, second)
		}
	})
}
