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

// architectures are the values of GOARCH that claudebox is built for.
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

// fileName returns the name of the file that package seccomp embeds for goarch.
func fileName(goarch string) string { return "filter_" + goarch + ".bpf" }

// x32 is the ABI of 64-bit code with 32-bit pointers. It has the same calls under other
// numbers, which no rule would match. Kernels before 5.4 accept x32First to x32Last,
// ioctl among them, also without x32Bit; newer ones never use these numbers. On arm64
// they have no meaning.
const (
	x32Bit   = 0x40000000
	x32First = 512
	x32Last  = 547
)

// skipped is the number that a debugger sets to cancel a call. It is allowed: the call
// does nothing, and to refuse it would overwrite the result that the debugger injected.
const skipped = 0xffffffff

// assemble returns the filter for goarch, as an array of struct sock_filter in
// little-endian byte order. The library go-seccomp-bpf is used only for the numbers of
// the calls: with a default of allow its Policy allows foreign architectures, and it
// compares all 64 bits of an argument.
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
	const allow, refuse = 0, 1 // jump offsets from the fourth of these instructions; add one for each earlier one
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

// failsWith returns the filter's return value that makes a call fail with errno.
func failsWith(errno syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }
