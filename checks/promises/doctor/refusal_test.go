//go:build lab

package doctor_test

import (
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// refusal is a launch that does not start, with nothing broken but its words.
type refusal struct {
	profile string   // YAML; empty: the world's own
	dir     string   // below the home; empty: the project
	words   []string // of the launch
	status  int
	says    string
	remedy  string
	finding string // of a check with the same profile in the same folder
}

var refusals = map[string]refusal{
	"the home folder is no project": {
		dir: ".", words: []string{"--yes"}, status: 125,
		says: "is your home folder, with every secret in it", remedy: "start claudebox in the folder of one project", finding: "project",
	},
	"an agent that is nowhere is not found": {
		profile: "name: lab\nagent: nowhere\n", words: []string{"--yes"}, status: 127,
		says: "find nowhere on PATH: not found", remedy: "install nowhere", finding: "agent",
	},
	"an agent that is no program cannot be run": {
		profile: "name: lab\nagent: {name: text, command: [~/text]}\n", words: []string{"--yes"}, status: 126,
		says: "cannot be executed", remedy: "chmod +x", finding: "agent",
	},
	"a fault of the profile is told with its place": {
		profile: "name: lab\npakages: []\n", words: []string{"--yes"}, status: 125,
		says: `lab.yaml:2:1: unknown key "pakages"`, finding: "profile",
	},
	"a package that there is none of": {
		profile: "name: lab\npackages: [no-such-package]\nagent: {name: bash, command: [bash]}\n", words: []string{"--yes"}, status: 125,
		says: "no-such-package", finding: "profile",
	},
	"without a terminal there is nobody to ask": {
		profile: "name: lab\nagent: {name: bash, command: [bash]}\nnix: {daemon: off}\n", words: []string{"-c", "true"}, status: 125,
		says: "there is no terminal to ask on", remedy: "pass `--yes`",
	},
}

// What a check finds is what keeps a launch from starting, and nothing is
// left of either.
func TestARefusedLaunchLeavesNothingBehind(t *testing.T) {
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.prepare(t, w)
			before := listing(t, w.home)
			r := w.withoutTerminal(t, tc.words...)
			if r.status != tc.status || r.stdout != "" || !strings.Contains(r.stderr, tc.says) || !strings.Contains(r.stderr, tc.remedy) {
				t.Errorf("got %+v; want status %d, %q, remedy %q", r, tc.status, tc.says, tc.remedy)
			}
			check := w.run(t, "check", "--format", "json")
			tc.compare(t, check)
			if after := listing(t, w.home); after != before {
				t.Errorf("something changed in the home:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

func (r refusal) prepare(t *testing.T, w *world) {
	t.Helper()
	if r.dir != "" {
		w.project = filepath.Join(w.home, r.dir)
	}
	must.Write(t, filepath.Join(w.home, "text"), "no program\n")
	if r.profile != "" {
		must.Write(t, filepath.Join(w.home, ownProfile), r.profile)
	}
}

// compare looks for the same words in a check.
func (r refusal) compare(t *testing.T, check result) {
	t.Helper()
	failed := of(check.findings(t), "failed")
	if r.finding == "" {
		if len(failed) > 0 {
			t.Errorf("a check finds %+v; want nothing", failed)
		}
		return
	}
	if check.status != 125 || len(failed) != 1 || failed[0].Name != r.finding ||
		!strings.Contains(failed[0].Detail, r.says) || !strings.Contains(failed[0].Remedy, r.remedy) {
		t.Errorf("a check: status %d, %+v; want %q with %q, remedy %q", check.status, failed, r.finding, r.says, r.remedy)
	}
}

// Of D21: a check was green where the plan was known, and what it needs could not be had any more.
func TestACheckIsRedWhereALaunchCannotHaveItsPackages(t *testing.T) {
	w := newWorld(t)
	must.Write(t, filepath.Join(w.home, ownProfile), labProfile+"packages: [hello]\n")
	for _, words := range [][]string{{"plan"}, {"check", "--format", "json"}} { // the evaluation is kept
		if r := w.run(t, words...); r.status != 0 {
			t.Fatalf("with a daemon: %+v", r)
		}
	}
	w.env = append(w.env, "NIX_DAEMON_SOCKET_PATH="+w.home+"/nowhere")
	launch, check := w.run(t, "shell", "--", "true"), w.run(t, "check", "--format", "json")
	failed := of(check.findings(t), "failed")
	if launch.status != 125 || !strings.Contains(launch.stderr, "no Nix daemon listens there") {
		t.Errorf("a launch: %+v", launch)
	}
	if check.status != 125 || len(failed) == 0 || failed[0].Name != "profile" || !strings.Contains(failed[0].Detail, "no Nix daemon listens there") {
		t.Errorf("a check: status %d, %+v", check.status, failed)
	}
}
