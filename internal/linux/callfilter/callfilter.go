// Package callfilter writes programs for the kernel's filter of system calls
// (seccomp(2)). A program is the [Entry], the [Rules], and a [Return] for what
// no rule decides.
package callfilter

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Rule decides a system call when all of When hold. Rules are tried in their
// order.
type Rule struct {
	Number uintptr
	When   []Match
	Then   uint32 // a verdict: unix.SECCOMP_RET_ALLOW and its like
}

// Match looks at the low 32 bits of an argument. It holds when the argument is
// one of OneOf (empty: not looked at) and none of NoneOf, has a bit of Has (0:
// not looked at), and none of Not.
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

// Entry ends a process that calls through another architecture's table (int
// 0x80 on amd64), and loads the number.
func Entry(architecture uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(offArch),
		Jump(unix.BPF_JEQ, architecture, 1, 0),
		Return(unix.SECCOMP_RET_KILL_PROCESS),
		load(offNumber),
	}
}

// Rules tries rules on the number that is loaded, and goes on behind itself with
// that number when none decides.
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

// behind is a jump to where the number is loaded again, until it is known how far
// that is.
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
				*to = uint8(len(p) - i) // over the verdict
			}
		}
	}
	return append(p, Return(r.Then), load(offNumber))
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// Jump compares what is loaded with a value, and goes over so many instructions
// when a test (unix.BPF_JEQ) holds, and when it does not.
func Jump(test uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: yes, Jf: no, K: value}
}

// Return ends the program with a verdict.
func Return(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}
