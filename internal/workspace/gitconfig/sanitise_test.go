package gitconfig_test

import (
	"strings"
	"testing"

	"claudebox/checks/kit/realgit"
	"claudebox/internal/workspace/gitconfig"
)

// sanitised pairs a configuration with its copy; "canary" stands for the
// secret in each and must be in no copy.
var sanitised = map[string]struct{ src, want string }{
	"a token as user name goes":          {"[remote \"o\"]\nurl = https://canary@example.org/x.git\n", "[remote \"o\"]\n\turl = \"https://example.org/x.git\"\n"},
	"user and password go":               {"[remote \"o\"]\nurl = https://u:canary@example.org/x\n", "[remote \"o\"]\n\turl = \"https://example.org/x\"\n"},
	"a password with an at sign goes":    {"[remote \"o\"]\nurl = https://u:can@canary@example.org/x\n", "[remote \"o\"]\n\turl = \"https://example.org/x\"\n"},
	"an ssh user stays":                  {"[remote \"o\"]\nurl = ssh://git@example.org/x\n", "[remote \"o\"]\n\turl = \"ssh://git@example.org/x\"\n"},
	"an ssh password goes":               {"[remote \"o\"]\nurl = ssh://git:canary@example.org/x\n", "[remote \"o\"]\n\turl = \"ssh://git@example.org/x\"\n"},
	"the scp form stays":                 {"[remote \"o\"]\nurl = git@example.org:x\n", "[remote \"o\"]\n\turl = \"git@example.org:x\"\n"},
	"push URLs too":                      {"[remote \"o\"]\npushurl = https://canary@example.org/\n", "[remote \"o\"]\n\tpushurl = \"https://example.org/\"\n"},
	"the name of a url section too":      {"[url \"https://canary@example.org/\"]\ninsteadOf = gh:\n", "[url \"https://example.org/\"]\n\tinsteadof = \"gh:\"\n"},
	"a proxy's login too":                {"[http]\nproxy = http://u:canary@proxy:3128\n", "[http]\n\tproxy = \"http://proxy:3128\"\n"},
	"without a scheme, too":              {"[http]\nproxy = u:canary@proxy:3128\n[remote \"o\"]\nproxy = canary@proxy\n", "[http]\n\tproxy = \"proxy:3128\"\n[remote \"o\"]\n\tproxy = \"proxy\"\n"},
	"a branch that names a URL too":      {"[branch \"m\"]\nremote = https://canary@example.org/x\n", "[branch \"m\"]\n\tremote = \"https://example.org/x\"\n"},
	"two URLs in one value":              {"[a]\nb = https://canary@x/ https://canary@y/\n", "[a]\n\tb = \"https://x/ https://y/\"\n"},
	"a transport helper's URL too":       {"[remote \"o\"]\nurl = hg::https://canary@x/\n", "[remote \"o\"]\n\turl = \"hg::https://x/\"\n"},
	"a URL in a URL's userinfo":          {"[a]\nb = https://a://canary@x/\n", "[a]\n\tb = \"https://a://x/\"\n"},
	"an at sign in a path stays":         {"[a]\nb = https://x/@scope/y@1\n", "[a]\n\tb = \"https://x/@scope/y@1\"\n"},
	"headers go":                         {"[http]\nextraHeader = canary\n[http \"https://x/\"]\nextraheader = canary\n", ""},
	"credential sections go":             {"[credential]\nhelper = canary\n[credential \"https://x\"]\nusername = canary\n[credential.x]\nhelper = canary\n", ""},
	"the ssh command goes":               {"[core]\nsshCommand = ssh -i canary\nbare = false\n", "[core]\n\tbare = \"false\"\n"},
	"signing goes":                       {"[commit]\ngpgSign = true\n[tag]\ngpgSign\n[user]\nsigningKey = canary\nname = x\n[gpg \"ssh\"]\nprogram = canary\n", "[user]\n\tname = \"x\"\n"},
	"comments go":                        {"# canary\n[a] ; canary\nb = c # canary\n", "[a]\n\tb = \"c\"\n"},
	"a tool's own token goes":            {"[github]\ntoken = canary\noauth-token = canary\nuser = u\n", "[github]\n\tuser = \"u\"\n"},
	"a mail password goes":               {"[sendemail \"w\"]\nsmtpPass = canary\nsmtpUser = u\n", "[sendemail \"w\"]\n\tsmtpuser = \"u\"\n"},
	"a token in an alias takes the line": {"[alias]\nx = !curl -H 'Authorization: canary'\ny = status\n", "[alias]\n\ty = \"status\"\n"},
	"a token by its name in an alias":    {"[alias]\nx = \"!X_TOKEN=canary git push\"\ny = !f() { A_SECRET='canary' g; }\nz = !g --api-token canary\nv = \"!X_TOKEN=$(cat f) git push\"\nw = log --author=me --pretty=%h\n", "[alias]\n\tv = \"!X_TOKEN=$(cat f) git push\"\n\tw = \"log --author=me --pretty=%h\"\n"},
	"a login of curl's in a command":     {"[alias]\nx = \"!curl -u me:canary9x7 https://h\"\ny = \"!curl --user me:canary9x7 https://h\"\nz = \"!curl -u me:$(cat f) https://h\"\nw = push -u origin a:b\n[filter \"f\"]\nclean = curl -u me:canary9x7 h\n", "[alias]\n\tz = \"!curl -u me:$(cat f) https://h\"\n\tw = \"push -u origin a:b\"\n"},
	"a known token shape takes the line": {"[alias]\nx = !f ghp_canary\n", ""},
	"what git needs stays": {
		"[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = ../x\n[extensions]\n\tworktreeConfig\n[remote \"o\"]\n\tfetch = +refs/heads/*:refs/remotes/o/*\n",
		"[core]\n\trepositoryformatversion = \"1\"\n\tbare = \"false\"\n\tworktree = \"../x\"\n[extensions]\n\tworktreeconfig\n[remote \"o\"]\n\tfetch = \"+refs/heads/*:refs/remotes/o/*\"\n",
	},
	"what git refuses is refused in the copy": {
		"[a]\nb = c\n=canary\n",
		"[a]\n\tb = \"c\"\n# the project's file has a bad config line 3; so has this copy\n[broken\n",
	},
}

func TestSanitise(t *testing.T) {
	for name, tc := range sanitised {
		t.Run(name, func(t *testing.T) {
			got := string(gitconfig.Sanitise([]byte(tc.src)))
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			if strings.Contains(got, "canary") {
				t.Error("a secret is in the copy")
			}
			_, before := realgit.List(t, []byte(tc.src))
			if _, after := realgit.List(t, []byte(got)); before != after {
				t.Errorf("git accepts the file: %v, its copy: %v", before, after)
			}
		})
	}
}
