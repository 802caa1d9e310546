package agent

import (
	"cmp"
	"debug/elf"
	"errors"
	"io"
	"path"
	"strings"

	"claudebox/internal/diag"
)

// headSize is how much of a file is read to tell what it is: enough for a
// script that does nothing but start another program. The kernel looks at
// 256 bytes.
const headSize = 4096

// maxScripts is how many interpreters may be scripts themselves before it is
// taken for a circle; the kernel allows five.
const maxScripts = 5

// words are those that run the program name inside, its interpreter's first.
// What they need of the host is mounted.
func (f *finder) words(name string) ([]string, error) {
	file, err := f.trusted(name)
	if err != nil {
		return nil, err
	}
	if inStore(file.name) {
		return []string{samePackage(file)}, nil
	}
	if !file.info.Mode().IsRegular() {
		return nil, notExecutable(file.name, "", "not a regular file")
	}
	if !f.mayExecute(file) {
		return nil, notExecutable(file.name, "chmod +x "+file.name, "its mode does not let user %d run it", f.UID)
	}
	return f.outsideStore(file.name)
}

// samePackage is the name to run a program of the store by: the first of its
// names that lies in the package of the last, because a program may act by
// its name, and a profile's link farm would bring its whole closure along.
func samePackage(file found) string {
	for _, name := range file.names {
		if inStore(name) && storePath(name) == storePath(file.name) {
			return name
		}
	}
	return file.name
}

// storePath is the store path that a file of the store belongs to.
func storePath(name string) string {
	base, _, _ := strings.Cut(strings.TrimPrefix(name, store+"/"), "/")
	return base
}

// outsideStore reads what kind of program a file is.
func (f *finder) outsideStore(name string) ([]string, error) {
	file, err := f.Files.Open(name)
	if err != nil {
		return nil, notExecutable(name, "", "it cannot be read to see what it needs inside: %v", err)
	}
	defer file.Close()
	head := make([]byte, headSize)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &diag.Error{Op: "read " + name, Err: err}
	}
	switch start := string(head[:n]); {
	case strings.HasPrefix(start, elf.ELFMAG):
		f.own(name, packageFolder)
		return []string{name}, f.elf(name, file)
	case strings.HasPrefix(start, "#!"):
		return f.script(name, start)
	}
	return nil, notExecutable(name, "", "neither an ELF program nor a script with an interpreter")
}

const hostsOwn = " is the host's"

// own mounts the program: its folder when it is one of many files, else the
// file alone. An interpreter is always alone: who wrote the script chose its
// path, and must not choose a folder.
func (f *finder) own(name string, folder func(name string) string) {
	where, what := name, "the agent's interpreter"
	if !f.alone {
		where, what = cmp.Or(folder(name), name), "the agent's program"
	}
	f.mounts = append(f.mounts, readOnly(where, where, what))
	f.notes = append(f.notes, what+" "+path.Base(name)+hostsOwn)
}
