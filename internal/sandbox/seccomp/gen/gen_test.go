package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"claudebox/checks/kit/must"
)

func TestTheCommittedFiltersAreWhatTheTableMakes(t *testing.T) {
	for _, goarch := range architectures {
		t.Run(goarch, func(t *testing.T) {
			want, err := assemble(goarch, rules)
			must.Do(t, err)
			got, err := os.ReadFile(filepath.Join("..", fileName(goarch)))
			must.Do(t, err)
			if !bytes.Equal(got, want) {
				t.Errorf("%s is stale: run go generate ./internal/seccomp", fileName(goarch))
			}
		})
	}
}

func TestEveryRuleSaysWhy(t *testing.T) {
	for _, r := range rules {
		if r.calls == "" || (r.errno == 0) != r.pretends || r.why == "" {
			t.Errorf("rule %v lacks a call, an error or a reason", r)
		}
	}
}

func TestATableThatCannotBeAssembledIsRefused(t *testing.T) {
	for name, table := range map[string][]rule{
		"a call that the architecture never had": {{calls: "uselib", errno: 1}},
		"a misspelt call":                        {{calls: "inotl", errno: 1}},
		"more than a jump can reach":             {{calls: "ioctl", errno: 1, when: []match{{OneOf: make([]uint32, 300)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := assemble("arm64", table); err == nil {
				t.Error("assembled without an error")
			}
		})
	}
}
