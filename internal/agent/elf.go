package agent

import (
	"debug/elf"
	"io"
	"path"
	"strings"
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
		return f.hostLoader(name, loader)
	case f.Loader:
		f.notes = append(f.notes, "its loader is nix-ld's, its libraries those of the plan")
		return nil
	}
	return notExecutable(name, "set compat: nix-ld in the profile, or use a claude-code of nixpkgs",
		"its loader %s is not on this host", loader)
}

func (f *finder) hostLoader(name, loader string) error {
	file, err := f.trusted(loader)
	if err != nil {
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

// kernelFolders show what the kernel says, not files.
var kernelFolders = []string{"/proc", "/sys", "/dev"}

// isCode reports whether a file that a program names may be shown to it: the
// program may be hostile, and name a secret as its loader or library.
func (f *finder) isCode(file found) bool {
	for _, folder := range kernelFolders {
		if within(file.name, folder) {
			return false
		}
	}
	return file.info.Mode().IsRegular() && strings.HasPrefix(f.head(file.name, len(elf.ELFMAG)), elf.ELFMAG)
}

// head is how a file begins; less when there is no more, or it cannot be
// read.
func (f *finder) head(name string, size int) string {
	file, err := f.Files.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	text := make([]byte, size)
	n, _ := file.ReadAt(text, 0)
	return string(text[:n])
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
			f.privateLibrary(path.Join(folder, library))
		}
	}
}

func (f *finder) privateLibrary(name string) {
	if f.covers(name) || len(f.mounts) > maxMounts {
		return
	}
	if file, err := f.follow(name); err == nil && file.fault == nil && f.isCode(file) {
		f.mounts = append(f.mounts, readOnly(file.name, name, "library of the agent's program"))
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
