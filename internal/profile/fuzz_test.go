package profile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"claudebox/internal/diag"
	"claudebox/internal/profile"
)

// apart from where it was said, what counts in a profile
var sameButOrigins = cmp.Options{
	cmpopts.IgnoreTypes(profile.Origin{}),
	cmpopts.IgnoreFields(profile.Profile{}, "Sources"),
}

// FuzzParse holds two laws: every problem lies in the file, in its order; and
// what is shown of a valid profile is a profile that says the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	for _, tc := range wrong {
		f.Add([]byte(tc.src))
	}
	f.Add([]byte("packages: &a [x]\nhide: *a"))
	f.Fuzz(func(t *testing.T, src []byte) {
		p, warnings, err := readOne("work.yaml", src)
		inside(t, src, warnings)
		if err != nil {
			var problems diag.Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("no list of problems: %#v", err)
			}
			inside(t, src, problems)
			return
		}
		shown, _, err := profile.Show("work.yaml", files{"work.yaml": string(src)}, false)
		if err != nil {
			t.Fatalf("show: %v", err)
		}
		again, _, err := readOne("again.yaml", shown)
		if err != nil {
			t.Fatalf("what is shown is no profile: %v\n%s", err, shown)
		}
		if diff := cmp.Diff(p, again, sameButOrigins); diff != "" {
			t.Errorf("what is shown says something else:\n%s\n%s", diff, shown)
		}
	})
}

// inside fails for a problem without a place in the file, without a message,
// or out of order.
func inside(t *testing.T, src []byte, problems diag.Problems) {
	t.Helper()
	lines := strings.Split(string(src), "\n")
	last := diag.Position{}
	for _, p := range problems {
		switch {
		case p.File != "work.yaml" || p.Line < 1 || p.Line > len(lines)+strings.Count(string(src), "\r")+strings.Count(string(src), "\u0085")*2:
			t.Errorf("%s: no line of the file (%d lines): %s", p, len(lines), p.Message)
		case p.Column < 1:
			t.Errorf("%s: no column: %s", p, p.Message)
		case p.Message == "" || !utf8.ValidString(p.Message) || strings.ContainsAny(p.Message+p.Remedy, "\n\x00\x1b"):
			t.Errorf("%s: message %q, remedy %q", p, p.Message, p.Remedy)
		case p.Line < last.Line || p.Line == last.Line && p.Column < last.Column:
			t.Errorf("%s comes after %s", p, last)
		}
		last = p.Position
	}
}

// many is a profile with n packages and n mounts.
func many(n int) []byte {
	var b strings.Builder
	b.WriteString("name: many\npackages:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - python3Packages.package-%d\n", i)
	}
	return []byte(b.String())
}

func manyMounts(n int) []byte {
	var b strings.Builder
	b.WriteString("name: many\nmounts:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {host: ~/datasets/folder-%d, mode: rw, optional: true}\n", i)
	}
	return []byte(b.String())
}

// A profile of ten times the size takes ten times the memory, not more.
func TestMemoryGrowsLinearly(t *testing.T) {
	for name, make := range map[string]func(int) []byte{"packages": many, "mounts": manyMounts} {
		small, large := allocations(t, make(200)), allocations(t, make(2_000))
		if large > 11*small {
			t.Errorf("%s: %.0f allocations for 200, %.0f for 2000", name, small, large)
		}
	}
}

func allocations(t *testing.T, src []byte) float64 {
	t.Helper()
	return testing.AllocsPerRun(1, func() {
		if _, _, err := readOne("many.yaml", src); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for name, src := range map[string][]byte{
		"usual":        []byte(everything),
		"packages/100": many(100), "packages/1000": many(1_000), "packages/10000": many(10_000),
		"mounts/100": manyMounts(100), "mounts/1000": manyMounts(1_000), "mounts/10000": manyMounts(10_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := readOne("many.yaml", src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
