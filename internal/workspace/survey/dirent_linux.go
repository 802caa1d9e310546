package survey

import (
	"bytes"
	"encoding/binary"
)

// Layout of struct linux_dirent64, from getdents64(2).
const (
	direntLength = 16 // offset of the record's length
	direntType   = 18
	direntName   = 19
)

// entries goes through what getdents64 gave.
func (l *lister) entries(records []byte) {
	for len(records) > direntName {
		length := int(binary.NativeEndian.Uint16(records[direntLength:]))
		if length <= direntName || length > len(records) {
			return
		}
		name, _, _ := bytes.Cut(records[direntName:length], []byte{0})
		if s := string(name); s != "." && s != ".." {
			l.entry(name, records[direntType])
		}
		records = records[length:]
	}
}
