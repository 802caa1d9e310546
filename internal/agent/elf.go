package agent

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/pathname"
)

// maxMounts bounds what one program can ask for: each mount costs the start
// of a session more than the one before.
const maxMounts = 40

// elf mounts what an ELF program needs of the host. Only headers and the
// dynamic section are read, however large the program is.
func (f *finder) elf(name string, file io.ReaderAt) error {
	program, err := readHeaders(file)
	if err != nil {
		return notExecutable(name, "", "its ELF headers are broken: %v", err)
	}
	loader := program.interpreter()
	if loader == "" || inStore(loader) {
		return nil // linked statically, or patched for Nix
	}
	if err := f.loader(name, loader); err != nil {
		return err
	}
	f.privateLibraries(name, program)
	return nil
}

// loader sees to it that the program's loader is inside: the host's with its
// libraries, or the plan's where the host has none that could serve, as on
// NixOS, where a link to the store stands in for it.
func (f *finder) loader(name, loader string) error {
	file, err := f.follow(loader)
	switch {
	case err == nil && !inStore(file.name):
	case f.Loader:
		f.notes = append(f.notes, "its loader is nix-ld's, its libraries those of the plan")
		return nil
	default:
		return notExecutable(name, "set compat: nix-ld in the profile, or use a claude-code of nixpkgs",
			"its loader %s is not on this host", loader)
	}
	if file, err = f.trusted(loader); err != nil {
		return err
	}
	if !f.isCode(file) {
		return notExecutable(name, "", "its loader %s is no program", loader)
	}
	f.mountLibraries()
	if !f.covers(file.name) {
		f.mounts = append(f.mounts, readOnly(file.name, loader, "loader of the agent's program"))
	}
	return nil
}

// isCode reports whether a file that a program names may be shown to it: the
// program may be hostile, and name a secret as its loader or library.
func (f *finder) isCode(file found) bool {
	for _, folder := range []string{"/proc", "/sys", "/dev"} { // what the kernel says, no files
		if pathname.Below(file.name, folder) {
			return false
		}
	}
	if !file.info.Mode().IsRegular() {
		return false
	}
	open, err := f.Files.Open(file.name)
	if err != nil {
		return false
	}
	defer open.Close()
	head := make([]byte, len(elf.ELFMAG))
	n, _ := open.ReadAt(head, 0)
	return string(head[:n]) == elf.ELFMAG
}

// privateLibraries mounts, one by one, the libraries that the program finds
// through a path of its own (DT_RPATH, DT_RUNPATH).
func (f *finder) privateLibraries(name string, program headers) {
	folders := searchPath(name, program)
	if len(folders) == 0 {
		return
	}
	libraries := program.dynStrings(elf.DT_NEEDED)
	for _, folder := range folders {
		for _, library := range libraries {
			name := path.Join(folder, library)
			if f.covers(name) || len(f.mounts) > maxMounts {
				continue
			}
			if file, err := f.follow(name); err == nil && file.fault == nil && f.isCode(file) {
				f.mounts = append(f.mounts, readOnly(file.name, name, "library of the agent's program"))
			}
		}
	}
}

// searchPath is the program's own path of libraries, $ORIGIN being its
// folder. Relative entries depend on where the agent is started, and count
// for nothing.
func searchPath(name string, program headers) []string {
	origin := strings.NewReplacer("$ORIGIN", path.Dir(name), "${ORIGIN}", path.Dir(name))
	var folders []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		for _, entry := range program.dynStrings(tag) {
			for _, folder := range strings.Split(origin.Replace(entry), ":") {
				if path.IsAbs(folder) {
					folders = append(folders, path.Clean(folder))
				}
			}
		}
	}
	return folders
}

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
