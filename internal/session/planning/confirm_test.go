package planning

import (
	"path/filepath"
	"testing"

	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile/profiledir"
)

// ownFolders are claudebox's own in a home.
func ownFolders(home string) profiledir.Folders {
	return CallOf(Caller{}, Options{}, Purpose{}, host.Facts{
		Home: home, Cwd: home + "/project",
		Env: host.Environment{"HOME=" + home, "CLAUDEBOX_HOME=" + home + "/.claudebox", "XDG_CONFIG_HOME=" + home + "/.config"},
	}).Folders
}

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
			home := t.TempDir()
			own := ownFolders(home)
			of := Planned{
				Plan:     plan.Plan{Confirm: tc.says},
				OwnFiles: []string{filepath.Join(own.Home, "profiles/base.yaml"), filepath.Join(home, tc.file)},
			}
			if got := of.Confirm(own); got != tc.want {
				t.Errorf("the user is asked: %s; want %s", got, tc.want)
			}
		})
	}
}

// The audit names a secret and not its file, so only the digest tells such plans apart.
func TestAnAgentPutsAnotherFileInThePlaceOfAnApprovedSecret(t *testing.T) {
	line := func(file, secret string) string {
		home := t.TempDir()
		p := plan.Plan{Secrets: []plan.Secret{{Variable: "TOKEN", File: secret, Hosts: []string{"example.org"}}}}
		return Planned{Plan: p, OwnFiles: []string{filepath.Join(home, file)}}.PlanDigest(ownFolders(home))
	}
	if was := line("project/plan.json", "~/token"); was == "" || was == line("project/plan.json", "~/.ssh/id") {
		t.Errorf("both plans are approved by %q", was)
	}
	if own := line(".claudebox/plans/p.json", "~/token"); own != "" {
		t.Errorf("a plan of the user's own is approved by %q, too", own)
	}
}
