package agent

import (
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

// needsOfELF mounts what an ELF program needs of the host; start is the start of its file. Only headers and the
// dynamic section are read, however large the program is.
func (f *finder) needsOfELF(name, start string, file io.ReaderAt) error {
	for kind, class := range map[string]string{"32-bit": "\x01", "big-endian": "\x02\x02"} {
		if strings.HasPrefix(start, elf.ELFMAG+class) {
			return notExecutable(name, "use its 64-bit build, for x86_64 or aarch64",
				"it is a %s program; only 64-bit little-endian ones are served", kind)
		}
	}
	program, err := elf.NewFile(file)
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

// loader makes the program's loader available inside: it mounts the host's, with its libraries. Where the host has
// none, or only a link into the store, as on NixOS, the plan's loader is used; without one in the plan the program
// cannot run.
func (f *finder) mountLoader(name, loader string) error {
	if file, err := f.follow(loader); err != nil || inStore(file.name) {
		if f.PlanHasLoader {
			f.note("its loader is nix-ld's, its libraries those of the plan")
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
	if !f.covers(file.name) {
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
		return // its other dynamic strings are not read: some programs have megabytes of them
	}
	libraries, _ := program.DynString(elf.DT_NEEDED) // libraries whose names cannot be read are left out
	for _, folder := range folders {
		for _, library := range libraries {
			name := path.Join(folder, library)
			if f.covers(name) {
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
		if values, _ := program.DynValue(tag); len(values) == 0 {
			continue
		}
		entries, _ := program.DynString(tag)
		for _, entry := range entries {
			for _, folder := range strings.Split(origin.Replace(entry), ":") {
				if path.IsAbs(folder) {
					folders = append(folders, path.Clean(folder))
				}
			}
		}
	}
	return folders
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
