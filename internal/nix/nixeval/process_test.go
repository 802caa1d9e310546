package nixeval_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixeval"
)

func TestTheProcessKnowsNothingOfTheCaller(t *testing.T) {
	t.Setenv("NIX_PATH", "nixpkgs=/home/u/nixpkgs")
	t.Setenv("SECRET", "canary")
	e, _ := fakeNix(t, `echo "error: $(env | sort | tr '\n' ' ')in $(pwd)" >&2; exit 1`)
	e.Env = []string{"NIX_REMOTE=daemon"}
	_, err := e.Evaluate(t.Context(), query("x"))
	// The shell adds PWD, _ and perhaps SHLVL by itself.
	want := "HOME=/homeless-shelter NIX_PATH= NIX_REMOTE=daemon NIX_USER_CONF_FILES=/dev/null NO_COLOR=1 "
	got, _, _ := strings.Cut(err.Error(), "PWD=")
	if !strings.HasSuffix(got, want) || !strings.HasSuffix(err.Error(), "in /") {
		t.Errorf("the process saw %v; want %q in /", err, want)
	}
}

func TestCancelStopsTheProcess(t *testing.T) {
	e, _ := fakeNix(t, "exec sleep 600")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("Ctrl-C")
	go cancel(why)
	if _, err := e.Evaluate(ctx, query("x")); !errors.Is(err, why) {
		t.Errorf("Evaluate = %v; want the caller's reason", err)
	}
}

// A bare name would be looked up on the caller's PATH, or in the project.
func TestAProgramIsNotLookedUp(t *testing.T) {
	e, calls := fakeNix(t, "echo '[]'")
	t.Setenv("PATH", filepath.Dir(e.Program))
	t.Chdir(filepath.Dir(e.Program))
	for _, program := range []string{"nix-instantiate", "./nix-instantiate", ""} {
		_, err := nixeval.Evaluator{Program: program}.Evaluate(t.Context(), query("x"))
		var said *diag.Error
		if !errors.As(err, &said) || said.Remedy == "" {
			t.Errorf("Evaluate with %q = %v; want an error with a remedy", program, err)
		}
	}
	if got := calls(); got[0] != "" {
		t.Errorf("processes = %q; want none", got)
	}
}

func TestAProgramThatCannotRunIsAnError(t *testing.T) {
	e := nixeval.Evaluator{Program: filepath.Join(t.TempDir(), "none")}
	if _, err := e.Evaluate(t.Context(), query("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Evaluate = %v; want that there is no such program", err)
	}
}

// A trace may be of any length; the reason stands behind it.
func TestALongTraceDoesNotHideTheReason(t *testing.T) {
	e, _ := fakeNix(t, `i=0; while [ $i -lt 20000 ]; do echo "while evaluating something that is rather long, number $i"; i=$((i+1)); done >&2
echo "error: the reason" >&2; exit 1`)
	_, err := e.Evaluate(t.Context(), query("x"))
	if err == nil || !strings.HasSuffix(err.Error(), ": the reason") || len(err.Error()) > 200 {
		t.Errorf("Evaluate = %.200q; want the reason alone", err)
	}
}

func TestOutputIsKeptWithinBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		parts       []string
		first, last string
		over        bool
	}{
		"all of little":            {[]string{"ab", "c"}, "abc", "abc", false},
		"all up to the limit":      {[]string{"abcd"}, "abcd", "abcd", false},
		"the ends of much":         {[]string{"abcdef", "ghij"}, "abcd", "ghij", true},
		"the ends of much at once": {[]string{"abcdefghij"}, "abcd", "ghij", true},
	} {
		t.Run(name, func(t *testing.T) {
			first, over, last := nixeval.Keep(4, tc.parts...)
			if first != tc.first || over != tc.over || last != tc.last {
				t.Errorf("kept %q, %t, %q; want %q, %t, %q", first, over, last, tc.first, tc.over, tc.last)
			}
		})
	}
}

func TestReasonInWhatNixPrints(t *testing.T) {
	for name, tc := range map[string]struct{ stderr, want string }{
		"2.8, with a place": {
			"error: attribute 'nope' missing\n\n       at /nix/store/x/default.nix:18:21:\n\n           17|   a\n(use '--show-trace' to show detailed location information)\n",
			"attribute 'nope' missing",
		},
		"2.8, without": {
			"error: 'a' has been renamed\n(use '--show-trace' to show detailed location information)\n", "'a' has been renamed",
		},
		"2.26, behind the trace": {
			"error:\n       … while evaluating the attribute 'drvPath'\n         at /nix/store/x:1:2:\n            1| error: no\n\n       error: 'a' has been removed\n       because it was old\n",
			"'a' has been removed\nbecause it was old",
		},
		"nothing of the kind": {"Killed\n", "Killed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nixeval.ReasonOf(tc.stderr); got != tc.want {
				t.Errorf("reason = %q; want %q", got, tc.want)
			}
		})
	}
}
