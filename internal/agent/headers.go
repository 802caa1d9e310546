package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// elfMagic is how every ELF file begins.
const elfMagic = "\x7fELF"

// Numbers of elf(5). Package debug/elf knows them all, but links what unpacks
// debug sections, for which each start would pay.
const (
	class64, littleEndian = 2, 1 // what claudebox's own programs are

	headerSize, segmentSize, dynamicSize = 64, 56, 16

	segmentLoad, segmentDynamic, segmentInterp = 1, 2, 3

	dynNull, dynNeeded, dynStrings, dynRpath, dynRunpath = 0, 1, 5, 15, 29
)

// Bounds far beyond what linkers write.
const (
	maxSegments = 256
	maxDynamic  = 4096
	maxString   = 8192 // bytes; a path of libraries is the longest
)

// headers are what the kernel and the loader read of an ELF program.
type headers struct {
	file     io.ReaderAt
	segments []elfSegment
	dynamic  []elfDynamic
}

type elfSegment struct {
	kind                  uint32
	offset, address, size uint64
}

type elfDynamic struct{ tag, value uint64 }

// readHeaders reads the segments of a program, and its dynamic section if it has
// one. No other part of the file is read.
func readHeaders(file io.ReaderAt) (headers, error) {
	h := headers{file: file}
	head, err := h.read(0, headerSize)
	if err != nil {
		return h, err
	}
	if string(head[:len(elfMagic)]) != elfMagic || head[4] != class64 || head[5] != littleEndian {
		return h, errors.New("not a program of 64 bits")
	}
	count := uint64(order.Uint16(head[56:]))
	if size := order.Uint16(head[54:]); count > 0 && size != segmentSize || count > maxSegments {
		return h, errors.New("the table of segments has an unknown form")
	}
	table, err := h.read(order.Uint64(head[32:]), count*segmentSize)
	if err != nil {
		return h, err
	}
	for ; len(table) > 0; table = table[segmentSize:] {
		h.segments = append(h.segments, elfSegment{
			kind: order.Uint32(table), offset: order.Uint64(table[8:]), address: order.Uint64(table[16:]),
			size: order.Uint64(table[32:]),
		})
	}
	return h, h.readDynamic()
}

var order = binary.LittleEndian

// read reads a part of the file, all of it.
func (h *headers) read(offset, size uint64) ([]byte, error) {
	if offset > 1<<62 {
		return nil, errors.New("a part lies beyond the end")
	}
	text := make([]byte, size)
	if n, err := h.file.ReadAt(text, int64(offset)); n < len(text) {
		return nil, err
	}
	return text, nil
}

// segment is the first segment of a kind.
func (h *headers) segment(kind uint32) (elfSegment, bool) {
	for _, s := range h.segments {
		if s.kind == kind {
			return s, true
		}
	}
	return elfSegment{}, false
}

func (h *headers) readDynamic() error {
	s, found := h.segment(segmentDynamic)
	if !found {
		return nil
	}
	if s.size > maxDynamic*dynamicSize {
		return errors.New("the dynamic section is too large")
	}
	table, err := h.read(s.offset, s.size)
	if err != nil {
		return err
	}
	for ; len(table) >= dynamicSize; table = table[dynamicSize:] {
		d := elfDynamic{tag: order.Uint64(table), value: order.Uint64(table[8:])}
		if d.tag == dynNull {
			break
		}
		h.dynamic = append(h.dynamic, d)
	}
	return nil
}

// interpreter is the loader that the program names (PT_INTERP); empty when it
// is linked statically.
func (h *headers) interpreter() string {
	s, found := h.segment(segmentInterp)
	if !found || s.size > headSize {
		return ""
	}
	text, err := h.read(s.offset, s.size)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(text), "\x00")
}

// dynStrings are the texts of one tag of the dynamic section. What cannot be
// read is left out.
func (h *headers) dynStrings(tag uint64) []string {
	var texts []string
	for _, d := range h.dynamic {
		if d.tag != tag {
			continue
		}
		if text, ok := h.dynString(d.value); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// dynString reads one text of the table of strings, which the dynamic section
// names by its address in memory.
func (h *headers) dynString(at uint64) (string, bool) {
	for _, d := range h.dynamic {
		if d.tag != dynStrings {
			continue
		}
		for _, s := range h.segments {
			if from := d.value + at - s.address; s.kind == segmentLoad && d.value+at >= s.address && from < s.size {
				return h.text(s.offset + from)
			}
		}
	}
	return "", false
}

// text is the text at a place, up to its end by a zero.
func (h *headers) text(offset uint64) (string, bool) {
	if offset > 1<<62 {
		return "", false
	}
	text := make([]byte, maxString)
	n, _ := h.file.ReadAt(text, int64(offset)) // it may end with the file
	end := bytes.IndexByte(text[:n], 0)
	if end < 0 {
		return "", false
	}
	return string(text[:end]), true
}
