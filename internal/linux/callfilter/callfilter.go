// Package callfilter makes the BPF programs by which the kernel filters system
// calls (seccomp(2)). A program is the [Entry], the [Rules], and a [Return] for
// calls that no rule decides.
package callfilter

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Rule gives a verdict on a system call if every Match of When holds. The first such rule decides.
type Rule struct {
	Number uintptr
	When   []Match
	Then   uint32 // a verdict, such as unix.SECCOMP_RET_ALLOW
}

// Match tests 32 bits of an argument. It holds if they are one of OneOf (empty: any) and none of NoneOf, have at least
// one bit of Has (0: not tested), and no bit of Not.
type Match struct {
	Arg           uint32 // 0 to 5
	High          bool   // the high half is tested, instead of the low one
	OneOf, NoneOf []uint32
	Has, Not      uint32
}

// Offsets of fields in struct seccomp_data (linux/seccomp.h). An argument has 64 bits,
// and its low half comes first on every architecture that claudebox is built for.
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

// Rules returns instructions that try rules on the number that [Entry] has loaded. If no rule decides, the program
// goes on after these instructions, with the number loaded again. It is an error if a rule is too long for a jump.
func Rules(list []Rule) (p []unix.SockFilter, err error) {
	for _, r := range list {
		body := decide(r)
		if len(body) >= toNextRule {
			return nil, errors.New("bug: a rule is longer than a jump can reach")
		}
		p = append(p, Jump(unix.BPF_JEQ, uint32(r.Number), 0, uint8(len(body))))
		p = append(p, body...)
	}
	return p, nil
}

// toNextRule stands for the length of a jump over the rest of a rule's tests and its verdict. decide replaces it when
// that length is known.
const toNextRule = 0xff

// decide returns the instructions for a rule on a call with its number. They return the verdict if every Match holds,
// else they load the number again for the next rule.
func decide(r Rule) (p []unix.SockFilter) {
	if len(r.When) == 0 {
		return []unix.SockFilter{Return(r.Then)}
	}
	for _, m := range r.When {
		at := offArguments + 8*m.Arg
		if m.High {
			at += 4
		}
		p = append(p, load(at))
		for i, value := range m.OneOf {
			left := len(m.OneOf) - 1 - i // values after this one, which a match skips
			miss := uint8(0)
			if left == 0 {
				miss = toNextRule
			}
			p = append(p, Jump(unix.BPF_JEQ, value, uint8(left), miss))
		}
		for _, value := range m.NoneOf {
			p = append(p, Jump(unix.BPF_JEQ, value, toNextRule, 0))
		}
		if m.Has != 0 {
			p = append(p, Jump(unix.BPF_JSET, m.Has, 0, toNextRule))
		}
		if m.Not != 0 {
			p = append(p, Jump(unix.BPF_JSET, m.Not, toNextRule, 0))
		}
	}
	for i := range p {
		for _, to := range []*uint8{&p[i].Jt, &p[i].Jf} {
			if *to == toNextRule {
				*to = uint8(len(p) - i) // past the verdict, which is appended below
			}
		}
	}
	return append(p, Return(r.Then), load(offNumber))
}

// load loads a field of struct seccomp_data, by its offset.
func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// Jump compares what is loaded with value, by a test such as unix.BPF_JEQ. If the test holds it skips as many
// instructions as the parameter yes says, else as many as the parameter no says.
func Jump(test uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: yes, Jf: no, K: value}
}

// Return ends the program with a verdict.
func Return(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}
