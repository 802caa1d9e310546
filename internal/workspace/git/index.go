package git

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/hostrun"
)

// Layout of the index, from git's Documentation/gitformat-index.txt.
const (
	headerSize   = 12 // "DIRC", version, number of entries
	statSize     = 40 // the stat data before an object name
	modeAt       = 24 // in the stat data
	flagsSize    = 2
	flagExtended = 0x4000 // two more bytes of flags follow
	flagLength   = 0x0fff // the length of the name, or this if it is as long or longer
	flagSkipped  = 0x4000 // in the further flags: --skip-worktree
	flagToAdd    = 0x2000 // in the further flags: git-add(1), --intent-to-add
)

// Bounds of the sum of all names, in bytes: version 4 writes what a name shares with the one before as a number, so a
// small file could fill the memory. Of a real index the names are about as large as the file, at most three times.
const (
	smallNames = 1 << 20
	maxGrowth  = 8
	maxNames   = 256 << 20
)

// Gitlink is the mode of an entry that is a repository of its own, a submodule, in the working tree.
const Gitlink = 0o160000

// IndexEntry is one file that an index holds.
type IndexEntry struct {
	Name []byte
	Mode uint32
	Sum  []byte // the name of the object with its content
}

// ScanIndex returns the entries of an index, in order, up to the first fault: an agent may have written it. Of a
// version that is not known here it returns none. An entry is valid until the next one. A split index keeps most
// names in another file: those are not returned.
func ScanIndex(index []byte, hashSize int) iter.Seq[IndexEntry] {
	return func(yield func(IndexEntry) bool) {
		s, count := scan(index, hashSize)
		for range count {
			if !s.next() || !yield(s.IndexEntry) {
				return
			}
		}
	}
}

// isOrdinaryIndex reports whether an index is whole, and names only what lies below its working tree, outside of git
// folders, and no submodule in a folder that tools fill. The names count that git reads: one that is split or sparse
// has others elsewhere, and by offsets git would begin to read where they say (Documentation/gitformat-index.txt).
func isOrdinaryIndex(index []byte, hashSize int) bool {
	s, count := scan(index, hashSize)
	if s.version == 0 {
		return false
	}
	for range count {
		if !s.next() {
			return false
		}
		name := string(s.Name)
		if s.Mode == Gitlink && hostrun.IsFilled(name) {
			return false
		}
		for part := range strings.SplitSeq(name, "/") {
			if part == "" || part == "." || part == ".." || IsDotGit(part) {
				return false
			}
		}
	}
	rest := s.rest
	for len(rest) > hashSize {
		const head = 8 // four letters, and a size
		known := len(rest) >= head && slices.Contains([]string{"TREE", "REUC", "UNTR", "FSMN"}, string(rest[:4]))
		if !known || uint64(binary.BigEndian.Uint32(rest[4:])) > uint64(len(rest)-head) {
			return false
		}
		rest = rest[head+binary.BigEndian.Uint32(rest[4:]):]
	}
	return len(rest) == hashSize
}

// HashSize returns how long object names are by a repository's configuration, in bytes.
func HashSize(config []gitconfig.Entry) int {
	if strings.EqualFold(gitconfig.Last(config, "extensions.objectformat"), "sha256") {
		return 32
	}
	return 20
}

// scanner goes through the entries of an index in memory.
type scanner struct {
	IndexEntry
	rest    []byte
	names   int    // bytes that the further names may have together
	version uint32 // zero: it is no index
	stat    int    // bytes before the flags
}

// scan begins to go through an index, and returns how many entries it says that it has.
func scan(index []byte, hashSize int) (s scanner, count uint32) {
	if len(index) < headerSize || string(index[:4]) != "DIRC" {
		return s, 0
	}
	version := binary.BigEndian.Uint32(index[4:])
	if version < 2 || version > 4 {
		return s, 0
	}
	s = scanner{rest: index[headerSize:], version: version, stat: statSize + hashSize}
	s.names = min(smallNames+maxGrowth*len(index), maxNames)
	return s, binary.BigEndian.Uint32(index[8:])
}

// next reads one entry, and reports whether there was one. There is none whose name no file can have, nor once the
// names become too many for an index of this size.
func (s *scanner) next() bool {
	if !s.entry() || len(s.Name) >= unix.PathMax || len(s.Name) > s.names {
		return false
	}
	s.names -= len(s.Name)
	return true
}

// entry reads one entry.
func (s *scanner) entry() bool {
	size := s.stat + flagsSize
	if len(s.rest) < size+flagsSize { // even without further flags a name and its end take as much
		return false
	}
	flags := binary.BigEndian.Uint16(s.rest[s.stat:])
	if flags&flagExtended != 0 {
		further := binary.BigEndian.Uint16(s.rest[size:])
		if further&^(flagSkipped|flagToAdd) != 0 {
			return false
		}
		size += flagsSize
	}
	s.Mode, s.Sum = binary.BigEndian.Uint32(s.rest[modeAt:]), s.rest[statSize:s.stat]
	length := int(flags & flagLength)
	if s.version == 4 {
		return s.compressed(s.rest[size:]) && length == min(len(s.Name), flagLength)
	}
	end := bytes.IndexByte(s.rest[size:], 0)
	if end < 0 || length != min(end, flagLength) {
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
	s.Name = append(s.Name[:len(s.Name)-drop], rest[length:length+end]...)
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
