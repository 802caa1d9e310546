//go:build lab

package nixeval_test

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixeval"
)

// labEvaluator runs the lab's Nix against the lab's daemon.
func labEvaluator(t *testing.T) nixeval.Evaluator {
	t.Helper()
	socket := os.Getenv("CLAUDEBOX_LAB_SOCKET")
	if socket == "" {
		t.Fatal("CLAUDEBOX_LAB_SOCKET names no daemon")
	}
	program, err := exec.LookPath("nix-instantiate")
	must.Do(t, err)
	return nixeval.Evaluator{Program: program, Env: []string{"NIX_REMOTE=unix://" + socket}}
}

//go:embed testdata/nixpkgs/default.nix
var nixpkgsText []byte

// labNixpkgs is testdata/nixpkgs in the store.
func labNixpkgs(t *testing.T, e nixeval.Evaluator) string {
	t.Helper()
	return added(t, e, map[string]string{"default.nix": string(nixpkgsText), "flake.nix": "{ outputs = _: { }; }"})
}

// added is a folder of these files, copied to the store.
func added(t *testing.T, e nixeval.Evaluator, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "nixpkgs")
	must.Do(t, os.Mkdir(dir, 0o755))
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(e.Program), "nix-store"), "--add", dir)
	cmd.Env = append(os.Environ(), e.Env...)
	out, err := cmd.Output()
	must.Do(t, err)
	return strings.TrimSpace(string(out))
}

func TestLabEvaluation(t *testing.T) {
	e := labEvaluator(t)
	q := nixeval.Query{Nixpkgs: labNixpkgs(t, e), System: "x86_64-linux"}
	good := []string{"hello", "multi", "nested.deep.tool"}
	failures := map[string]string{
		"helo":            "helo is not in nixpkgs; did you mean hello?",
		"nested.dep.tool": "nested has no dep; did you mean nested.deep?",
		"number.x":        "number is an integer",
		"fn":              "fn is a function, not a package",
		"nested":          "nested is a set, not a package",
		"alias":           "alias: 'alias' has been renamed to/replaced by 'hello'",
		"unfreepkg":       "unfree licence",
		"insecurepkg":     "insecure: CVE-2020-1",
		"brokenpkg":       "broken",
		"unsupportedpkg":  "not available on this system",
		"aborting":        "bug in a package",
		"typeerror":       "cannot",
		"missingattr":     "'nope' missing",
		"infinite":        "infinite recursion",
	}
	q.Attrs = slices.Clone(good)
	for attr := range failures {
		q.Attrs = append(q.Attrs, attr)
	}
	packages, err := e.Evaluate(t.Context(), q)
	must.Do(t, err)
	for i, p := range packages {
		if p.Attr != q.Attrs[i] {
			t.Fatalf("answer %d is for %s; want %s", i, p.Attr, q.Attrs[i])
		}
		want, bad := failures[p.Attr]
		switch {
		case !bad && p.Failure != nil:
			t.Errorf("%s fails: %v", p.Attr, p.Failure)
		case bad && (p.Failure == nil || !strings.Contains(p.Failure.Message, want)):
			t.Errorf("%s = %+v; want %+v", p.Attr, p.Failure, want)
		}
	}
	if multi := packages[1]; multi.Version != "2.3" || !slices.Equal(multi.Install, []string{"bin", "out"}) || len(multi.Outputs) != 3 {
		t.Errorf("multi = %+v; want version, three outputs, two of them to install", multi)
	}
	if hello := packages[0]; !slices.Equal(hello.Install, []string{"out"}) {
		t.Errorf("hello = %+v; want a main program and the default output", hello)
	}
}

func TestLabDerivationsAreWrittenOnlyWhenAsked(t *testing.T) {
	e := labEvaluator(t)
	q := nixeval.Query{Nixpkgs: labNixpkgs(t, e), System: "x86_64-linux", Attrs: []string{"written"}}
	for _, write := range []bool{false, true} {
		q.Write = write
		packages, err := e.Evaluate(t.Context(), q)
		must.Do(t, err)
		if _, err := os.Stat(packages[0].Drv); (err == nil) != write {
			t.Errorf("with Write %t the derivation is there: %v", write, err == nil)
		}
	}
}

func TestLabNixpkgsWithoutAValueIsOneError(t *testing.T) {
	e := labEvaluator(t)
	q := nixeval.Query{Nixpkgs: labNixpkgs(t, e) + "/nowhere", System: "x86_64-linux", Attrs: []string{"a", "b"}}
	packages, err := e.Evaluate(t.Context(), q)
	if err == nil || packages != nil {
		t.Errorf("Evaluate = %v, %v; want an error", packages, err)
	}
}

// The other kinds of reference need a network; what Nix does with them is
// the same.
func TestLabFetch(t *testing.T) {
	e := labEvaluator(t)
	src, err := e.Fetch(t.Context(), "path:"+labNixpkgs(t, e))
	must.Do(t, err)
	if _, err := os.Stat(src.Path + "/default.nix"); err != nil || !strings.HasPrefix(src.NarHash, "sha256-") {
		t.Errorf("Fetch = %+v, %v; want a copy in the store, with its hash", src, err)
	}
	if _, err := e.Fetch(t.Context(), "path:/nowhere"); err == nil {
		t.Error("a reference to nothing was fetched")
	}
}

// A nixpkgs that a project names is fetched before anybody has allowed it: `claudebox profile validate` does.
func TestAFetchedNixpkgsReadsNoFile(t *testing.T) {
	e := labEvaluator(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(secret, []byte("the secret"), 0o600))
	src := added(t, e, map[string]string{"flake.nix": "{ outputs = _: throw (builtins.readFile " + secret + "); }"})
	old := filepath.Join(os.Getenv("CLAUDEBOX_LAB_RELEASES"), "bookworm/bin/nix-instantiate") // 2.8, without parseFlakeRef
	for _, e.Program = range []string{e.Program, old} {
		if _, err := os.Stat(e.Program); err != nil {
			continue // checks/suite says that it does not run
		}
		if _, err := e.Fetch(t.Context(), "path:"+src); err != nil {
			t.Errorf("%s: the flake is evaluated: %v", e.Program, err)
		}
	}
}

// Whatever nix.conf allows to the user's own files is not for a nixpkgs that somebody else wrote.
func TestANixpkgsRunsNothing(t *testing.T) {
	e := labEvaluator(t)
	dir := t.TempDir()
	settings := "allow-unsafe-native-code-during-evaluation = true\nallowed-uris = file:///\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "nix.conf"), []byte(settings), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("the secret"), 0o600))
	e.Env = append(e.Env, "NIX_CONF_DIR="+dir)
	for name, attack := range map[string]string{
		"a program": `builtins.exec [ "/bin/sh" "-c" "echo 1; : >` + dir + `/ran" ]`,
		"a file":    `throw (builtins.readFile (builtins.fetchurl "file://` + dir + `/secret"))`,
	} {
		src := added(t, e, map[string]string{"default.nix": "_: { hello = " + attack + "; }"})
		packages, err := e.Evaluate(t.Context(), nixeval.Query{Nixpkgs: src, System: "x86_64-linux", Attrs: []string{"hello"}})
		if err != nil || packages[0].Failure == nil || strings.Contains(packages[0].Failure.Message, "the secret") {
			t.Errorf("%s: %+v, %v", name, packages, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a program ran")
	}
}
