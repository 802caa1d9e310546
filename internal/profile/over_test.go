package profile_test

import (
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/profile"
)

const projectFile = "sub/.claudebox.yaml"

func TestAProjectsProfileIsLaidOverTheUsers(t *testing.T) {
	base, laid, _, err := profile.LoadOver("top.yaml", projectFile,
		[]byte("name: default\ndescription: harmless\nextends: extra\nnetwork: none\npackages: [b]\n"),
		files{"top.yaml": "name: mine\nnetwork: inet\npackages: [a]", "extra.yaml": "packages: [c]"})
	must.Do(t, err)
	if base.Network.Tier != profile.TierInet || len(base.Packages) != 1 || len(base.Sources) != 1 {
		t.Errorf("the user's own became %+v", base)
	}
	if laid.Name != "mine" || laid.Description != "" || laid.Network.Tier != profile.TierNone {
		t.Errorf("got %q, %q, network %s", laid.Name, laid.Description, laid.Network.Tier)
	}
	var said []string
	for _, p := range laid.Packages {
		said = append(said, p.Attr+" "+p.Origin.Rule())
	}
	if got := strings.Join(said, ", "); got != "a profile mine:3, c profile extra:1, b .claudebox.yaml:5" {
		t.Errorf("packages %s", got)
	}
	if len(laid.Sources) != 3 || laid.Sources[2].File != projectFile {
		t.Errorf("sources %v", laid.Sources)
	}
}

func TestFaultsOfAProjectsProfile(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"a file of the project":      {"extends: ./team.yaml", `sub/.claudebox.yaml:1:10: extends: "./team.yaml" is a file, which an agent could write; a project may extend profiles by name only`},
		"a file anywhere":            {"extends: [~/x.yaml]", `is a file, which an agent could write`},
		"itself":                     {"extends: sub/.claudebox.yaml", `is a file, which an agent could write`},
		"a name that is not there":   {"extends: gone", `sub/.claudebox.yaml:1:10: extends: no profile "gone"`},
		"an unknown key":             {"\nnetwrk: none", `sub/.claudebox.yaml:2:1: unknown key "netwrk"`},
		"a mount of the user's":      {"mounts: [{host: /f, sandbox: /d}]", `sub/.claudebox.yaml:1:10: mounts: /d is mounted differently in top:1`},
		"nothing that is a document": {"\x00\x01", "control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := profile.LoadOver("top.yaml", projectFile, []byte(tc.src), files{"top.yaml": "mounts: [{host: /e, sandbox: /d}]"})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Each pattern of the project's own profile is looked for at each launch, without a question: an agent writes thousands.
func TestAProjectsPatternsAreNotWithoutEnd(t *testing.T) {
	user := files{"top.yaml": "hide: [" + strings.Repeat("a/*, ", 300) + "b]"}
	for _, key := range []string{"hide", "show", "protect"} {
		list := func(n int) []byte { return []byte(key + ":\n" + strings.Repeat("- \"**/q/*\"\n", n)) }
		if _, _, _, err := profile.LoadOver("top.yaml", projectFile, list(200), user); err != nil {
			t.Error(err)
		}
		_, _, _, err := profile.LoadOver("top.yaml", projectFile, list(201), user)
		want := "sub/.claudebox.yaml:202:3: " + key + ": more than 200 patterns in a project's own profile"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
