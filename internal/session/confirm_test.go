package session

import (
	"path/filepath"
	"testing"

	"claudebox/internal/plan"
	"claudebox/internal/session/planning"
)

func TestWhatAnAgentCouldHaveWrittenCannotSayThatNobodyIsAsked(t *testing.T) {
	for name, tc := range map[string]struct {
		file, says, want string
	}{
		"a file of the project":       {"project/plan.json", "never", "changed"},
		"a file of another project":   {"other/plan.json", "never", "changed"},
		"a name like claudebox's own": {".claudebox-2/plans/p.json", "never", "changed"},
		"one that asks each time":     {"project/plan.json", "always", "always"},
		"one of the user's own":       {".claudebox/profiles/p.yaml", "never", "never"},
		"one of the configuration":    {".config/claudebox/plans/p.json", "never", "never"},
	} {
		t.Run(name, func(t *testing.T) {
			c := at(t.TempDir())
			in := inputs{Call: c, Planned: planning.Planned{
				Plan:     plan.Plan{Confirm: tc.says},
				OwnFiles: []string{filepath.Join(c.Folders.Home, "profiles/base.yaml"), filepath.Join(c.Facts.Home, tc.file)},
			}}
			if got := in.Confirm(); got != tc.want {
				t.Errorf("the user is asked: %s; want %s", got, tc.want)
			}
		})
	}
}

// The audit names a secret and not its file, so only the digest tells such plans apart.
func TestAnAgentPutsAnotherFileInThePlaceOfAnApprovedSecret(t *testing.T) {
	line := func(file, secret string) string {
		c := at(t.TempDir())
		p := plan.Plan{Secrets: []plan.Secret{{Variable: "TOKEN", File: secret, Hosts: []string{"example.org"}}}}
		return inputs{Call: c, Planned: planning.Planned{Plan: p, OwnFiles: []string{filepath.Join(c.Facts.Home, file)}}}.PlanDigest()
	}
	if was := line("project/plan.json", "~/token"); was == "" || was == line("project/plan.json", "~/.ssh/id") {
		t.Errorf("both plans are approved by %q", was)
	}
	if own := line(".claudebox/plans/p.json", "~/token"); own != "" {
		t.Errorf("a plan of the user's own is approved by %q, too", own)
	}
}
