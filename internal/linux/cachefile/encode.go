package cachefile

import (
	"bytes"
	"encoding/gob"
)

// Encode writes a value down for [Decode]. Unlike JSON it keeps names of files,
// which may hold any bytes. A value that gob cannot encode is a bug, and panics.
func Encode(value any) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(value); err != nil {
		panic("bug: encode a cached value: " + err.Error())
	}
	return b.Bytes()
}

// Decode reads what [Encode] wrote into the value that pointer points at, and
// reports whether src is that and nothing else. Empty slices come back as nil.
func Decode(src []byte, pointer any) bool {
	r := bytes.NewReader(src)
	return gob.NewDecoder(r).Decode(pointer) == nil && r.Len() == 0
}
