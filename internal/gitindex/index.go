package gitindex

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// ErrFormat says that what was read is no index of a version known here.
var ErrFormat = errors.New("not a git index")

// Tracked tells which places the index holds, or has something below. Places
// are relative to prefix, a folder of the working tree ("" or "sub/dir/").
// hashSize is the length of object names, in bytes. Reading stops where no
// place can follow. On an error the places found so far are given with it;
// the others are not known to be tracked.
func Tracked(r io.Reader, hashSize int, prefix string, places []string) (map[string]bool, error) {
	m := newMatcher(prefix, places)
	err := m.read(bufio.NewReaderSize(r, bufferSize), hashSize)
	return m.found, err
}

// bufferSize bounds the length of a name as well, in bytes.
const bufferSize = 1 << 16

// matcher looks for places in the sorted names of an index.
type matcher struct {
	prefix string // of the project in the worktree
	places []string
	last   string // no place sorts after it
	found  map[string]bool
}

func newMatcher(prefix string, places []string) *matcher {
	m := &matcher{prefix: prefix, places: places, found: map[string]bool{}}
	for _, p := range places {
		m.last = max(m.last, p+"0") // "0" sorts after "/": all below p as well
	}
	return m
}

// see takes one name of the index and says whether later ones can matter.
func (m *matcher) see(name []byte) bool {
	rest, ok := bytes.CutPrefix(name, []byte(m.prefix))
	if !ok {
		return m.prefix > string(name)
	}
	for _, p := range m.places {
		if len(rest) >= len(p) && string(rest[:len(p)]) == p && (len(rest) == len(p) || rest[len(p)] == '/') {
			m.found[p] = true
		}
	}
	return string(rest) <= m.last
}

// Layout of the index, from git's Documentation/gitformat-index.txt.
const (
	headerSize   = 12 // "DIRC", version, number of entries
	statSize     = 40 // the stat data before an object name
	flagsSize    = 2
	flagExtended = 0x4000 // two more bytes of flags follow
)

// read goes through the entries. A split index keeps most names in a file of
// its own, which is not read: its places count as untracked.
func (m *matcher) read(r *bufio.Reader, hashSize int) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil || string(header[:4]) != "DIRC" {
		return ErrFormat
	}
	version := binary.BigEndian.Uint32(header[4:])
	if version < 2 || version > 4 {
		return ErrFormat
	}
	e := entries{r: r, version: version, stat: statSize + hashSize}
	for range binary.BigEndian.Uint32(header[8:]) {
		if err := e.next(); err != nil {
			return err
		}
		if !m.see(e.name) {
			return nil
		}
	}
	return nil
}

// entries reads one entry after the other.
type entries struct {
	r       *bufio.Reader
	version uint32
	stat    int    // bytes before the flags
	name    []byte // of the entry read last
}

// next reads one entry.
func (e *entries) next() error {
	fixed, err := e.r.Peek(e.stat + flagsSize)
	if err != nil {
		return ErrFormat
	}
	size := len(fixed)
	if binary.BigEndian.Uint16(fixed[e.stat:])&flagExtended != 0 {
		size += flagsSize
	}
	if _, err := e.r.Discard(size); err != nil {
		return ErrFormat
	}
	if e.version == 4 {
		return e.compressedName()
	}
	return e.paddedName(size)
}

// paddedName ends in one to eight NULs, so that entries are aligned to eight.
func (e *entries) paddedName(size int) error {
	if err := e.untilNUL(0); err != nil {
		return err
	}
	padding := 7 - (size+len(e.name))%8
	if _, err := e.r.Discard(padding); err != nil {
		return ErrFormat
	}
	return nil
}

// compressedName says how much of the previous name to drop.
func (e *entries) compressedName() error {
	drop, err := e.varint()
	if err != nil || drop > len(e.name) {
		return ErrFormat
	}
	return e.untilNUL(len(e.name) - drop)
}

// varint is git's own: each further byte adds one before it shifts.
func (e *entries) varint() (int, error) {
	n := 0
	for i := 0; ; i++ {
		c, err := e.r.ReadByte()
		if err != nil || n > bufferSize {
			return 0, ErrFormat
		}
		if i > 0 {
			n++
		}
		n = n<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return n, nil
		}
	}
}

// untilNUL replaces all but the first keep bytes of the name.
func (e *entries) untilNUL(keep int) error {
	part, err := e.r.ReadSlice(0)
	if err != nil || keep+len(part) > bufferSize {
		return ErrFormat
	}
	e.name = append(e.name[:keep], part[:len(part)-1]...)
	return nil
}
