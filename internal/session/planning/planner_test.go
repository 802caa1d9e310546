package planning

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile/profiledir"
)

// aCall is a call from a home of its own that looks at what would be.
func aCall(t *testing.T, o Options) Call {
	t.Helper()
	home := t.TempDir()
	facts := host.Facts{Home: home, Cwd: home, UID: os.Getuid()}
	manifest := keepFile(t, filepath.Join(home, "manifest.json"), []byte(`{"version": 1, "system": "x86_64-linux"}`))
	return Call{
		Facts: facts, Caller: Caller{Stderr: io.Discard, Manifest: manifest}, Options: o, Purpose: Purpose{Look: true},
		Folders: profiledir.Folders{Home: filepath.Join(home, ".claudebox"), Config: filepath.Join(home, ".config/claudebox")},
	}
}

// keepFile writes a file and what leads to it.
func keepFile(t *testing.T, file string, content []byte) string {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must.Do(t, os.WriteFile(file, content, 0o600))
	return file
}

func planFor(system string) []byte {
	return plan.Plan{Version: plan.Version, Profile: "p", System: system, Network: plan.Network{Tier: "none"}}.Encode()
}

func TestAPlanFileIsFollowedAsTheFlagsChangeIt(t *testing.T) {
	c := aCall(t, Options{Network: "allow", Publish: []string{"3000"}})
	c.Options.Plan = keepFile(t, filepath.Join(c.Facts.Home, "plan.json"), planFor(nixSystem()))
	got, err := Planner{c, &Keeper{Call: c}}.Plan()
	must.Do(t, err)
	if got.Plan.Profile != "p" || got.Plan.Network.Tier != "allow" || !slices.Equal(got.Plan.Network.In, []int{3000}) {
		t.Errorf("got %+v", got.Plan)
	}
	if !slices.Equal(got.OwnFiles, []string{c.Options.Plan}) {
		t.Errorf("it was made of %q", got.OwnFiles)
	}
}

// R11: `--plan open.json -P tight` launched by the plan, and said nothing of the profile.
func TestFlagsOfWhichOneWouldNotCountAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"a tier that is none":  {Options{Network: "wide"}, `there is no tier "wide"`},
		"a plan and a profile": {Options{Plan: "open.json", Profile: "tight"}, "a plan says all that a profile does"},
	} {
		if _, err := NewCall(Caller{}, tc.options, Looking); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v; want %q in it", name, err, tc.want)
		}
	}
	t.Setenv("CLAUDEBOX_HOME", "box")
	if _, err := NewCall(Caller{}, Options{}, Looking); err == nil || !strings.Contains(err.Error(), `"box" is relative`) {
		t.Errorf("a relative CLAUDEBOX_HOME: %v", err)
	}
}

func TestWhatCannotBePlannedIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"a port that is none":      {Options{Publish: []string{"0"}}, `"0" is not a port`},
		"a port with a sign":       {Options{Publish: []string{"+80"}}, `"+80" is not a port`},
		"another machine's plan":   {Options{Plan: "other.json"}, "it is for pdp11-linux"},
		"a plan that is not there": {Options{Plan: "absent.json"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			c := aCall(t, tc.options)
			keepFile(t, filepath.Join(c.Facts.Home, "other.json"), planFor("pdp11-linux"))
			usual := keepFile(t, filepath.Join(c.Facts.Home, "plan.json"), planFor(nixSystem()))
			if c.Options.Plan == "" {
				c.Options.Plan = usual
			}
			c.Options.Plan = c.Facts.Absolute(c.Options.Plan)
			if _, err := (Planner{c, &Keeper{Call: c}}).Plan(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v; want %q in it", err, tc.want)
			}
		})
	}
}
