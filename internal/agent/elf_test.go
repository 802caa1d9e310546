package agent_test

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent"
)

// Of a program with many libraries of its own some are left out, and it is said from which one on.
func TestAProgramHasFortyMountsAtMost(t *testing.T) {
	const others = 5 // the program itself, and the library folders of the host
	for count, want := range map[int]string{
		40 - others:     "",
		40 - others + 1: "/opt/own/lib35.so and what follows are left out",
		60:              "/opt/own/lib35.so and what follows are left out",
	} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			var libraries []string
			files := map[string]string{}
			for i := range count {
				libraries = append(libraries, fmt.Sprintf("lib%d.so", i))
				files["/opt/own/"+libraries[i]] = code
			}
			// Libraries that are nowhere count for nothing.
			needed := slices.Concat([]string{"libc.so.6"}, libraries, []string{"libm.so.6"})
			r := request(nil)
			r.Files = newTree(debian(merge(installed(program(loader64, "/opt/own", needed...)), files)), nil)
			got, err := agent.Find(r)
			must.Do(t, err)
			if len(got.Mounts) != min(count+others, 40) {
				t.Errorf("%d mounts: %s", len(got.Mounts), lines(got.Mounts))
			}
			notes := strings.Join(got.Notes, "\n")
			if !strings.Contains(notes, want) || strings.Contains(notes, "left out") != (want != "") {
				t.Errorf("notes %q; want %q", got.Notes, want)
			}
		})
	}
}

// endless is a file with zeros, as of a hole, behind its content.
type endless struct{ io.ReaderAt }

func (endless) Close() error { return nil }

func (e endless) ReadAt(p []byte, at int64) (int, error) {
	n, _ := e.ReaderAt.ReadAt(p, at)
	clear(p[n:])
	return len(p), nil
}

// endlessTree is a host whose files are endless.
type endlessTree struct{ tree }

func (t endlessTree) Open(name string) (agent.File, error) {
	return endless{strings.NewReader(t.files[name])}, nil
}

// crafted is a program whose headers are changed, with more at its end: of its sections the second has its strings, the
// third its dynamic entries.
func crafted(end string, libraries []string, change func(h *elf.Header64, s []elf.Section64, content []byte)) string {
	content := []byte(program(loader64, "/opt/own", libraries...))
	var h elf.Header64
	_, _ = binary.Decode(content, binary.LittleEndian, &h)
	sections := make([]elf.Section64, h.Shnum)
	_, _ = binary.Decode(content[h.Shoff:], binary.LittleEndian, sections)
	change(&h, sections, content)
	_, _ = binary.Encode(content, binary.LittleEndian, h)
	_, _ = binary.Encode(content[h.Shoff:], binary.LittleEndian, sections)
	return string(content) + end
}

// Whatever the headers of a program claim, reading them takes little memory.
func TestAProgramsHeadersTakeLittleMemory(t *testing.T) {
	const much, little = 128 << 20, 64 << 20
	var bomb bytes.Buffer
	_ = binary.Write(&bomb, binary.LittleEndian, elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: much})
	w, _ := zlib.NewWriterLevel(&bomb, zlib.BestSpeed)
	_, _ = w.Write(make([]byte, much))
	_ = w.Close()
	pack := func(s *elf.Section64, content []byte) {
		s.Flags, s.Off, s.Size = uint64(elf.SHF_COMPRESSED), uint64(len(content)), uint64(bomb.Len())
	}
	type sections = []elf.Section64
	for name, content := range map[string]string{
		"packed names of sections": crafted(bomb.String(), nil, func(_ *elf.Header64, s sections, content []byte) {
			pack(&s[1], content)
		}),
		"packed strings": crafted(bomb.String(), nil, func(h *elf.Header64, s sections, content []byte) {
			h.Shstrndx = 0
			pack(&s[1], content)
		}),
		"packed dynamic entries": crafted(bomb.String(), nil, func(h *elf.Header64, s sections, content []byte) {
			h.Shstrndx = 0
			pack(&s[2], content)
		}),
		"names of sections in a hole": crafted("", nil, func(_ *elf.Header64, s sections, _ []byte) { s[1].Size = much }),
		"dynamic entries in a hole":   crafted("", nil, func(_ *elf.Header64, s sections, _ []byte) { s[2].Size = much }),
		"headers of segments in a hole": crafted("", nil, func(h *elf.Header64, _ sections, _ []byte) {
			h.Phnum, h.Phentsize = 1<<15, much>>15
		}),
		"headers of sections in a hole": crafted("", nil, func(h *elf.Header64, _ sections, _ []byte) {
			h.Shnum, h.Shentsize = 1<<15, much>>15
		}),
		"one long name, many times": crafted("", append([]string{strings.Repeat("x", 1<<20)}, make([]string, much>>20)...),
			func(_ *elf.Header64, s sections, content []byte) {
				for i := range uint64(much >> 20) {
					binary.LittleEndian.PutUint64(content[s[2].Off+16*(i+1)+8:], 1)
				}
			}),
	} {
		t.Run(name, func(t *testing.T) {
			r := request(nil)
			r.Files = endlessTree{newTree(debian(installed(content)), nil)}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = agent.Find(r) // some are refused
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > little {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}
