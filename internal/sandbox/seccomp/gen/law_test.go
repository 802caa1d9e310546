package main

import (
	"slices"
	"strings"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
)

// judge reads the table in the plainest way, as the reference for the
// assembled program.
func judge(table map[string][]rule, goarch, name string, args [6]uint64) seccomp.Action {
	for _, r := range table[name] {
		if (r.only == "" || r.only == goarch) && holds(r.when, args) {
			return fails(r.errno)
		}
	}
	return seccomp.ActionAllow
}

func holds(when []match, args [6]uint64) bool {
	for _, m := range when {
		arg := uint32(args[m.Arg])
		if m.High {
			arg = uint32(args[m.Arg] >> 32)
		}
		if m.OneOf != nil && !slices.Contains(m.OneOf, arg) || slices.Contains(m.NoneOf, arg) ||
			m.Has != 0 && arg&m.Has == 0 || arg&m.Not != 0 {
			return false
		}
	}
	return true
}

// samples are arguments near everything the table compares with: the value
// itself, its neighbours, and each with the high half set.
func samples() []uint64 {
	const high = 0xffffffff << 32
	var all []uint64
	for _, r := range rules {
		for _, m := range r.when {
			for _, v := range slices.Concat(m.OneOf, m.NoneOf, []uint32{m.Has, m.Not}) {
				all = append(all, uint64(v), uint64(v+1), uint64(v-1), uint64(v)|1<<32, uint64(v)|high)
			}
		}
	}
	all = append(all, 0, 1, 3, 10, 17, 38, 40, 1<<31, 1<<32, 1<<63)
	slices.Sort(all)
	return slices.Compact(all)
}

func TestTheProgramDecidesAsTheTableSays(t *testing.T) {
	values, table := samples(), map[string][]rule{}
	for _, r := range rules {
		for _, call := range strings.Fields(r.calls) {
			table[call] = append(table[call], r)
		}
	}
	for _, goarch := range architectures {
		m := newMachine(t, goarch)
		for n, name := range native[goarch].SyscallNumbers {
			firsts := values
			if table[name] == nil {
				firsts = values[:1] // arguments do not matter: a few must do
			}
			for i, first := range firsts {
				for j, second := range values {
					args := [6]uint64{first, second, values[(i+j)%len(values)]}
					c := call{number: uint32(n), arch: native[goarch].ID, args: args}
					if got, want := m.decide(t, c), judge(table, goarch, name, args); got != want {
						t.Fatalf("%s: %s(%#x): verdict %#x, want %#x", goarch, name, args, got, want)
					}
				}
			}
		}
	}
}

func TestNumbersOutsideTheTableAreAllowedUnlessTheyAreX32(t *testing.T) {
	for _, goarch := range architectures {
		m := newMachine(t, goarch)
		for n := uint32(0); n < 2048; n++ {
			if _, known := native[goarch].SyscallNumbers[int(n)]; known {
				continue
			}
			want := seccomp.ActionAllow
			if n >= x32First && n <= x32Last {
				want = fails(38)
			}
			if got := m.decide(t, call{number: n, arch: native[goarch].ID}); got != want {
				t.Errorf("%s: number %d: verdict %#x, want %#x", goarch, n, got, want)
			}
		}
	}
}
