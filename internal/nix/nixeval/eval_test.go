package nixeval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixeval"
)

const (
	nixpkgs = "/nix/store/00bgd045z0d4icpbc2yyz4gx48ak44la-source"
	outPath = "/nix/store/10bgd045z0d4icpbc2yyz4gx48ak44la-hello-1.0"
	drvPath = "/nix/store/20bgd045z0d4icpbc2yyz4gx48ak44la-hello-1.0.drv"
)

// good is the expression's answer for a package; %s is its version.
const good = `{"drvPath":"` + drvPath + `","default":"out","outputs":{"out":"` + outPath + `"},"version":"%s","install":[]}`

// fakeNix is a nix-instantiate in shell. It finds its mode and the wants in
// $mode and $wants, its arguments in $all, and notes each call in a file.
func fakeNix(t *testing.T, script string) (e nixeval.Evaluator, calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	program, log := filepath.Join(dir, "nix-instantiate"), filepath.Join(dir, "log")
	prelude := `#!/bin/sh
PATH='` + os.Getenv("PATH") + `'
all="$*"
while [ $# -gt 0 ]; do
	if [ "$1" = --argstr ]; then eval "$2=\$3"; shift 2; fi
	shift
done
echo "$mode $wants" >>'` + log + `'
`
	must.Program(t, program, prelude+script)
	return nixeval.Evaluator{Program: program}, func() []string {
		text, _ := os.ReadFile(log)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

func query(attrs ...string) nixeval.Query {
	return nixeval.Query{Nixpkgs: nixpkgs, System: "x86_64-linux", Attrs: attrs}
}

func TestOneProcessAnswersForAll(t *testing.T) {
	e, calls := fakeNix(t, "echo '["+fmt.Sprintf(good, "1.0")+","+fmt.Sprintf(good, "2.0")+"]'")
	got, err := e.Evaluate(t.Context(), query("hello", "python3Packages.requests"))
	must.Do(t, err)
	want := func(attr, version string) nixeval.Package {
		return nixeval.Package{
			Attr: attr, Version: version, Drv: drvPath,
			Outputs: map[string]string{"out": outPath}, Install: []string{"out"},
		}
	}
	if all := []nixeval.Package{want("hello", "1.0"), want("python3Packages.requests", "2.0")}; !reflect.DeepEqual(got, all) {
		t.Errorf("Evaluate = %+v; want %+v", got, all)
	}
	if got, want := calls(), []string{`all [["hello"],["python3Packages","requests"]]`}; !slices.Equal(got, want) {
		t.Errorf("processes = %q; want %q", got, want)
	}
}

// The list is halved until the package that breaks the process stands alone.
func TestAPackageThatBreaksTheProcessIsFound(t *testing.T) {
	e, calls := fakeNix(t, `
case "$mode $wants" in
probe*) echo true ;;
*bad*) echo '[{"half":'; echo "error: evaluation aborted" >&2; exit 1 ;;
*,*) echo '[`+fmt.Sprintf(good, "1")+`,`+fmt.Sprintf(good, "1")+`]' ;;
*) echo '[`+fmt.Sprintf(good, "1")+`]' ;;
esac`)
	got, err := e.Evaluate(t.Context(), query("a", "b", "bad", "c"))
	must.Do(t, err)
	for i, attr := range []string{"a", "b", "bad", "c"} {
		if p := got[i]; p.Attr != attr || (p.Failure != nil) != (attr == "bad") {
			t.Errorf("answer %d = %+v; want %s", i, p, attr)
		}
	}
	if f := got[2].Failure; f == nil || f.Message != "bad cannot be evaluated: evaluation aborted" {
		t.Errorf("bad fails with %+v; want what Nix printed", f)
	}
	want := []string{`all [["a"],["b"],["bad"],["c"]]`, `all [["a"],["b"]]`, `all [["bad"],["c"]]`, `all [["bad"]]`, `all [["c"]]`, `probe []`}
	if got := slices.Sorted(slices.Values(calls())); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("processes = %q; want %q in some order", got, want)
	}
}

func TestAPackageSetThatBreaksTheProcessIsOneError(t *testing.T) {
	e, calls := fakeNix(t, `echo "error: no such file" >&2; exit 1`)
	_, err := e.Evaluate(t.Context(), query("a", "b", "c", "d"))
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("Evaluate = %v; want what Nix printed", err)
	}
	if got := calls(); len(got) != 2 {
		t.Errorf("processes = %q; want the list and the probe", got)
	}
}

func TestReasonsOfFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		attr, answer string
		want         nixeval.Failure
	}{
		"names what is near": {
			"ripgrap", `{"error":"missing","rest":["ripgrap"],"near":["ripgrep","grep","ripgraq"]}`,
			nixeval.Failure{Message: "ripgrap is not in nixpkgs; did you mean ripgraq or ripgrep?"},
		},
		"names it with its set": {
			"python3Packages.request", `{"error":"missing","rest":["request"],"near":["requests"]}`,
			nixeval.Failure{
				Message: "python3Packages.request is not in nixpkgs: python3Packages has no request; " +
					"did you mean python3Packages.requests?",
			},
		},
		"tells a set that is missing on the way": {
			"python3Package.requests.x", `{"error":"missing","rest":["python3Package","requests","x"],"near":[]}`,
			nixeval.Failure{
				Message: "python3Package.requests.x is not in nixpkgs",
				Remedy:  "find its attribute path: nix --extra-experimental-features 'nix-command flakes' search nixpkgs x",
			},
		},
		"tells what is no set": {
			"lib.id.x", `{"error":"not-a-set","rest":["x"],"type":"lambda"}`,
			nixeval.Failure{Message: "lib.id.x is not in nixpkgs: lib.id is a function"},
		},
		"tells a set of packages": {
			"python3Packages", `{"error":"not-a-package","type":"set"}`,
			nixeval.Failure{
				Message: "python3Packages is a set, not a package",
				Remedy:  "name a package in it: python3Packages.NAME",
			},
		},
		"tells a content-addressed package": {
			"hello", `{"drvPath":"` + drvPath + `","default":"out","outputs":{"out":"/1rz4g4znpzjwh1xymhjpm42vipw92pr73vdgl6xs1hycac8kf2n9"}}`,
			nixeval.Failure{Message: "hello is content-addressed: its store path is not known before it is built"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := fakeNix(t, "echo '["+tc.answer+"]'")
			got, err := e.Evaluate(t.Context(), query(tc.attr))
			if err != nil || !reflect.DeepEqual(*got[0].Failure, tc.want) {
				t.Errorf("failure = %+v, %v; want %+v", got[0].Failure, err, tc.want)
			}
		})
	}
}

// What nixpkgs refuses by a flag needs no second process; what throws does.
func TestRefusals(t *testing.T) {
	for flag, want := range map[string]nixeval.Failure{
		`"unfree"`:      {Message: "x has an unfree licence, which nixpkgs refuses by default"},
		`"insecure"`:    {Message: "x is marked as insecure: CVE-1, CVE-2"},
		`"broken"`:      {Message: "x is marked as broken in this nixpkgs"},
		`"unsupported"`: {Message: "x is not available on this system"},
		``:              {Message: "x: it was removed"},
	} {
		t.Run("for "+flag, func(t *testing.T) {
			e, calls := fakeNix(t, `
case $mode in
all) echo '[{"error":"refused","flags":[`+flag+`],"vulnerabilities":["CVE-1","CVE-2"]}]' ;;
force) echo "error: it was removed" >&2; exit 1 ;;
esac`)
			got, err := e.Evaluate(t.Context(), query("x"))
			if err != nil || got[0].Failure == nil {
				t.Fatalf("Evaluate = %+v, %v; want a failure", got, err)
			}
			f := *got[0].Failure
			if f.Message != want.Message || (f.Remedy != "") != (flag != "") {
				t.Errorf("failure = %+v; want %+v", f, want)
			}
			if n := len(calls()); (n == 2) != (flag == "") {
				t.Errorf("%d processes ran", n)
			}
		})
	}
}

func TestDerivationsAreWrittenOnlyWhenAsked(t *testing.T) {
	for _, write := range []bool{false, true} {
		e, _ := fakeNix(t, `case "$all" in *--read-write-mode*) v=rw ;; *) v=ro ;; esac; echo "[`+strings.ReplaceAll(fmt.Sprintf(good, "$v"), `"`, `\"`)+`]"`)
		q := query("x")
		q.Write = write
		got, err := e.Evaluate(t.Context(), q)
		if want := map[bool]string{false: "ro", true: "rw"}[write]; err != nil || got[0].Version != want {
			t.Errorf("with Write %t: %+v, %v; want %s", write, got, err, want)
		}
	}
}

func TestAListTooLongForAWordIsCut(t *testing.T) {
	e, calls := fakeNix(t, `[ $mode = all ] || { echo "error: gone" >&2; exit 1; }
n=$(printf %s "$wants" | tr -cd ']' | wc -c); printf '['; i=1
while [ $i -lt $n ]; do [ $i = 1 ] || printf ,; printf '{"error":"throws"}'; i=$((i+1)); done; printf ']'`)
	long := strings.Repeat("x", 60<<10)
	if _, err := e.Evaluate(t.Context(), query(long+"a", long+"b")); err != nil {
		t.Fatal(err)
	}
	if got := len(calls()); got != 4 { // two lists, and the reasons of two
		t.Errorf("%d processes ran; want 4", got)
	}
}

func TestFetch(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	e, _ := fakeNix(t, `[ -d "$XDG_CACHE_HOME" ] && echo '{"path":"`+nixpkgs+`","narHash":"sha256-x","rev":"'"$ref"'"}'`)
	got, err := e.Fetch(t.Context(), "github:NixOS/nixpkgs/0123")
	if want := (nixeval.Source{Path: nixpkgs, NarHash: "sha256-x", Rev: "github:NixOS/nixpkgs/0123"}); err != nil || got != want {
		t.Errorf("Fetch = %+v, %v; want %+v", got, err, want)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("Fetch leaves %v, %v", left, err)
	}
}
