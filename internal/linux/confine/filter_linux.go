package confine

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h), whose words are
// little-endian on every architecture that claudebox is built for.
const (
	offNumber    = 0
	offArch      = 4
	offArguments = 16
)

// program is the kernel's filter that allows these calls. Any other fails with
// EPERM; a call through another architecture's table ends the process.
func program(calls []Call) []unix.SockFilter {
	p := []unix.SockFilter{
		load(offArch),
		jump(unix.BPF_JEQ, architecture, 1, 0),
		verdict(unix.SECCOMP_RET_KILL_PROCESS),
		load(offNumber),
	}
	for _, c := range calls {
		body := matches(c.When)
		p = append(p, jump(unix.BPF_JEQ, uint32(c.Number), 0, uint8(len(body))))
		p = append(p, body...)
	}
	return append(p, verdict(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
}

// matches allows the call when all hold, and else loads the number again and
// goes on behind itself.
func matches(list []Match) []unix.SockFilter {
	if len(list) == 0 {
		return []unix.SockFilter{verdict(unix.SECCOMP_RET_ALLOW)}
	}
	var tests [][]unix.SockFilter
	rest := 1 // instructions behind the test: the verdict, before the load
	for i := len(list) - 1; i >= 0; i-- {
		test := match(list[i], rest)
		tests = append(tests, test)
		rest += len(test)
	}
	var p []unix.SockFilter
	for i := len(tests) - 1; i >= 0; i-- {
		p = append(p, tests[i]...)
	}
	return append(p, verdict(unix.SECCOMP_RET_ALLOW), load(offNumber))
}

// match falls through when m holds, and else jumps over the rest behind it.
func match(m Match, rest int) []unix.SockFilter {
	var after []unix.SockFilter
	if m.Not != 0 {
		after = append(after, jump(unix.BPF_JSET, m.Not, uint8(rest), 0))
	}
	if m.Has != 0 {
		after = append([]unix.SockFilter{
			{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: m.Has},
			jump(unix.BPF_JEQ, m.Has, 0, uint8(rest+len(after)+1)),
			load(offArguments + 8*m.Arg),
		}, after...)
	}
	p := []unix.SockFilter{load(offArguments + 8*m.Arg)}
	for i, value := range m.OneOf {
		left := len(m.OneOf) - 1 - i // tests of values behind this one
		miss := 0
		if left == 0 {
			miss = rest + len(after)
		}
		p = append(p, jump(unix.BPF_JEQ, value, uint8(left), uint8(miss)))
	}
	return append(p, after...)
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(test uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: yes, Jf: no, K: value}
}

func verdict(v uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: v}
}

// filter sets a program for all threads.
func filter(p []unix.SockFilter) error {
	if len(p) > unix.BPF_MAXINSNS {
		return errors.New("bug: the filter is too long")
	}
	fprog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	if thread != 0 {
		return errors.New("bug: a thread has a filter of its own")
	}
	return nil
}
