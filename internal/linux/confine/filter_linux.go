package confine

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/callfilter"
)

// program is the kernel's filter that allows these calls. Any other fails with
// EPERM; a call through another architecture's table ends the process.
func program(calls []Call) ([]unix.SockFilter, error) {
	rules := make([]callfilter.Rule, len(calls))
	for i, c := range calls {
		rules[i] = callfilter.Rule{Number: c.Number, When: c.When, Then: unix.SECCOMP_RET_ALLOW}
	}
	body, err := callfilter.Rules(rules)
	p := append(callfilter.Entry(architecture), body...)
	return append(p, callfilter.Return(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))), err
}

// filter sets the program that allows these calls for all threads.
func filter(calls []Call) error {
	p, err := program(calls)
	if err != nil {
		return err
	}
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
