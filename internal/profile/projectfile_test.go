package profile_test

import (
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/profile"
)

func TestAListOfPackagesIsAProfile(t *testing.T) {
	list := "# what we need\nripgrep\r\n\n  nodejs_22   # for the site\npython3Packages.requests"
	_, laid, _, err := profile.LoadOver("top.yaml", "/p/.claudebox/tools.txt", profile.OfTools([]byte(list)),
		files{"top.yaml": "name: mine\npackages: [a]"})
	must.Do(t, err)
	var said []string
	for _, p := range laid.Packages {
		said = append(said, p.Attr+" "+p.Origin.Rule())
	}
	const want = "a profile mine:2, ripgrep .claudebox/tools.txt:2, nodejs_22 .claudebox/tools.txt:4, " +
		"python3Packages.requests .claudebox/tools.txt:5"
	if got := strings.Join(said, ", "); got != want {
		t.Errorf("packages %s", got)
	}
	for _, said := range []string{".claudebox.yaml:3", ".claudebox.yml:3", ".claudebox/tools.txt:3"} {
		if !profile.IsProjectRule(said) || profile.IsProjectRule("profile "+said) {
			t.Errorf("%s", said)
		}
	}
}

// A list of packages cannot say more than packages, whatever is in it.
func TestAListOfPackagesSaysNothingElse(t *testing.T) {
	for list, want := range map[string]string{
		"a]\nnetwork: full\n":       ".claudebox/tools.txt:1:",
		"a\" ]\nmounts: [~/.ssh]\n": ".claudebox/tools.txt:1:",
		"jq ripgrep\n":              ".claudebox/tools.txt:1:",
		"a\n\x00\n":                 ".claudebox/tools.txt",
	} {
		_, laid, _, err := profile.LoadOver("top.yaml", ".claudebox/tools.txt", profile.OfTools([]byte(list)), files{"top.yaml": "name: mine"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", list, laid, err)
		}
	}
	_, laid, _, err := profile.LoadOver("top.yaml", ".claudebox/tools.txt", profile.OfTools(nil), files{"top.yaml": "name: mine"})
	if err != nil || len(laid.Packages) != 0 {
		t.Errorf("an empty list: %v, %v", laid, err)
	}
}
