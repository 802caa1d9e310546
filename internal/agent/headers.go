package agent

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
)

// Bounds far beyond what linkers write.
const (
	maxDynamic = 4096
	maxString  = 8192 // bytes; a path of libraries is the longest
)

// headers are what the kernel and the loader read of an ELF program: its segments,
// and the dynamic section if it has one. What the table of sections says is not
// heeded, as they do not heed it.
type headers struct {
	segments []*elf.Prog
	dynamic  []elf.Dyn64
}

func readHeaders(file io.ReaderAt) (h headers, err error) {
	program, err := elf.NewFile(file)
	if err != nil {
		return h, err
	}
	if program.Class != elf.ELFCLASS64 || program.Data != elf.ELFDATA2LSB {
		return h, errors.New("not a program of 64 bits")
	}
	h.segments = program.Progs
	segment := h.segment(elf.PT_DYNAMIC)
	if segment == nil {
		return h, nil
	}
	count := segment.Filesz / uint64(binary.Size(elf.Dyn64{}))
	if count > maxDynamic {
		return h, errors.New("the dynamic section is too large")
	}
	h.dynamic = make([]elf.Dyn64, count)
	err = binary.Read(segment.Open(), binary.LittleEndian, h.dynamic)
	if end := slices.IndexFunc(h.dynamic, func(d elf.Dyn64) bool { return d.Tag == int64(elf.DT_NULL) }); end >= 0 {
		h.dynamic = h.dynamic[:end]
	}
	return h, err
}

// segment is the first segment of a kind; nil: there is none.
func (h headers) segment(kind elf.ProgType) *elf.Prog {
	for _, s := range h.segments {
		if s.Type == kind {
			return s
		}
	}
	return nil
}

// interpreter is the loader that the program names; empty when it is linked
// statically.
func (h headers) interpreter() string {
	s := h.segment(elf.PT_INTERP)
	if s == nil || s.Filesz > headSize {
		return ""
	}
	text, err := io.ReadAll(s.Open())
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(text), "\x00")
}

// dynStrings are the texts of one tag of the dynamic section. What cannot be
// read is left out.
func (h headers) dynStrings(tag elf.DynTag) []string {
	var texts []string
	table := slices.IndexFunc(h.dynamic, func(d elf.Dyn64) bool { return d.Tag == int64(elf.DT_STRTAB) })
	for _, d := range h.dynamic {
		if d.Tag != int64(tag) || table < 0 {
			continue
		}
		if text, ok := h.text(h.dynamic[table].Val + d.Val); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// text is the text at an address in memory, up to its end by a zero.
func (h headers) text(at uint64) (string, bool) {
	for _, s := range h.segments {
		if s.Type != elf.PT_LOAD || at < s.Vaddr || at-s.Vaddr >= s.Filesz {
			continue
		}
		text := make([]byte, maxString)
		n, _ := s.ReadAt(text, int64(at-s.Vaddr)) // it may end with the segment
		end := bytes.IndexByte(text[:n], 0)
		return string(text[:max(end, 0)]), end >= 0
	}
	return "", false
}
