package netlink

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// sent is a message as it is on the wire.
func sent(m Message) []byte {
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	return m
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	m := New(7, unix.NLM_F_ACK, 1, 2, 3, 4)
	m.Text(1, "name")
	m.Big(2, 0x01020304)
	m.Nest(3, func() { m.Native(4, 9) })
	got := answers(append(sent(m), sent(New(8, 0))...))
	if len(got) != 2 || got[0].Type != 7 || got[1].Type != 8 || got[0].Flags != unix.NLM_F_REQUEST|unix.NLM_F_ACK {
		t.Fatalf("got %+v", got)
	}
	values := got[0].Attributes(4)
	inner := Answer{Body: values[3]}.Attributes(0)
	if string(values[1]) != "name\x00" || !bytes.Equal(values[2], []byte{1, 2, 3, 4}) || binary.NativeEndian.Uint32(inner[4]) != 9 {
		t.Errorf("got %v, %v", values, inner)
	}
}

// Whatever comes, what is read of it lies within it.
func FuzzAnswers(f *testing.F) {
	m := New(unix.NLMSG_ERROR, 0, 0, 0, 0, 0)
	m.Text(1, "x")
	f.Add(sent(m))
	f.Fuzz(func(t *testing.T, piece []byte) {
		size := 0
		for _, a := range answers(piece) {
			size += len(a.Body)
			for _, value := range a.Attributes(4) {
				if len(value) > len(a.Body) {
					t.Errorf("%d bytes of %d", len(value), len(a.Body))
				}
			}
			_ = a.failure()
		}
		if size > len(piece) {
			t.Errorf("%d bytes out of %d", size, len(piece))
		}
	})
}
