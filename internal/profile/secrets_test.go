package profile_test

import (
	"path"
	"strings"
	"testing"

	"claudebox/internal/profile"
)

func TestExposesJudgesAPathByWhatLiesThere(t *testing.T) {
	for host, want := range map[string]struct {
		path     string
		relation profile.Relation
	}{
		"~/.ssh":                       {"~/.ssh", profile.Within},
		"~/.ssh/id_ed25519":            {"~/.ssh", profile.Within},
		"~/.sshx":                      {"", profile.Apart},
		"~/ssh":                        {"", profile.Apart},
		"~/.age":                       {"~/.age", profile.Within},
		"~/.age-keys/work":             {"~/.age-*", profile.Within},
		"~/.agekey.txt":                {"~/.age[_.k]*", profile.Within},
		"~/.agents/skills":             {"", profile.Apart},
		"~/.codex":                     {"~/.codex/auth.json", profile.Around},
		"~/.codex/prompts":             {"", profile.Apart},
		"~/.config/google-chrome-beta": {"~/.config/google-chrome*", profile.Within},
		"/etc/nix/cache.key":           {"/etc/nix/*.key", profile.Within},
		"/etc/nix/registry.json":       {"", profile.Apart},
		"/etc/nix":                     {"/etc/nix/*.key", profile.Around},
		"/run/user/1000/bus":           {"/run/user/*", profile.Within},
		"/run/user":                    {"/run/user/*", profile.Around},
		"/run/secrets.d/3/token":       {"/run/secrets*", profile.Within},
		"/run":                         {"/run/user/*", profile.Around},
		"~/.config":                    {"~/.config/gh", profile.Around},
		"~/.config/nvim":               {"", profile.Apart},
		"~":                            {"~/.ssh", profile.Around},
		"/":                            {"~/.ssh", profile.Around},
		"/home":                        {"~/.ssh", profile.Around},
		"/home/me":                     {"~/.ssh", profile.Around},
		"/home/me/.ssh/id":             {"~/.ssh", profile.Within},
		"/home/me/src":                 {"", profile.Apart},
		"/var/home/me/.kube":           {"~/.kube", profile.Within},
		"/root":                        {"~/.ssh", profile.Around},
		"/root/.gnupg":                 {"~/.gnupg", profile.Within},
		"/rooted":                      {"", profile.Apart},
		"/srv/.ssh":                    {"", profile.Apart},
		"./.ssh":                       {"", profile.Apart},
		"/tmp/x":                       {"/tmp", profile.Within},
	} {
		secret, relation := profile.Exposes(host)
		if secret.Path != want.path || relation != want.relation {
			t.Errorf("Exposes(%q) = %q, %d; want %q, %d", host, secret.Path, relation, want.path, want.relation)
		}
	}
}

// The paths that no profile can make visible by accident, written down once more.
const never = "~/.ssh ~/.gnupg ~/.aws ~/.config/gcloud ~/.kube ~/.docker ~/.netrc ~/.config/gh ~/.config/op ~/.password-store " +
	"~/.config/sops ~/.age ~/.age-* ~/.age[_.k]* /var/lib/tailscale /run/user/* /run/secrets* /etc/ssh /etc/nix/*.key /tmp"

func TestTheListHoldsWhatIsNeverVisible(t *testing.T) {
	listed := map[string]bool{}
	for _, secret := range profile.SecretPaths {
		switch folder, _ := path.Split(secret.Path); {
		case listed[secret.Path]:
			t.Errorf("%s is listed twice", secret.Path)
		case strings.IndexByte(secret.Path+"*", '*') < len("/tmp"):
			t.Errorf("%s is shorter than what Exposes compares first", secret.Path)
		case secret.What == "":
			t.Errorf("%s says not what is there", secret.Path)
		case strings.Contains(folder, "*"):
			t.Errorf("%s: the * is not in the last segment", secret.Path)
		}
		listed[secret.Path] = true
	}
	for _, name := range strings.Fields(never) {
		if !listed[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestTildeIsForPathsBelowHomeOnly(t *testing.T) {
	for host, want := range map[string]string{
		"/data/me": "~", "/data/me/x": "~/x", "/data/mex": "/data/mex", "/srv": "/srv",
	} {
		if got := profile.Tilde("/data/me", host); got != want {
			t.Errorf("Tilde(%q) = %q, want %q", host, got, want)
		}
	}
}

func TestEffectsOfVariables(t *testing.T) {
	for name, some := range map[string]bool{
		"LD_PRELOAD": true, "LD_": true, "LDFLAGS": false, "BASH_ENV": true, "GIT_CONFIG_COUNT": true, "GIT_AUTHOR_NAME": false,
		"SSH_AUTH_SOCK": true, "NODE_OPTIONS": true, "NODE_ENV": false, "": false,
	} {
		if got := profile.Effect(name); (got != "") != some {
			t.Errorf("Effect(%q) = %q", name, got)
		}
	}
}

// The places of this user say nothing of another's home, where the usual ones are.
func TestTheSecretsOfAnotherUserAreExposed(t *testing.T) {
	same := func(at string) string { return at }
	places := profile.PlacesOf("/home/me", func(_, unset string) string { return unset }, same)
	for host, want := range map[string]profile.Relation{
		"/home/other/.ssh/id_x": profile.Within, "/home/other": profile.Around, "/home": profile.Around, "/": profile.Around, "/srv": profile.Apart,
	} {
		if _, got := profile.Exposed(places, host); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
}
