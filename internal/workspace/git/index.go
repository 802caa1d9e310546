package git

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// Layout of the index, from git's Documentation/gitformat-index.txt.
const (
	headerSize   = 12 // "DIRC", version, number of entries
	statSize     = 40 // the stat data before an object name
	modeAt       = 24 // in the stat data
	flagsSize    = 2
	flagExtended = 0x4000 // two more bytes of flags follow
	flagAssumed  = 0x8000 // git-update-index(1), --assume-unchanged
	flagSkipped  = 0x4000 // in the further flags: --skip-worktree
)

// Gitlink is the mode of an entry that is a repository of its own, a submodule, in the working tree.
const Gitlink = 0o160000

// IndexEntry is one file that an index holds.
type IndexEntry struct {
	Name []byte
	Mode uint32
	Sum  []byte // the name of the object with its content
	// Hushed says that git shows no change of the file: it is marked as one that
	// does not change (assume-unchanged), or is not to be looked at (skip-worktree).
	Hushed bool
}

// ScanIndex returns the entries of an index, in order, up to the first fault: an agent may have written it. Of a
// version that is not known here it returns none. An entry is valid until the next one. A split index keeps most
// names in another file: those are not returned.
func ScanIndex(index []byte, hashSize int) iter.Seq[IndexEntry] {
	return func(yield func(IndexEntry) bool) {
		if len(index) < headerSize || string(index[:4]) != "DIRC" {
			return
		}
		s := scanner{rest: index[headerSize:], version: binary.BigEndian.Uint32(index[4:]), stat: statSize + hashSize}
		for range binary.BigEndian.Uint32(index[8:]) {
			if s.version < 2 || s.version > 4 || !s.next() || !yield(s.IndexEntry) {
				return
			}
		}
	}
}

// scanner goes through the entries of an index in memory.
type scanner struct {
	IndexEntry
	rest    []byte
	version uint32
	stat    int // bytes before the flags
}

// next reads one entry, and reports whether there was one.
func (s *scanner) next() bool {
	size := s.stat + flagsSize
	if len(s.rest) < size+flagsSize { // even without further flags a name and its end take as much
		return false
	}
	flags := binary.BigEndian.Uint16(s.rest[s.stat:])
	s.Hushed = flags&flagAssumed != 0
	if flags&flagExtended != 0 {
		s.Hushed = s.Hushed || binary.BigEndian.Uint16(s.rest[size:])&flagSkipped != 0
		size += flagsSize
	}
	s.Mode, s.Sum = binary.BigEndian.Uint32(s.rest[modeAt:]), s.rest[statSize:s.stat]
	if s.version == 4 {
		return s.compressed(s.rest[size:])
	}
	end := bytes.IndexByte(s.rest[size:], 0)
	if end < 0 {
		return false
	}
	s.Name = s.rest[size : size+end]
	size = (size + end + 8) &^ 7 // one to eight NULs
	s.rest = s.rest[min(size, len(s.rest)):]
	return true
}

// compressed reads a name that says how many bytes of the name before it to leave out at the end.
func (s *scanner) compressed(rest []byte) bool {
	drop, length := varint(rest)
	if length == 0 || drop > len(s.Name) {
		return false
	}
	end := bytes.IndexByte(rest[length:], 0)
	if end < 0 {
		return false
	}
	s.Name = append(s.Name[:len(s.Name)-drop:len(s.Name)-drop], rest[length:length+end]...)
	s.rest = rest[length+end+1:]
	return true
}

// longest is more than the length of any name, in bytes.
const longest = 1 << 16

// varint decodes git's own variable-length number: each further byte adds one before the shift. length 0: it is none.
func varint(b []byte) (n, length int) {
	for i, c := range b {
		if i > 0 {
			n++
		}
		n = n<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return n, i + 1
		}
		if n > longest {
			break
		}
	}
	return 0, 0
}
