package buildbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"claudebox/internal/nix/buildbox"
	"claudebox/internal/nix/nixdaemon"
)

// daemon answers the two builds of a probe: what each says, or why it failed. It is the evaluator as well, and notes
// what it is asked for.
type daemon struct {
	usual, without string
	asked          []string
}

func (d *daemon) Eval(_ context.Context, _ string, args []string, answer any) error {
	d.asked = append(d.asked, strings.Join(args, " "))
	if d.answer() == "not evaluated" {
		return errors.New("error at (if without then { __noChroot = true; } else { })")
	}
	return json.Unmarshal([]byte(`{"drv": "/nix/store/x.drv", "out": "/nix/store/x"}`), answer)
}

func (d *daemon) BuildPaths(_ context.Context, targets []string) ([]nixdaemon.BuildResult, error) {
	if !slices.Equal(targets, []string{"/nix/store/x.drv!out"}) {
		return nil, errors.New("no such derivation")
	}
	if said, failed := strings.CutPrefix(d.answer(), "failed: "); failed {
		return []nixdaemon.BuildResult{{Status: nixdaemon.MiscFailure, Message: said}}, nil
	}
	return []nixdaemon.BuildResult{{Status: nixdaemon.Built}}, nil
}

func (d *daemon) answer() string {
	if strings.HasSuffix(d.asked[len(d.asked)-1], " without true") {
		return d.without
	}
	return d.usual
}

// read gives what the last build wrote, where its derivation says.
func (d *daemon) read(path string) ([]byte, error) {
	if path != "/nix/store/x" {
		return nil, errors.New("no such path")
	}
	return []byte(d.answer() + "\n"), nil
}

func TestADaemonsBoxIsWhatItsBuildsSee(t *testing.T) {
	const forbidden = "failed: derivation has '__noChroot' set, but that's not allowed when 'sandbox' is 'true'"
	for name, tc := range map[string]struct {
		usual, without string
		want           buildbox.Box
		fails          bool
	}{
		"every build sees the host":         {"false", "", buildbox.Open, false},
		"one that asks for it does":         {"true", "false", buildbox.Relaxed, false},
		"to ask for it is forbidden":        {"true", forbidden, buildbox.Closed, false},
		"asking for it changes nothing":     {"true", "true", buildbox.Closed, false},
		"nothing is built":                  {"failed: the disk is full", "", "", true},
		"what asks for it fails by itself":  {"true", "failed: the disk is full", "", true},
		"the probe says something else":     {"maybe", "", "", true},
		"the usual one is forbidden, oddly": {forbidden, forbidden, "", true},
		"the probe cannot be evaluated":     {"not evaluated", "", "", true},
		"what asks for it cannot be":        {"true", "not evaluated", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &daemon{usual: tc.usual, without: tc.without}
			probe := buildbox.Probe{System: "x86_64-linux", Bash: "/nix/store/" + strings.Repeat("1", 32) + "-bash/bin/bash", Marks: []string{`/a "b"`}, Read: d.read}
			got, err := probe.Ask(t.Context(), d, d)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("got %q, %v", got, err)
			}
			if !strings.Contains(d.asked[0], `marks ["/a \"b\""]`) {
				t.Errorf("it looks for something else: %s", d.asked[0])
			}
		})
	}
}

// No cache can have what is built, and nobody can have built it before.
func TestEachProbeIsAnother(t *testing.T) {
	d := &daemon{usual: "true", without: "true"}
	probe := buildbox.Probe{System: "x86_64-linux", Bash: "/nix/store/" + strings.Repeat("1", 32) + "-bash/bin/bash", Read: d.read}
	for range 2 {
		if _, err := probe.Ask(t.Context(), d, d); err != nil {
			t.Fatal(err)
		}
	}
	if d.asked[0] == d.asked[2] || d.asked[1] == d.asked[3] {
		t.Error("two are the same")
	}
}
