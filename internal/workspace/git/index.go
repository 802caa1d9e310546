package git

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrIndex says that what was read is no index of a version known here.
var ErrIndex = errors.New("not a git index")

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

// Gitlink is the mode of an entry that is a repository of its own, a
// submodule, in the working tree.
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

// ScanIndex calls see for every entry of an index, in order. What it is given is
// valid during the call only. On an error the entries before the fault have been
// seen, as an agent may have written it. A split index keeps most names elsewhere:
// those are not seen.
func ScanIndex(index []byte, hashSize int, see func(IndexEntry)) error {
	if len(index) < headerSize || string(index[:4]) != "DIRC" {
		return ErrIndex
	}
	version := binary.BigEndian.Uint32(index[4:])
	if version < 2 || version > 4 {
		return ErrIndex
	}
	s := scanner{rest: index[headerSize:], version: version, stat: statSize + hashSize}
	for range binary.BigEndian.Uint32(index[8:]) {
		if !s.next() {
			return ErrIndex
		}
		see(s.IndexEntry)
	}
	return nil
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
	if len(s.rest) < size {
		return false
	}
	flags := binary.BigEndian.Uint16(s.rest[s.stat:])
	if flags&flagExtended != 0 {
		size += flagsSize
	}
	if len(s.rest) < size {
		return false
	}
	s.Hushed = flags&flagAssumed != 0 ||
		flags&flagExtended != 0 && binary.BigEndian.Uint16(s.rest[s.stat+flagsSize:])&flagSkipped != 0
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

// compressed reads a name that says how much of the previous one to drop.
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

// longest is more than any name has, in bytes.
const longest = 1 << 16

// varint is git's own: each further byte adds one before it shifts. A length
// of zero is none.
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
