package why_test

import (
	"net/netip"
	"strings"
	"testing"

	"claudebox/internal/diag"
	"claudebox/internal/network/policy"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/ui/why"
)

func aLaunch(tier string) launch.Launch {
	return launch.Launch{
		Tier: tier, Setting: launch.Setting{Project: "/home/u/p"},
		Plan: plan.Plan{
			Network: plan.Network{Tier: tier, Allow: []string{"*.example.org", "api.example.com:8443"}, Out: []int{5432}},
			Env:     []plan.Env{{Name: "EDITOR", From: plan.FromHost, Why: "base"}, {Name: "LC_ALL", From: plan.FromHost, Why: "base"}},
		},
		Left: []diag.Left{{Kind: "variable", Text: "EDITOR (vim) does not enter: that program is not inside"}},
		Env: []launch.Variable{
			{Env: plan.Env{Name: "GH_TOKEN", From: plan.FromHost, Secret: true, Why: "profile work:3"}, Value: "ghp_0123456789abcdef"},
			{Env: plan.Env{Name: "HOME", From: plan.FromMade, Why: "base"}, Value: "/home/u"},
			{Env: plan.Env{Name: "ADDED", From: plan.FromHost, Why: "CLAUDEBOX_EXTRA_ENV"}, Value: "x"},
		},
		Mounts: []launch.Mount{
			{Kind: plan.Tmpfs, Destination: "/", Why: "base"},
			{Kind: plan.Proc, Destination: "/proc", Why: "base"},
			{Kind: plan.Symlink, Source: "/nix/store/x/sh", Destination: "/bin/sh", Why: "base"},
			{Kind: plan.File, Source: "passwd", Destination: "/etc/passwd", Why: "base"},
			{Kind: plan.Tmpfs, Destination: "/home/u", Why: "base"},
			{Kind: plan.Bind, Source: "/home/u/.claudebox/instances/1/.claude", Destination: "/home/u/.claude", Why: "base"},
			{Kind: plan.Bind, Source: "/home/u/p", Destination: "/home/u/p", Why: "base"},
			{Kind: plan.ROData, Destination: "/home/u/p/.env", Why: "it looks secret"},
			{Kind: plan.ROBind, Source: "/home/u/.claudebox/empty", Destination: "/home/u/p/private", Why: launch.WhyAsked},
			{Kind: plan.ROData, Destination: "/home/u/p/n", Why: launch.WhyHidden + launch.OtherName},
			{Kind: plan.Bind, Source: "/home/u/.claudebox/instances/1/git/x/inner", Destination: "/home/u/p/.git", Why: launch.WhyOwnGit},
			{Kind: plan.ROBind, Source: "/home/u/p/.envrc", Destination: "/home/u/p/.envrc", Why: "the host's tools execute it"},
			{Kind: plan.ROBind, Source: "/home/u/p/t.git", Destination: "/home/u/p/t.git", Why: launch.WhyTracked},
			{Kind: plan.ROBind, Source: "/home/u/data", Destination: "/mnt/data", Why: "--mount-ro"},
			{Kind: plan.ROBind, Source: "/srv/real", Destination: "/home/u/link", Why: "profile work:5"},
			{Kind: plan.ROBind, Source: "/nix/store", Destination: "/nix/store", Why: "base"},
		},
	}
}

func TestPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/home/u/p":              "yes:    ~/p is inside, read-write\nrule:   base\n",
		"/home/u/p/a/b":          "yes:    ~/p/a/b is inside, read-write\nrule:   base\n",
		"/home/u/p/.envrc":       "yes:    ~/p/.envrc is inside, read-only\nrule:   the host's tools execute it\n",
		"/home/u/p/t.git/HEAD":   "yes:    ~/p/t.git/HEAD is inside, read-only\nrule:   a repository among the files that git has\nchange: `--branch NAME`: there the files are the agent's own, until you merge\n",
		"/home/u/p/.env":         "no:     ~/p/.env is not inside: it is hidden, and empty there\nrule:   it looks secret\nchange: `show: [\"./.env\"]` in the profile\n",
		"/home/u/p/private/a/b":  "no:     ~/p/private/a/b is not inside: it is hidden, and empty there\nrule:   the profile's `hide` names it\nchange: `show: [\"./private\"]` in the profile\n",
		"/home/u/p/n":            "no:     ~/p/n is not inside: it is hidden, and empty there\nrule:   it looks secret, by another name\n",
		"/home/u/p/.git/config":  "no:     ~/p/.git/config is not inside: the agent has a git folder of its own there; commits, branches, tags, the index and stashes are handed over\nrule:   the agent's own git folder\n",
		"/home/u/data/x":         "yes:    ~/data/x is inside, read-only, at /mnt/data/x\nrule:   --mount-ro\nchange: leave --mount-ro out\n",
		"/home/u/link/x":         "yes:    ~/link/x is inside, read-only\nrule:   profile work:5\nchange: change its entry in mounts there\n",
		"/home/u/music":          "no:     ~/music is not inside\nchange: `--mount-ro ~/music`, or an entry in the profile's mounts\n",
		"/home/u/my music":       "no:     ~/my music is not inside\nchange: `--mount-ro '~/my music'`, or an entry in the profile's mounts\n",
		"/home/u/.ssh/id":        "no:     ~/.ssh/id is not inside: ~/.ssh holds secrets (SSH keys)\nchange: `mounts: [{host: ~/.ssh/id, mode: ro, secret: true}]` in the profile, if the agent shall read it\n",
		"/home/u":                "no:     ~ is not inside: it holds ~/.ssh (SSH keys)\nchange: mount the files and folders in it that are needed\n",
		"/home/u/.claude/x":      "no:     ~/.claude/x is not inside: there it is ~/.claudebox/instances/1/.claude/x\nrule:   base\nchange: `mounts: [{host: ~/.claude/x, sandbox: /mnt/x, mode: ro, secret: true}]` in the profile, if the agent shall read it\n",
		"/etc/passwd":            "no:     /etc/passwd is not inside: there it is a file of claudebox's making\nrule:   base\nchange: `--mount-ro /etc/passwd:INSIDE` shows it at another path\n",
		"/bin/sh":                "yes:    /bin/sh is inside: there it is the sandbox's own, /nix/store/x/sh\nrule:   base\n",
		"/proc/1/environ":        "no:     /proc/1/environ is not inside: the sandbox has processes and devices of its own\nrule:   base\n",
		"/nix/store/abc-x/bin/x": "yes:    /nix/store/abc-x/bin/x is inside, read-only\nrule:   base\nchange: `nix: {store: closure}` in the profile mounts only what the launch needs\n",
	} {
		asked := why.Asked{Path: path, Real: strings.Replace(path, "/home/u/link", "/srv/real", 1), Home: "/home/u", Places: profile.SecretPaths}
		if got := why.Path(aLaunch("full"), asked).Text(1000); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
		}
	}
}

// TestALinkOfTheProjectThatLeadsOutside: a .venv of the host's Python is one.
func TestALinkOfTheProjectThatLeadsOutside(t *testing.T) {
	for _, tc := range []struct{ link, real, want string }{
		{"/home/u/py/3", "/home/u/py/3.12", "no:     ~/p/link leads to ~/py/3, which is not inside\nchange: `--mount-ro ~/py/3`, or an entry in the profile's mounts\n"},
		{"", "/home/u/py/3.12", "no:     ~/p/link leads to ~/py/3.12, which is not inside\nchange: `--mount-ro ~/py/3.12`, or an entry in the profile's mounts\n"},
		{"/home/u/.ssh/id", "/home/u/.ssh/id", "no:     ~/p/link leads to ~/.ssh/id, which is not inside: ~/.ssh holds secrets (SSH keys)\nchange: `mounts: [{host: ~/.ssh/id, mode: ro, secret: true}]` in the profile, if the agent shall read it\n"},
		{"/home/u/data/x", "/home/u/data/x", "yes:    ~/p/link is inside, read-only, at /mnt/data/x\nrule:   --mount-ro\nchange: leave --mount-ro out\n"},
	} {
		asked := why.Asked{Path: "/home/u/p/link", Real: tc.real, Link: tc.link, Home: "/home/u", Places: profile.SecretPaths}
		if got := why.Path(aLaunch("full"), asked).Text(1000); got != tc.want {
			t.Errorf("%s by %s:\n%s\nwant\n%s", tc.real, tc.link, got, tc.want)
		}
	}
}

func TestPathsOfAStoreThatIsTheClosure(t *testing.T) {
	l := aLaunch("full")
	l.Mounts[len(l.Mounts)-1] = launch.Mount{Kind: plan.Closure, Destination: "/nix/store", Why: "base"}
	l.Closure = []string{"/nix/store/abc-x"}
	for path, want := range map[string]string{
		"/nix/store/abc-x/bin/x": "yes:    /nix/store/abc-x/bin/x is inside, read-only\nrule:   base\n",
		"/nix/store/abc-xy":      "no:     /nix/store/abc-xy is not inside: the store inside is the plan's closure, and it is not in that\nrule:   base\nchange: `packages` in the profile, or `nix: {store: full}`\n",
	} {
		if got := why.Path(l, why.Asked{Path: path, Real: path, Home: "/home/u", Places: profile.SecretPaths}).Text(1000); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
		}
	}
}

func TestWhatCannotBeSaid(t *testing.T) {
	asked := why.Asked{Path: "/home/u/p/nosuch", Real: "/home/u/p/nosuch", Home: "/home/u", Gone: true, Places: profile.SecretPaths}
	want := "unknown: ~/p/nosuch is not there; what is made there is inside\nrule:    base\n"
	if got := why.Path(aLaunch("full"), asked).Text(1000); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	asked.Path, asked.Real = "/home/u/music/x", "/home/u/music/x"
	if got := why.Path(aLaunch("full"), asked); got.Open || got.Inside || !strings.HasPrefix(got.Change, "once it is there, `--mount-ro") {
		t.Errorf("got %+v", got)
	}
	if got := why.Program("makefile", "", view.Remedy("makefile")); !got.Open {
		t.Errorf("got %+v", got)
	}
	if got := why.Program("3000", "", view.Remedy("3000")); !got.Open || !strings.Contains(got.Change, "localhost:3000") { // 3000:443 was offered, a host
		t.Errorf("got %+v", got)
	}
	if got := why.Program("git", "/nix/store/x-git/bin/git", view.Remedy("git")); !got.Inside {
		t.Errorf("got %+v", got)
	}
}

// On a branch the project inside is another one.
func TestAPathOfTheProjectOnABranch(t *testing.T) {
	l := aLaunch("full")
	l.Branch = "feat"
	for i, m := range l.Mounts {
		if m.Destination == "/home/u/p" {
			l.Mounts[i].Source = "/home/u/.claudebox/branches/1/2/closed/tree"
		}
	}
	asked := why.Asked{Path: "/home/u/p/src", Real: "/home/u/p/src", Home: "/home/u", Places: profile.SecretPaths}
	got := why.Path(l, asked).Text(1000)
	if !strings.HasPrefix(got, "no:     ~/p/src is not inside: there it is as branch feat has it\n") || !strings.Contains(got, "needs `show`") {
		t.Errorf("got %s", got)
	}
}

// PATH was a page of hashes.
func TestFoldersOfAVariableAreReadable(t *testing.T) {
	l := aLaunch("full")
	folder := "/nix/store/vy3gdacxaglk1jzhp1kmi00j81hdxw3h-coreutils-9.7/bin"
	l.Env = append(l.Env, launch.Variable{Env: plan.Env{Name: "PATH", From: plan.FromMade, Why: plan.Base}, Value: folder + ":/run/x"})
	const want = "yes:    PATH enters with a value that claudebox makes, /nix/store/vy3g…-coreutils-9.7/bin, /run/x\nrule:   base\n"
	if got := why.Variable(l, "PATH", "", false).Text(1000); got != want {
		t.Errorf("got %s", got)
	}
}

// The address of a proxy was cut at its slashes, and of a key it said "a value that claudebox makes".
func TestAVariableOfTheBrokersIsReadable(t *testing.T) {
	l := aLaunch("full")
	for _, name := range []string{"PROXY", "KEY", "IDLE"} {
		l.Env = append(l.Env, launch.Variable{Env: plan.Env{Name: name, From: plan.FromMade, Why: "broker"}, Value: "http://a:b@127.0.0.1:PORT"})
	}
	l.Outside = []launch.Outside{{Name: "KEY", Hosts: []string{"api.test", "127.0.0.1:4000"}, Why: "base"}}
	l.Left = append(l.Left, diag.Left{Kind: "key", Text: "IDLE does not enter, and nothing uses it: it would go in clear text"})
	l.Notes = []string{"GONE does not enter: there is no network to use it"}
	for name, want := range map[string]string{
		"PROXY": "yes:    PROXY enters with a value that claudebox makes, \"http://a:b@127.0.0.1:PORT\"\nrule:   broker\n",
		"KEY": "yes:    KEY enters as a placeholder, \"http://a:b@127.0.0.1:PORT\"; the true one stays outside, and goes to api.test, 127.0.0.1:4000 alone\n" +
			"rule:   base\n",
		"IDLE": "no:     IDLE does not enter, and nothing uses it: it would go in clear text\n",
		"GONE": "no:     GONE does not enter: there is no network to use it\n",
	} {
		if got := why.Variable(l, name, "x", true).Text(1000); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestVariables(t *testing.T) {
	for entry, want := range map[string]string{
		"GH_TOKEN=x":          "yes:    GH_TOKEN enters with your value, \"ghp_••••ef\", a secret\nrule:   profile work:3\nchange: take it out of the profile\n",
		"HOME=/home/u":        "yes:    HOME enters with a value that claudebox makes, \"/home/u\"\nrule:   base\n",
		"ADDED=x":             "yes:    ADDED enters with your value, \"••••\"\nrule:   CLAUDEBOX_EXTRA_ENV\nchange: leave it out of CLAUDEBOX_EXTRA_ENV\n",
		"EDITOR=vim":          "no:     EDITOR (vim) does not enter: that program is not inside\n",
		"LC_ALL":              "no:     LC_ALL may enter, and is not set here\nrule:   base\nchange: set it\n",
		"MY_PASSWORD=hunter2": "no:     MY_PASSWORD is set here, and nothing lets it in; it is probably a secret: name holds PASSW\nchange: `secrets: [{env: MY_PASSWORD, hosts: [HOST]}]` in the profile: used on the way to that host, and stays outside; `extra_env_passthrough: [MY_PASSWORD]` lets it in\n",
		"SSH_AUTH_SOCK=/x":    "no:     SSH_AUTH_SOCK is set here, and nothing lets it in; it names a socket that signs with your SSH keys\nchange: `git: {sign: ssh}` or `ssh: {hosts: [HOST]}` in the profile: your agent signs, or logs in to that host, and no more\n",
		"NPM_TOKEN":           "no:     NPM_TOKEN is not set here, and nothing would let it in; it is probably a secret: name holds TOKEN\nchange: `secrets: [{env: NPM_TOKEN, hosts: [HOST]}]` in the profile: used on the way to that host, and stays outside; `extra_env_passthrough: [NPM_TOKEN]` lets it in\n",
		"OTHER":               "no:     OTHER is not set here, and nothing would let it in\nchange: `extra_env_passthrough: [OTHER]` in the profile, or CLAUDEBOX_EXTRA_ENV=OTHER for one launch\n",
	} {
		name, value, set := strings.Cut(entry, "=")
		if got := why.Variable(aLaunch("full"), name, value, set).Text(1000); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	own := []netip.Prefix{netip.MustParsePrefix("203.0.113.7/32")}
	for _, tc := range []struct {
		tier, host, want string
	}{
		{"full", "192.168.1.5:22", "yes:    192.168.1.5:22 is reached as from here"},
		{"full", "makefile", "yes:    the host makefile is reached as from here"},
		{"full", "localhost:3000", "yes:    localhost:3000 is reached as from here"},
		{"inet", "example.com", "yes:    example.com is reached, unless its name leads to a private address"},
		{"inet", "192.168.1.5:22", "no:     192.168.1.5 is "},
		{"inet", "[::ffff:10.0.0.1]:80", "no:     ::ffff:10.0.0.1 is "},
		{"inet", "169.254.169.254", "no:     169.254.169.254 is "},
		{"inet", "203.0.113.7", "no:     203.0.113.7 is "},
		{"inet", "1.1.1.1", "yes:    1.1.1.1 is an address of the internet"},
		{"inet", "localhost:5432", "yes:    port 5432 of the sandbox's own loopback leads to this machine's\nrule:   ports.out"},
		{"inet", "127.0.0.1:3000", "no:     127.0.0.1 is the sandbox itself, not this machine\nrule:   network: inet\nchange: `ports: {out: [3000]}`"},
		{"allow", "www.Example.org", "yes:    www.Example.org is reached by its name, unless its name leads to a private address\nrule:   network: allow, allow: *.example.org"},
		{"allow", "example.org", "no:     example.org is not on the list of hosts"},
		{"allow", "www.example.org:22", "no:     www.example.org:22 is not on the list of hosts\nrule:   network: allow\nchange: `network: {tier: allow, allow: [www.example.org:22]}` in the profile"},
		{"allow", "api.example.com:8443", "yes:    api.example.com:8443 is reached"},
		{"allow", "1.1.1.1", "no:     1.1.1.1 is an address, not a name"},
		{"none", "example.com", "no:     there is no network but loopback inside"},
		{"none", "::1", "no:     ::1 is the sandbox itself"},
	} {
		h, ok := why.ParseHost(tc.host)
		h.Here = policy.Host{Networks: own}
		if got := why.Reach(aLaunch(tc.tier), h).Text(1000); !ok || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s, %s:\n%s\nwant\n%s", tc.tier, tc.host, got, tc.want)
		}
	}
	h, _ := why.ParseHost("192.168.1.2:8080")
	h.Here = policy.Host{Networks: own, Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.2")}}
	const want = "no:     192.168.1.2 is this machine itself\nrule:   network: inet\nchange: `ports: {out: [8080]}` in the profile"
	if got := why.Reach(aLaunch("inet"), h).Text(1000); !strings.HasPrefix(got, want) {
		t.Error(got)
	}
	for _, text := range []string{"", ":80", "a:0", "a:99999", "a:x"} {
		if h, ok := why.ParseHost(text); ok {
			t.Errorf("%q was read as %+v", text, h)
		}
	}
}

func TestAURLIsItsHost(t *testing.T) {
	for text, want := range map[string]string{
		"http://x.org/y": "x.org:80", "https://x.org/y": "x.org", "https://x.org:8443": "x.org:8443", "/a/b": "", "x.org:443": "", "localhost:80": "",
		"http://u:p@[::1]/x": "[::1]:80", "ssh://git@x.org/a": "x.org:22", "git@x.org:a/b": "x.org:22", "a/b@x.org:c": "", "file:///etc": "", "@x:1": "",
	} {
		if got, is := why.HostOf(text); got != want || is != (want != "") {
			t.Errorf("%s: got %q, %v", text, got, is)
		}
	}
}

// The sandbox has folders of its own where the host has others.
func TestAFolderOfTheSandboxsOwnIsSaid(t *testing.T) {
	l := launch.Launch{Mounts: []launch.Mount{{Kind: plan.Tmpfs, Destination: "/tmp", Why: plan.Base}}}
	a := why.Path(l, why.Asked{Path: "/tmp", Real: "/tmp", Home: "/home/u", Places: profile.SecretPaths})
	if a.Inside || !strings.Contains(a.Says, "an empty folder of its own") || a.Change != "" {
		t.Errorf("got %+v", a)
	}
}
