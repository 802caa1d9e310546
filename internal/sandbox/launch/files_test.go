package launch

import (
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/ask"
)

func TestPasswdAndGroupNameRootTheUserAndNobodyOnly(t *testing.T) {
	h := aHost()
	if got, want := string(passwd(plan.Plan{}, h)), "root:x:0:0:root:/root:\nu:x:1000:100::/home/u:\nnobody:x:65534:65534:nobody:/:/bin/false\n"; got != want {
		t.Errorf("passwd is %q, want %q", got, want)
	}
	if got, want := string(group(h)), "root:x:0:\nusers:x:100:\nnogroup:x:65534:\n"; got != want {
		t.Errorf("group is %q, want %q", got, want)
	}
}

func TestTheHostsOwnNamesEnterInTierFullOnly(t *testing.T) {
	h := aHost()
	h.Etc.Hosts = []byte("192.0.2.1 internal.example\n")
	for tier, want := range map[string]bool{"full": true, "none": false, "inet": false, "allow": false} {
		got := string(hosts(plan.Plan{Network: plan.Network{Tier: tier}}, h))
		if strings.Contains(got, "internal.example") != want || !strings.Contains(got, "127.0.0.1 "+Hostname) {
			t.Errorf("tier %s: hosts is %q", tier, got)
		}
	}
}

func TestSandboxMDTellsWhatIsThere(t *testing.T) {
	h := aHost()
	h.Policy = []byte("policy of the company\n\n")
	h.Nix.Daemon = true
	h.Mounts = []Mount{
		{Kind: plan.Bind, Destination: "/home/u/src/p/.git", Why: WhyOwnGit},
		{Kind: plan.ROBind, Destination: "/home/u/src/p/.envrc"},
		{Kind: plan.ROBind, Destination: "/elsewhere"},
	}
	work := plan.Plan{Profile: "work", Network: plan.Network{Tier: "none"}}
	if got := string(sandboxMD(work, h)); strings.Contains(got, ask.Name) {
		t.Errorf("it names a program that is not there:\n%s", got)
	}
	h.Mounts = append(h.Mounts, Mount{Kind: plan.ROBind, Destination: ask.Program})
	got := string(sandboxMD(work, h))
	expect.Contains(t, got,
		"policy of the company\n\n# You are in a sandbox", `profile "work"`, "Project: /home/u/src/p, read-write",
		"Network: none: none; only the loopback", "nix shell nixpkgs#NAME", "them: `.envrc`.", "`.git` is your own",
		"`claudebox-why HOST|PATH|PROGRAM` says",
	)
	if strings.Contains(got, "{") || strings.Contains(got, "elsewhere") {
		t.Errorf("a placeholder, or a file outside the project, is left in\n%s", got)
	}
}

// U3: a covered file is not one that the host executes.
func TestTheAgentIsToldWhatIsCoveredAndWhy(t *testing.T) {
	h := Host{Setting: Setting{Project: "/p"}, Part: Part{Mounts: []Mount{
		{Kind: plan.ROData, Destination: "/p/.env", Why: "it looks secret"},
		{Kind: plan.ROBind, Source: "/home/u/.claudebox/empty", Destination: "/p/secrets", Why: "it looks secret"},
		{Kind: plan.ROBind, Source: "/p/.envrc", Destination: "/p/.envrc"},
		{Kind: plan.Bind, Source: "/home/u/.claudebox/x", Destination: "/p/.git", Why: WhyOwnGit},
	}}}
	got := readOnlyWords(h)
	expect.Contains(t, got, "the host executes them: `.envrc`.", "`.git` is your own", "look secret: `.env`, `secrets`.")
}
