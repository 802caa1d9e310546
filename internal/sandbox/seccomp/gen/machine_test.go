package main

import (
	"encoding/binary"
	"syscall"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"

	"claudebox/checks/kit/must"
)

// call is what the kernel tells a filter: struct seccomp_data without the
// instruction pointer.
type call struct {
	number uint32
	arch   arch.AuditArch
	args   [6]uint64
}

// packet lays c out for the interpreter, which loads big-endian words where
// the kernel loads the machine's: low word of an argument first, as on both
// architectures.
func (c call) packet() []byte {
	var p []byte
	for _, word := range []uint32{c.number, uint32(c.arch), 0, 0} {
		p = binary.BigEndian.AppendUint32(p, word)
	}
	for _, arg := range c.args {
		p = binary.BigEndian.AppendUint32(p, uint32(arg))
		p = binary.BigEndian.AppendUint32(p, uint32(arg>>32))
	}
	return p
}

// machine interprets a filter as the kernel does.
type machine struct{ vm *bpf.VM }

// newMachine reads the bytes back, so that the encoding is under test too.
func newMachine(t *testing.T, goarch string) machine {
	t.Helper()
	filter, err := assemble(goarch, rules)
	must.Do(t, err)
	var program []bpf.Instruction
	for i := 0; i+8 <= len(filter); i += 8 {
		program = append(program, bpf.RawInstruction{
			Op: binary.LittleEndian.Uint16(filter[i:]),
			Jt: filter[i+2], Jf: filter[i+3],
			K: binary.LittleEndian.Uint32(filter[i+4:]),
		}.Disassemble())
	}
	vm, err := bpf.NewVM(program)
	must.Do(t, err)
	return machine{vm}
}

// decide gives the filter's verdict on c.
func (m machine) decide(t *testing.T, c call) seccomp.Action {
	t.Helper()
	verdict, err := m.vm.Run(c.packet())
	must.Do(t, err)
	return seccomp.Action(verdict)
}

// number looks name up for goarch.
func number(t *testing.T, goarch, name string) uint32 {
	t.Helper()
	info, err := arch.GetInfo(goarch)
	must.Do(t, err)
	n, ok := info.SyscallNames[name]
	if !ok {
		t.Fatalf("%s has no call %q", goarch, name)
	}
	return uint32(n)
}

// native is what the kernel of goarch says of its own calls.
var native = map[string]*arch.Info{"amd64": arch.X86_64, "arm64": arch.AARCH64}

// fails is the verdict that makes a call fail with errno.
func fails(errno syscall.Errno) seccomp.Action {
	return seccomp.ActionErrno | seccomp.Action(errno)
}
