package main

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	offNumber = 0
	offArch   = 4
)

// x32 is the ABI of 64-bit code with 32-bit pointers: the same calls under
// other numbers, which would pass every rule. Kernels before 5.4 take x32First
// to x32Last, ioctl among them, without the bit as well; newer ones leave
// these numbers unused for good. None of them means anything on arm64.
const (
	x32Bit   = 0x40000000
	x32First = 512
	x32Last  = 547
)

// skipped is the number a debugger sets to cancel a call. It does nothing,
// and refusing it would overwrite the result that the debugger injected.
const skipped = 0xffffffff

// shortJump is how far a conditional jump of BPF reaches. The library's way
// round longer ones is not trusted here: a longer program is a bug.
const shortJump = 255

// assembler makes one program. Its layout: check the architecture, compare the
// number with each that has rules, then one body a label.
type assembler struct {
	info   *arch.Info
	prog   seccomp.Program
	allow  seccomp.Label
	errnos map[syscall.Errno]seccomp.Label
	bodies map[uint32]seccomp.Label // calls whose arguments decide, by number
	rules  map[uint32][]rule        // by number, in the order of the table
}

// assemble makes the program for goarch, as an array of struct sock_filter.
// It does not use the library's Policy: that allows foreign architectures
// under a default of allow, and compares all 64 bits of an argument.
func assemble(goarch string, table []rule) ([]byte, error) {
	info, err := arch.GetInfo(goarch)
	if err != nil {
		return nil, err
	}
	a := &assembler{info: info, prog: seccomp.NewProgram()}
	if a.rules, err = byNumber(info, goarch, table); err != nil {
		return nil, err
	}
	a.label()
	a.emitNumbers()
	a.emitBodies()
	return a.encode()
}

// byNumber orders the table by the numbers that goarch gives the calls.
func byNumber(info *arch.Info, goarch string, table []rule) (map[uint32][]rule, error) {
	rules := map[uint32][]rule{}
	for _, r := range table {
		if r.only != "" && r.only != goarch {
			continue
		}
		for _, call := range r.calls {
			number, ok := info.SyscallNames[call]
			if !ok {
				return nil, fmt.Errorf("%s has no call %q", goarch, call)
			}
			rules[uint32(number)] = append(rules[uint32(number)], r)
		}
	}
	return rules, nil
}

// label gives every place that a number can lead to a label.
func (a *assembler) label() {
	a.allow = a.prog.NewLabel()
	a.errnos = map[syscall.Errno]seccomp.Label{unix.ENOSYS: a.prog.NewLabel()}
	a.bodies = map[uint32]seccomp.Label{}
	for _, number := range a.numbers() {
		first := a.rules[number][0]
		if len(first.when) > 0 {
			a.bodies[number] = a.prog.NewLabel()
		} else if _, ok := a.errnos[first.errno]; !ok {
			a.errnos[first.errno] = a.prog.NewLabel()
		}
	}
}

// numbers are those of the calls with rules, in order, so that the same
// table makes the same bytes.
func (a *assembler) numbers() []uint32 { return slices.Sorted(maps.Keys(a.rules)) }

// emitNumbers leads each number that has rules to its place, refuses x32's, and
// allows all others.
func (a *assembler) emitNumbers() {
	for _, number := range a.numbers() {
		to, ok := a.bodies[number]
		if !ok {
			to = a.errnos[a.rules[number][0].errno]
		}
		a.prog.JmpIfTrue(bpf.JumpEqual, number, to)
	}
	a.prog.JmpIfTrue(bpf.JumpEqual, skipped, a.allow)
	a.prog.JmpIfTrue(bpf.JumpGreaterOrEqual, x32Bit, a.errnos[unix.ENOSYS])
	a.prog.JmpIfTrue(bpf.JumpGreaterThan, x32Last, a.allow)
	a.prog.JmpIf(bpf.JumpGreaterOrEqual, x32First, a.errnos[unix.ENOSYS], a.allow)
}

// emitBodies writes what the numbers lead to: the calls whose arguments decide,
// then one return for each verdict.
func (a *assembler) emitBodies() {
	for _, number := range a.numbers() {
		if body, ok := a.bodies[number]; ok {
			a.prog.SetLabel(body)
			a.emitRules(a.rules[number])
		}
	}
	for _, errno := range slices.Sorted(maps.Keys(a.errnos)) {
		a.prog.SetLabel(a.errnos[errno])
		a.prog.Ret(refuse(errno))
	}
	a.prog.SetLabel(a.allow)
	a.prog.Ret(seccomp.ActionAllow)
}

// emitRules tries the rules of one call in their order.
func (a *assembler) emitRules(rules []rule) {
	for _, r := range rules {
		next := a.prog.NewLabel()
		for _, m := range r.when {
			a.emitMatch(m, next)
		}
		a.prog.Ret(refuse(r.errno))
		a.prog.SetLabel(next)
	}
	a.prog.Ret(seccomp.ActionAllow)
}

// emitMatch goes on behind itself when m holds, and to next when not.
func (a *assembler) emitMatch(m match, next seccomp.Label) {
	a.prog.LdLo(m.arg)
	if m.test == noneOf {
		for _, value := range m.values {
			a.prog.JmpIfTrue(bpf.JumpEqual, value, next)
		}
		return
	}
	condition := map[test]bpf.JumpTest{oneOf: bpf.JumpEqual, anyBit: bpf.JumpBitsSet}[m.test]
	holds := a.prog.NewLabel()
	last := len(m.values) - 1
	for _, value := range m.values[:last] {
		a.prog.JmpIfTrue(condition, value, holds)
	}
	a.prog.JmpIf(condition, m.values[last], holds, next)
	a.prog.SetLabel(holds)
}

// refuse is the verdict that makes a call fail with errno.
func refuse(errno syscall.Errno) seccomp.Action {
	return seccomp.ActionErrno | seccomp.Action(errno)
}

// encode resolves the jumps, puts the architecture check in front and writes
// the instructions as the kernel of a little-endian machine reads them.
func (a *assembler) encode() ([]byte, error) {
	body, err := a.prog.Assemble()
	if err != nil {
		return nil, err
	}
	if len(body) > shortJump {
		return nil, fmt.Errorf("bug: %d instructions, and a jump reaches %d", len(body), shortJump)
	}
	raw, err := bpf.Assemble(append(a.entry(), body...))
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, i := range raw {
		out = binary.LittleEndian.AppendUint16(out, i.Op)
		out = append(out, i.Jt, i.Jf)
		out = binary.LittleEndian.AppendUint32(out, i.K)
	}
	return out, nil
}

// entry kills a process that calls through another architecture's table
// (int 0x80 on amd64), and loads the number.
func (a *assembler) entry() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(a.info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
}
