// Package callfilter writes programs for the kernel's filter of system calls
// (seccomp(2)). A program is the [Entry], the [Rules], and a [Return] for what
// no rule decides.
package callfilter

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Rule gives the verdict on a system call if every Match of When holds. Rules are tried in their order.
type Rule struct {
	Number uintptr
	When   []Match
	Then   uint32 // a verdict, such as unix.SECCOMP_RET_ALLOW
}

// Match tests the low 32 bits of an argument. It holds if the argument is one of OneOf (empty: any) and none of
// NoneOf, has at least one bit of Has (0: not tested), and has no bit of Not.
type Match struct {
	Arg           uint32 // 0 to 5
	OneOf, NoneOf []uint32
	Has, Not      uint32
}

// Offsets in struct seccomp_data (linux/seccomp.h), whose words are
// little-endian on every architecture that claudebox is built for.
const (
	offNumber    = 0
	offArch      = 4
	offArguments = 16
)

// Entry begins a program: it ends a process that calls through another architecture's table (int 0x80 on amd64), and
// loads the number of the system call.
func Entry(architecture uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(offArch),
		Jump(unix.BPF_JEQ, architecture, 1, 0),
		Return(unix.SECCOMP_RET_KILL_PROCESS),
		load(offNumber),
	}
}

// Rules tries rules on the number that [Entry] has loaded. If none decides, the program goes on after these
// instructions with the number loaded. It fails if a rule is too long.
func Rules(list []Rule) (p []unix.SockFilter, err error) {
	for _, r := range list {
		body := decide(r)
		if len(body) >= behind {
			return nil, errors.New("bug: a rule is longer than a jump can reach")
		}
		p = append(p, Jump(unix.BPF_JEQ, uint32(r.Number), 0, uint8(len(body))))
		p = append(p, body...)
	}
	return p, nil
}

// behind stands for a jump over the rest of the rule to where the number is loaded again, until its length is known.
const behind = 0xff

func decide(r Rule) (p []unix.SockFilter) {
	if len(r.When) == 0 {
		return []unix.SockFilter{Return(r.Then)}
	}
	for _, m := range r.When {
		p = append(p, load(offArguments+8*m.Arg))
		for i, value := range m.OneOf {
			left := len(m.OneOf) - 1 - i
			miss := uint8(0)
			if left == 0 {
				miss = behind
			}
			p = append(p, Jump(unix.BPF_JEQ, value, uint8(left), miss))
		}
		for _, value := range m.NoneOf {
			p = append(p, Jump(unix.BPF_JEQ, value, behind, 0))
		}
		if m.Has != 0 {
			p = append(p, Jump(unix.BPF_JSET, m.Has, 0, behind))
		}
		if m.Not != 0 {
			p = append(p, Jump(unix.BPF_JSET, m.Not, behind, 0))
		}
	}
	for i := range p {
		for _, to := range []*uint8{&p[i].Jt, &p[i].Jf} {
			if *to == behind {
				*to = uint8(len(p) - i) // to the instruction after the verdict
			}
		}
	}
	return append(p, Return(r.Then), load(offNumber))
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// Jump applies a test (such as unix.BPF_JEQ) to what is loaded and value. The number of instructions that it skips is
// yes if the test holds, and the parameter called no if it does not.
func Jump(test uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: yes, Jf: no, K: value}
}

// Return ends the program with a verdict.
func Return(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}
