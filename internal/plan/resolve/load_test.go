package resolve_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/plan/resolve"
)

func encode(t testing.TB, m *resolve.Manifest) string {
	text, err := json.Marshal(m)
	must.Do(t, err)
	return string(text)
}

func TestReadManifestGivesWhatWasWritten(t *testing.T) {
	want := newWorld().Manifest
	got, err := resolve.ReadManifest(strings.NewReader(encode(t, want) + "\n"))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ReadManifest = %+v, %v; want %+v", got, err, want)
	}
}

func TestReadManifestRefuses(t *testing.T) {
	git := func(m *resolve.Manifest, change func(*nixeval.Package)) {
		p := m.Packages["git"]
		change(&p)
		m.Packages["git"] = p
	}
	for name, tc := range map[string]struct {
		change func(*resolve.Manifest)
		says   string
	}{
		"another version":          {func(m *resolve.Manifest) { m.Version = 2 }, "version 2"},
		"no system":                {func(m *resolve.Manifest) { m.System = "" }, "no system"},
		"a tool of the host":       {func(m *resolve.Manifest) { m.Tools["git"] = "/usr/bin/git" }, "tool git"},
		"an unknown tool":          {func(m *resolve.Manifest) { m.Toolbox = []string{"nope"} }, `"nope"`},
		"an unknown base package":  {func(m *resolve.Manifest) { m.Base = []string{"nope"} }, `"nope"`},
		"a nixpkgs of the host":    {func(m *resolve.Manifest) { m.Nixpkgs.Path = "/home/u/nixpkgs" }, "nixpkgs"},
		"an output of the host":    {func(m *resolve.Manifest) { m.Packages["git"].Outputs["out"] = "/usr" }, "package git: output out"},
		"a derivation of the host": {func(m *resolve.Manifest) { git(m, func(p *nixeval.Package) { p.Drv = "/x.drv" }) }, "package git"},
		"no output to install":     {func(m *resolve.Manifest) { git(m, func(p *nixeval.Package) { p.Install = nil }) }, "installs no output"},
		"an unknown output": {
			func(m *resolve.Manifest) { git(m, func(p *nixeval.Package) { p.Install = []string{"lib"} }) }, `no output "lib"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newWorld().Manifest
			tc.change(m)
			checkRefused(t, encode(t, m), tc.says)
		})
	}
}

func TestReadManifestRefusesText(t *testing.T) {
	good := encode(t, newWorld().Manifest)
	for name, tc := range map[string]struct{ text, says string }{
		"nothing":            {"", "EOF"},
		"half":               {good[:len(good)/2], "unexpected EOF"},
		"more than one":      {good + good, "follows the end"},
		"an unknown key":     {strings.Replace(good, `"base"`, `"basis"`, 1), "basis"},
		"a number for a map": {`{"version":1,"tools":3}`, "tools"},
	} {
		t.Run(name, func(t *testing.T) { checkRefused(t, tc.text, tc.says) })
	}
}

func checkRefused(t *testing.T, text, says string) {
	t.Helper()
	_, err := resolve.ReadManifest(strings.NewReader(text))
	var said *diag.Error
	if !errors.As(err, &said) || said.Remedy == "" || !strings.Contains(err.Error(), says) {
		t.Errorf("ReadManifest = %v; want %q in it, and a remedy", err, says)
	}
}

// What is read, written and read again is the same.
func FuzzReadManifest(f *testing.F) {
	f.Add(encode(f, newWorld().Manifest))
	f.Fuzz(func(t *testing.T, text string) {
		m, err := resolve.ReadManifest(strings.NewReader(text))
		if err != nil {
			return
		}
		again, err := resolve.ReadManifest(strings.NewReader(encode(t, m)))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("read again: %+v, %v; want %+v", again, err, m)
		}
	})
}
