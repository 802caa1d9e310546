package agent

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/pathname"
)

// maxMounts bounds how many mounts a program gets, with its interpreter and libraries: each mount costs the start of a
// session more than the one before.
const maxMounts = 40

// Bounds, in bytes, of what is read of an ELF program, a text that is read again counted again: a hostile program may
// claim any size for its headers, and name one text any number of times. A text is a library's name or a search path.
const (
	maxHeaders = 16 << 20
	maxText    = 16 << 10
)

// headers reads an ELF program until no bytes are left to be read. It hides where the names of its sections are:
// nobody needs these, and [elf.NewFile] would unpack them to whatever size.
type headers struct {
	io.ReaderAt
	left int
}

func (h *headers) ReadAt(p []byte, at int64) (int, error) {
	const names, end = 62, 64 // of Shstrndx in an [elf.Header64]
	if h.left -= len(p); h.left < 0 {
		return 0, fmt.Errorf("more than %d bytes", maxHeaders)
	}
	n, err := h.ReaderAt.ReadAt(p, at)
	if at == 0 && n == end {
		clear(p[names:])
	}
	return n, err
}

// needsOfELF mounts what an ELF program needs of the host; start is the start of its file. Only headers and the
// dynamic section are read, however large the program is.
func (f *finder) needsOfELF(name, start string, file io.ReaderAt) error {
	for kind, class := range map[string]string{"32-bit": "\x01", "big-endian": "\x02\x02"} {
		if strings.HasPrefix(start, elf.ELFMAG+class) {
			return notExecutable(name, "use its 64-bit build, for x86_64 or aarch64",
				"it is a %s program; only 64-bit little-endian ones are served", kind)
		}
	}
	program, err := elf.NewFile(&headers{file, maxHeaders})
	if err != nil {
		return notExecutable(name, "", "its ELF headers are broken: %v", err)
	}
	loader := loaderOf(program)
	if loader == "" || inStore(loader) {
		return nil // linked statically, or patched for Nix
	}
	if err := f.mountLoader(name, loader); err != nil {
		return err
	}
	f.privateLibraries(name, program)
	return nil
}

// mountLoader makes the program's loader available inside: it mounts the host's, with its libraries. Where the host has
// none, or only a link into the store, as on NixOS, the plan's loader is used; without one in the plan the program
// cannot run.
func (f *finder) mountLoader(name, loader string) error {
	if file, err := f.follow(loader); err != nil || inStore(file.name) {
		if f.PlanHasLoader {
			return nil
		}
		return notExecutable(name, "set compat: nix-ld in the profile, or use a claude-code of nixpkgs",
			"its loader %s is not on this host", loader)
	}
	file, err := f.trusted(loader)
	if err != nil {
		return err
	}
	if !f.isCode(file) {
		return notExecutable(name, "", "its loader %s is no program", loader)
	}
	f.mountLibraries()
	if !f.isInside(file.name) {
		f.mount(Mount{Source: file.name, Destination: loader})
	}
	return nil
}

// isCode reports whether file is a regular file in ELF format. Only such files are mounted because a program names
// them: the program may be hostile, and name a secret as its loader or library.
func (r Request) isCode(file found) bool {
	for _, folder := range []string{"/proc", "/sys", "/dev"} { // virtual file systems of the kernel
		if pathname.Below(file.name, folder) {
			return false
		}
	}
	if !file.info.Mode().IsRegular() {
		return false
	}
	open, err := r.Files.Open(file.name)
	if err != nil {
		return false
	}
	defer open.Close()
	head := make([]byte, len(elf.ELFMAG))
	n, _ := open.ReadAt(head, 0)
	return string(head[:n]) == elf.ELFMAG
}

// privateLibraries mounts, one by one, the libraries that the program finds through a path of its own (DT_RPATH,
// DT_RUNPATH). A note says from which one on they are left out because there would be more than maxMounts.
func (f *finder) privateLibraries(name string, program *elf.File) {
	folders := searchPath(name, program)
	if len(folders) == 0 {
		return // the names of its libraries are not read
	}
	libraries := dynamicStrings(program, elf.DT_NEEDED)
	for _, folder := range folders {
		for _, library := range libraries {
			name := path.Join(folder, library)
			if f.isInside(name) {
				continue
			}
			file, err := f.follow(name)
			if err != nil || file.fault != nil || !f.isCode(file) {
				continue
			}
			if len(f.made.Mounts) >= maxMounts {
				f.note(fmt.Sprintf("its library %s and what follows are left out: a program gets at most %d mounts",
					name, maxMounts))
				return
			}
			f.mount(Mount{Source: file.name, Destination: name})
		}
	}
}

// searchPath returns the folders of DT_RPATH and DT_RUNPATH, with $ORIGIN replaced by the program's folder. Relative
// entries are ignored: where they lead depends on the folder in which the agent is started.
func searchPath(name string, program *elf.File) []string {
	origin := strings.NewReplacer("$ORIGIN", path.Dir(name), "${ORIGIN}", path.Dir(name))
	var folders []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		entries := dynamicStrings(program, tag)
		for _, entry := range entries[max(0, len(entries)-1):] { // the loader obeys the last
			for _, folder := range strings.Split(origin.Replace(entry), ":") {
				if path.IsAbs(folder) {
					folders = append(folders, path.Clean(folder))
				}
			}
		}
	}
	return folders
}

// dynamicStrings returns the texts of a tag in the dynamic section, without those that cannot be read or have maxText
// bytes or more, and none of a section that is packed, which no loader would unpack.
func dynamicStrings(program *elf.File, tag elf.DynTag) (texts []string) {
	section := program.SectionByType(elf.SHT_DYNAMIC)
	if section == nil || section.ReaderAt == nil || int(section.Link) >= len(program.Sections) {
		return nil
	}
	table := program.Sections[section.Link]
	if table.ReaderAt == nil {
		return nil
	}
	places, _ := program.DynValue(tag)
	var buffer [maxText]byte
	for _, at := range places {
		n, _ := table.ReadAt(buffer[:], int64(at))
		if text, _, whole := bytes.Cut(buffer[:n], []byte{0}); whole {
			texts = append(texts, string(text))
		}
	}
	return texts
}

// loaderOf returns the path of the loader that a program names; empty if it is linked statically or the path
// cannot be read.
func loaderOf(program *elf.File) string {
	i := slices.IndexFunc(program.Progs, func(s *elf.Prog) bool { return s.Type == elf.PT_INTERP })
	if i < 0 || program.Progs[i].Filesz > headSize {
		return ""
	}
	text, err := io.ReadAll(program.Progs[i].Open())
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(text), "\x00")
}
