package seccomp_test

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// foreign are attacks by calls of the other two ABIs that an amd64 kernel may
// know: i386 by int 0x80, and x32, whose ioctl is number 514.
var foreign = map[string]attack{
	"int 0x80 types into the user's shell from 64-bit code":         {program(elf64), sigsys},
	"int 0x80 types into the user's shell from a 32-bit program":    {program(elf32), sigsys},
	"x32's ioctl types into the user's shell":                       {call(x32|514, 0, unix.TIOCSTI, newline()), enosys},
	"x32's ioctl types into the user's shell with high bits set":    {call(x32|514, 0, unix.TIOCSTI|high, newline()), enosys},
	"x32's ioctl without the bit types into the shell (before 5.4)": {call(514, 0, unix.TIOCSTI, newline()), enosys},
	"x32's getpid is unknown, as on a kernel without it":            {call(x32 | unix.SYS_GETPID), enosys},
}

const x32 = 0x40000000

var sigsys = outcome{signal: unix.SIGSYS}

// typeNewline is i386 code for ioctl(0, TIOCSTI, "\n"), then exit with the
// error number. The address of the newline, behind the code, is filled in at
// typeNewlineAddress.
var typeNewline = []byte{
	0xb8, 54, 0, 0, 0, // mov eax, ioctl
	0x31, 0xdb, // xor ebx, ebx
	0xb9, 0x12, 0x54, 0, 0, // mov ecx, TIOCSTI
	0xba, 0, 0, 0, 0, // mov edx, address
	0xcd, 0x80, // int 0x80
	0x89, 0xc3, // mov ebx, eax
	0xf7, 0xdb, // neg ebx
	0xb8, 1, 0, 0, 0, // mov eax, exit
	0xcd, 0x80, // int 0x80
	'\n',
}

const typeNewlineAddress = 13

// loadAddress is where the programs below are mapped; int 0x80 passes 32 bits
// of an address.
const loadAddress = 0x10000

// program makes a program by build, in memory, and becomes it. The filter stays
// on over the exec.
func program(build func(code []byte) []byte) func() error {
	return func() error {
		fd, err := unix.MemfdCreate("program", 0)
		if err != nil {
			return fmt.Errorf("make a memory file: %v", err)
		}
		if _, err := unix.Write(fd, build(typeNewline)); err != nil {
			return fmt.Errorf("write the program: %v", err)
		}
		return fmt.Errorf("exec: %w", unix.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{"program"}, nil))
	}
}

// elf64 is a 64-bit program of one segment that runs code.
func elf64(code []byte) []byte {
	const headers = 64 + 56
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2)  // ET_EXEC
	b = le.AppendUint16(b, 62) // EM_X86_64
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, loadAddress+headers) // entry
	b = le.AppendUint64(b, 64)                  // program headers
	b = le.AppendUint64(b, 0)                   // section headers
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // PT_LOAD
	b = le.AppendUint32(b, 5) // readable, executable
	size := uint64(headers + len(code))
	for _, v := range []uint64{0, loadAddress, loadAddress, size, size, 0x1000} {
		b = le.AppendUint64(b, v)
	}
	return appendCode(b, code)
}

// elf32 is the same for i386.
func elf32(code []byte) []byte {
	const headers = 52 + 32
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2) // ET_EXEC
	b = le.AppendUint16(b, 3) // EM_386
	for _, v := range []uint32{1, loadAddress + headers, 52, 0, 0} {
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint16{52, 32, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	size := uint32(headers + len(code))
	for _, v := range []uint32{1, 0, loadAddress, loadAddress, size, size, 5, 0x1000} {
		b = le.AppendUint32(b, v)
	}
	return appendCode(b, code)
}

// appendCode puts code behind the headers, with the address of its last byte
// filled in.
func appendCode(headers, code []byte) []byte {
	b := append(headers, code...)
	last := loadAddress + uint32(len(b)) - 1
	binary.LittleEndian.PutUint32(b[len(headers)+typeNewlineAddress:], last)
	return b
}
