package project

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"strings"

	"claudebox/internal/beneath"
	"claudebox/internal/gitconfig"
)

// tracked tells which of the project's places git's index holds, or has
// something below. It is judged as far as the index can be read: what is not
// known to be tracked is protected.
func (o *opener) tracked(places []string) map[string]bool {
	if o.Repo.Dir == "" {
		return nil
	}
	base := o.tree
	if !o.contains(o.Repo.Dir) {
		at, err := beneath.Open(o.Repo.Dir)
		if err != nil {
			return nil
		}
		defer at.Close()
		base = at
	}
	prefix := ""
	if below := relative(o.Repo.Worktree, o.Path); below != "." {
		prefix = below + "/"
	}
	m := newIndexMatcher(prefix, places)
	_ = m.read(base, path.Join(relative(base.Path(), o.Repo.Dir), "index"), o.Repo.hashSize)
	return m.found
}

// indexMatcher looks for places in the sorted names of an index.
type indexMatcher struct {
	prefix string // of the project in the worktree
	places []string
	last   string // no place sorts after it
	found  map[string]bool
}

func newIndexMatcher(prefix string, places []string) *indexMatcher {
	m := &indexMatcher{prefix: prefix, places: places, found: map[string]bool{}}
	for _, p := range places {
		m.last = max(m.last, p+"0") // "0" sorts after "/": all below p as well
	}
	return m
}

// see takes one name of the index and says whether later ones can matter.
func (m *indexMatcher) see(name []byte) bool {
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
	indexHeader   = 12 // "DIRC", version, number of entries
	indexStat     = 40 // the stat data before an object name
	indexFlags    = 2
	indexExtended = 0x4000 // two more bytes of flags follow
	indexNameMax  = 1 << 16
)

var errIndex = errors.New("not a git index")

// read goes through the names of an index file of version 2, 3 or 4. A split
// index keeps most names in a file of its own, which is not read: its places
// count as untracked.
func (m *indexMatcher) read(base *beneath.Folder, rel string, hashSize int) error {
	file, err := base.File(rel)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<16)
	var header [indexHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil || string(header[:4]) != "DIRC" {
		return errIndex
	}
	version := binary.BigEndian.Uint32(header[4:])
	if version < 2 || version > 4 {
		return errIndex
	}
	e := entryReader{r: r, version: version, stat: indexStat + hashSize}
	for range binary.BigEndian.Uint32(header[8:]) {
		name, err := e.next()
		if err != nil || !m.see(name) {
			return err
		}
	}
	return nil
}

// entryReader reads one entry after the other.
type entryReader struct {
	r       *bufio.Reader
	version uint32
	stat    int // bytes before the flags
	name    []byte
}

// next gives the name of the next entry; it is valid until the next call.
func (e *entryReader) next() ([]byte, error) {
	fixed, err := e.r.Peek(e.stat + indexFlags)
	if err != nil {
		return nil, errIndex
	}
	size := len(fixed)
	if binary.BigEndian.Uint16(fixed[e.stat:])&indexExtended != 0 {
		size += indexFlags
	}
	if _, err := e.r.Discard(size); err != nil {
		return nil, errIndex
	}
	if e.version == 4 {
		return e.name, e.compressedName()
	}
	return e.name, e.paddedName(size)
}

// paddedName ends in one to eight NULs, so that entries are aligned to eight.
func (e *entryReader) paddedName(size int) error {
	if err := e.untilNUL(0); err != nil {
		return err
	}
	padding := 7 - (size+len(e.name))%8
	if _, err := e.r.Discard(padding); err != nil {
		return errIndex
	}
	return nil
}

// compressedName says how much of the previous name to drop.
func (e *entryReader) compressedName() error {
	drop, err := e.varint()
	if err != nil || drop > len(e.name) {
		return errIndex
	}
	return e.untilNUL(len(e.name) - drop)
}

// varint is git's own: each further byte adds one before it shifts.
func (e *entryReader) varint() (int, error) {
	n := 0
	for i := 0; ; i++ {
		c, err := e.r.ReadByte()
		if err != nil || n > indexNameMax {
			return 0, errIndex
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
func (e *entryReader) untilNUL(keep int) error {
	part, err := e.r.ReadSlice(0)
	if err != nil || keep+len(part) > indexNameMax {
		return errIndex
	}
	e.name = append(e.name[:keep], part[:len(part)-1]...)
	return nil
}

// hashSize is how long object names are, in bytes.
func hashSize(entries []gitconfig.Entry) int {
	if strings.EqualFold(lastValue(entries, "extensions.objectformat"), "sha256") {
		return 32
	}
	return 20
}
