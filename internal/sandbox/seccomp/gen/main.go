// Command gen assembles the filters of package seccomp from the table in
// rules.go, for every architecture that claudebox is built for. Run it by
// go generate in package seccomp; a test fails when the files are stale.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"claudebox/internal/linux/callfilter"
)

// architectures are those claudebox is built for, by GOARCH.
var architectures = []string{"amd64", "arm64"}

func main() {
	for _, goarch := range architectures {
		filter, err := assemble(goarch, rules)
		if err == nil {
			err = os.WriteFile(fileName(goarch), filter, 0o644)
		}
		if err != nil {
			log.Fatalf("gen: %s: %v", goarch, err)
		}
	}
}

// fileName is the file that package seccomp embeds for goarch.
func fileName(goarch string) string { return "filter_" + goarch + ".bpf" }

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

// assemble makes the program for goarch, as an array of struct sock_filter in the
// byte order of a little-endian machine. The library knows the numbers only: its
// Policy allows foreign architectures under a default of allow, and compares all
// 64 bits of an argument.
func assemble(goarch string, table []rule) ([]byte, error) {
	info, err := arch.GetInfo(goarch)
	if err != nil {
		return nil, err
	}
	var rules []callfilter.Rule
	for _, r := range table {
		if r.only != "" && r.only != goarch {
			continue
		}
		for _, call := range strings.Fields(r.calls) {
			number, ok := info.SyscallNames[call]
			if !ok {
				return nil, fmt.Errorf("%s has no call %q", goarch, call)
			}
			rules = append(rules, callfilter.Rule{Number: uintptr(number), When: r.when, Then: failsWith(r.errno)})
		}
	}
	body, err := callfilter.Rules(rules)
	if err != nil {
		return nil, err
	}
	const allow, refuse = 0, 1 // by how many instructions the end is ahead
	end := []unix.SockFilter{
		callfilter.Jump(unix.BPF_JEQ, skipped, 3+allow, 0),
		callfilter.Jump(unix.BPF_JGE, x32Bit, 2+refuse, 0),
		callfilter.Jump(unix.BPF_JGT, x32Last, 1+allow, 0),
		callfilter.Jump(unix.BPF_JGE, x32First, refuse, allow),
		callfilter.Return(unix.SECCOMP_RET_ALLOW),
		callfilter.Return(failsWith(unix.ENOSYS)),
	}
	var out []byte
	for _, i := range slices.Concat(callfilter.Entry(uint32(info.ID)), body, end) {
		out = binary.LittleEndian.AppendUint16(out, i.Code)
		out = append(out, i.Jt, i.Jf)
		out = binary.LittleEndian.AppendUint32(out, i.K)
	}
	return out, nil
}

// failsWith is the verdict that makes a call fail.
func failsWith(errno syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }
