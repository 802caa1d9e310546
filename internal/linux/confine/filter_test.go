package confine

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

const (
	allowed = unix.SECCOMP_RET_ALLOW
	refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	killed  = unix.SECCOMP_RET_KILL_PROCESS
)

// judge runs the program as the kernel would. The virtual machine of package bpf
// reads packets, which are big-endian.
func judge(t *testing.T, p []unix.SockFilter, arch uint32, number uintptr, args ...uint64) uint32 {
	t.Helper()
	var raw []bpf.RawInstruction
	for _, i := range p {
		raw = append(raw, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	instructions, known := bpf.Disassemble(raw)
	if !known {
		t.Fatal("the program has an instruction that is not BPF")
	}
	// Verdicts of seccomp are 32 bits, and those of packets, too.
	vm, err := bpf.NewVM(instructions)
	must.Do(t, err)
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[0:], uint32(number))
	binary.BigEndian.PutUint32(data[4:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[16+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[16+8*i+4:], uint32(a>>32))
	}
	got, err := vm.Run(data)
	must.Do(t, err)
	return uint32(got)
}

func programOf(t *testing.T, calls []Call) []unix.SockFilter {
	t.Helper()
	p, err := program(calls)
	must.Do(t, err)
	return p
}

func TestTheFilterAllowsWhatIsListedOnly(t *testing.T) {
	calls := []Call{
		{Number: 7},
		{Number: 8, When: []Match{{Arg: 0, OneOf: []uint32{1, 2, 3}}, {Arg: 2, Has: 2}, {Arg: 2, Has: 4, Not: 8}}},
		{Number: 8, When: []Match{{Arg: 1, OneOf: []uint32{9}}}},
		{Number: 9, When: []Match{{Arg: 5, Not: 4}}},
	}
	p := programOf(t, calls)
	for name, tc := range map[string]struct {
		number uintptr
		args   []uint64
		want   uint32
	}{
		"a call that is listed":                           {7, nil, allowed},
		"a call that is not":                              {6, nil, refused},
		"a call past all numbers":                         {1 << 30, nil, refused},
		"the first of several values":                     {8, []uint64{1, 0, 6}, allowed},
		"the last of several values":                      {8, []uint64{3, 0, 7}, allowed},
		"a value that is not listed":                      {8, []uint64{4, 0, 6}, refused},
		"a bit is missing":                                {8, []uint64{1, 0, 2}, refused},
		"a bit too many":                                  {8, []uint64{1, 0, 14}, refused},
		"the second entry of the same call":               {8, []uint64{4, 9, 0}, allowed},
		"high bits do not hide a forbidden one":           {9, []uint64{0, 0, 0, 0, 0, 1<<40 | 4}, refused},
		"what is not looked at may be anything":           {9, []uint64{5, 5, 5, 5, 5, 3}, allowed},
		"the entry behind one whose arguments do not fit": {9, []uint64{4}, allowed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(t, p, architecture, tc.number, tc.args...); got != tc.want {
				t.Errorf("verdict %#x; want %#x", got, tc.want)
			}
		})
	}
	if got := judge(t, p, architecture+1, 7); got != killed {
		t.Errorf("a call of another architecture: verdict %#x; want %#x", got, uint32(killed))
	}
}

// The calls that would undo the confinement, or reach what is not the
// process's own, are in no list that this package offers.
func TestNoListHoldsAWayOut(t *testing.T) {
	all := programOf(t, append(Runtime(), Sockets()...))
	for name, number := range map[string]uintptr{
		"execve": unix.SYS_EXECVE, "execveat": unix.SYS_EXECVEAT, "ptrace": unix.SYS_PTRACE, "kill": unix.SYS_KILL,
		"socket": unix.SYS_SOCKET, "connect": unix.SYS_CONNECT, "bind": unix.SYS_BIND, "openat": unix.SYS_OPENAT,
		"openat2": unix.SYS_OPENAT2, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "unshare": unix.SYS_UNSHARE,
		"mount": unix.SYS_MOUNT, "pidfd_getfd": unix.SYS_PIDFD_GETFD, "process_vm_readv": unix.SYS_PROCESS_VM_READV,
		"io_uring_setup": unix.SYS_IO_URING_SETUP, "bpf": unix.SYS_BPF, "clone3": unix.SYS_CLONE3,
		"prctl": unix.SYS_PRCTL, "ioctl": unix.SYS_IOCTL, "unlinkat": unix.SYS_UNLINKAT,
	} {
		if got := judge(t, all, architecture, number); got != refused {
			t.Errorf("%s: verdict %#x; want %#x", name, got, refused)
		}
	}
	for name, tc := range map[string]struct {
		number uintptr
		args   []uint64
		want   uint32
	}{
		"a new process":          {unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, refused},
		"a new thread":           {unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allowed},
		"executable memory":      {unix.SYS_MMAP, []uint64{0, 4096, unix.PROT_READ | unix.PROT_EXEC}, refused},
		"memory":                 {unix.SYS_MMAP, []uint64{0, 4096, unix.PROT_READ | unix.PROT_WRITE}, allowed},
		"a signal to another":    {unix.SYS_TGKILL, []uint64{1, 1, 9}, refused},
		"a signal to own thread": {unix.SYS_TGKILL, []uint64{uint64(unix.Getpid()), 1, 23}, allowed},
	} {
		if got := judge(t, all, architecture, tc.number, tc.args...); got != tc.want {
			t.Errorf("%s: verdict %#x; want %#x", name, got, tc.want)
		}
	}
}

func TestReadingIsNoWriting(t *testing.T) {
	p := programOf(t, reading())
	for flags, want := range map[uint64]uint32{
		unix.O_RDONLY | unix.O_CLOEXEC: allowed,
		unix.O_WRONLY:                  refused, unix.O_RDWR: refused, unix.O_CREAT: refused, unix.O_TRUNC: refused,
	} {
		if got := judge(t, p, architecture, unix.SYS_OPENAT, 0, 0, flags); got != want {
			t.Errorf("openat with flags %#x: verdict %#x; want %#x", flags, got, want)
		}
	}
}

// A right of Landlock that is not named is not taken away.
func TestEveryRightOfLandlockIsTaken(t *testing.T) {
	for version, want := range map[uintptr]uint64{1: 0x1fff, 2: 0x3fff, 3: 0x7fff, 4: 0x7fff, 5: 0xffff, 6: 0xffff} {
		if got := rights(version); got != want {
			t.Errorf("rights(%d) = %#x; want %#x", version, got, want)
		}
	}
}
