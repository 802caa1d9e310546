package cachefile

import (
	"bytes"
	"reflect"
	"testing"
)

type sample struct {
	Name   string
	Number int64
	Inode  uint64
	Yes    bool
	Parts  []part
	Coded  []codedPart
	None   []string
	Sum    [2]byte
}

type part struct {
	Name  string
	Parts []string
}

// coded is a part that says how it is encoded.
type codedPart struct {
	Name   string
	Number int64
	Inode  uint64
	Yes    bool
	Parts  []string
}

func (p *codedPart) Code(c *Codec) {
	c.Text(&p.Name)
	Int(c, &p.Number)
	c.Uint(&p.Inode)
	c.Bool(&p.Yes)
	List(c, &p.Parts, c.Text)
}

var full = sample{Name: "a\x00\xff/b", Number: -1 << 40, Inode: 1<<64 - 1, Yes: true, Sum: [2]byte{0, 200}, Parts: []part{{"x", []string{"", "y"}}, {Parts: []string{}}}, Coded: codedParts}

var codedParts = []codedPart{{"x", -3, 1 << 63, true, []string{"", "y"}}, {Parts: []string{}}, {}}

func TestWhatIsDecodedIsWhatWasEncoded(t *testing.T) {
	var got sample
	if !Decode(Encode(full), &got) || !reflect.DeepEqual(got, full) {
		t.Errorf("got %+v, want %+v", got, full)
	}
}

// What a type says of itself is what is seen of it without that.
func TestACodedTypeIsEncodedAsAnyOther(t *testing.T) {
	type plain codedPart
	var parts []plain
	for _, p := range codedParts {
		parts = append(parts, plain(p))
	}
	if got, want := Encode(codedParts), Encode(parts); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
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

func TestAnotherTypeIsNotRead(t *testing.T) {
	type longer struct{ Name, Text, More string }
	type listed struct {
		Name string
		Text []string
	}
	type other struct{ Title, Text string }
	encoded := Encode(struct{ Name, Text string }{"a", "b"})
	if Decode(encoded, &longer{}) || Decode(encoded, &listed{}) {
		t.Error("a value of another shape was read")
	}
	if !Decode(encoded, &other{}) {
		t.Error("a value of the same shape was not read")
	}
}

// Whatever a file holds, decoding it ends, and what is taken is what its own
// encoding says.
func FuzzDecode(f *testing.F) {
	f.Add(Encode(full))
	f.Add(Encode(sample{}))
	f.Fuzz(func(t *testing.T, src []byte) {
		var first, second sample
		if Decode(src, &first) && (!Decode(Encode(first), &second) || !reflect.DeepEqual(first, second)) {
			t.Errorf("%q: %+v became %+v", src, first, second)
		}
	})
}
