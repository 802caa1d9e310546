package agent_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"claudebox/internal/agent"
)

// user runs the tests' agents; the primary group has the user's number.
const user = 1000

// tree is a host in memory: files by name, and the folders they lie in. A
// content that begins with "->" is a link, an empty one a folder. Every file
// belongs to root but those below /home/u, which are the user's, and those
// that owners names.
type tree struct {
	files  map[string]string
	owners map[string]owner
}

// owner overrides what a file of a tree says of itself.
type owner struct {
	uid, gid uint32
	mode     fs.FileMode // added
	plain    bool        // not executable
}

func newTree(files map[string]string, owners map[string]owner) tree {
	all := map[string]string{"/": ""}
	for name, content := range files {
		all[name] = content
		for dir := path.Dir(name); all[dir] == ""; dir = path.Dir(dir) {
			all[dir] = ""
			if dir == "/" {
				break
			}
		}
	}
	return tree{all, owners}
}

func (h tree) Readlink(name string) (string, error) {
	target, ok := strings.CutPrefix(h.files[name], "->")
	if !ok {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: syscall.EINVAL}
	}
	return target, nil
}

func (h tree) Open(name string) (agent.File, error) {
	return struct {
		io.ReaderAt
		io.Closer
	}{strings.NewReader(h.files[name]), io.NopCloser(nil)}, nil
}

func (h tree) Lstat(name string) (fs.FileInfo, error) {
	content, ok := h.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	}
	o, ok := h.owners[name]
	if !ok && strings.HasPrefix(name, "/home/u") {
		o = owner{uid: user, gid: user}
	}
	return entry{content: content, owner: o}, nil
}

// entry is a file of a tree.
type entry struct {
	fs.FileInfo
	content string
	owner   owner
}

func (e entry) Mode() fs.FileMode {
	switch {
	case e.content == "":
		return fs.ModeDir | 0o755 | e.owner.mode
	case strings.HasPrefix(e.content, "->"):
		return fs.ModeSymlink | 0o777
	case e.owner.plain:
		return 0o644
	}
	return 0o755 | e.owner.mode
}

func (e entry) IsDir() bool { return e.Mode().IsDir() }

func (e entry) Sys() any { return &syscall.Stat_t{Uid: e.owner.uid, Gid: e.owner.gid} }

// loader64 is where programs that were built for any distribution look.
const loader64 = "/lib64/ld-linux-x86-64.so.2"

// program is an ELF program with a loader, or none, that needs the libraries, or else libx.so, and looks for them in
// runpath.
func program(loader, runpath string, libraries ...string) string {
	if len(libraries) == 0 {
		libraries = []string{"libx.so"}
	}
	const header, segment, section, entry = 64, 56, 64, 16
	interp := loader + "\x00"
	strtab, dynamic := "\x00", []elf.Dyn64(nil)
	for _, library := range libraries {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: uint64(len(strtab))})
		strtab += library + "\x00"
	}
	if runpath != "" {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_RUNPATH), Val: uint64(len(strtab))})
		strtab += runpath + "\x00"
	}
	interpAt := uint64(header + 3*segment)
	stringsAt := interpAt + uint64(len(interp))
	dynamicAt := stringsAt + uint64(len(strtab))
	dynamic = append(dynamic, elf.Dyn64{})
	size := uint64(len(dynamic) * entry)
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: header,
		Ehsize: header, Phentsize: segment, Shoff: dynamicAt + size, Shentsize: section, Shnum: 3, Shstrndx: 1,
	}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	if loader != "" {
		h.Phnum = 3
	}
	var b bytes.Buffer
	for _, part := range []any{
		h,
		elf.Prog64{Type: uint32(elf.PT_INTERP), Off: interpAt, Filesz: uint64(len(interp)), Memsz: uint64(len(interp))},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Filesz: dynamicAt},
		elf.Prog64{Type: uint32(elf.PT_DYNAMIC), Off: dynamicAt, Filesz: size},
		[]byte(interp), []byte(strtab), dynamic,
		elf.Section64{},
		elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: stringsAt, Size: uint64(len(strtab))},
		elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Off: dynamicAt, Size: size, Link: 1, Entsize: entry},
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return b.String()
}

// code is a file that may be a loader or a library.
const code = "\x7fELF"

// debian is a host whose /usr is merged; split one whose /lib is not.
func debian(more map[string]string) map[string]string {
	return merge(map[string]string{
		"/lib": "->usr/lib", "/lib64": "->usr/lib64", "/usr/lib/x.so": "x", "/usr/lib64/ld-linux-x86-64.so.2": code,
	}, more)
}

func split(more map[string]string) map[string]string {
	return merge(map[string]string{
		"/lib/x/libc.so": "x", "/lib64/ld-linux-x86-64.so.2": code, "/usr/lib/x.so": "x",
	}, more)
}

// nixos is a host that has a link to the store where the loader should be.
func nixos(more map[string]string) map[string]string {
	return merge(map[string]string{
		loader64:                               "->/nix/store/s-stub-ld/libexec/stub-ld",
		"/nix/store/s-stub-ld/libexec/stub-ld": "loader",
	}, more)
}

func merge(a, b map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for name, content := range m {
			all[path.Clean(name)] = content
		}
	}
	return all
}
