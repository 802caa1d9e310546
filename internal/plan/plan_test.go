package plan

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
)

// at is a line of the profile work.
func at(line int) profile.Origin { return profile.Origin{Name: "work", Line: line} }

// example is a profile with something of everything that a plan carries.
func example() profile.Profile {
	return profile.Profile{
		Name:    "work",
		Agent:   profile.Agent{Name: "claude"},
		Network: profile.Network{Tier: profile.TierFull},
		Env:     []profile.Constant{{Name: "AWS_PROFILE", Value: "work", Origin: at(3)}},
		PassThrough: []profile.Entry{
			{Text: "VAULT_TOKEN", Origin: at(4)}, {Text: "TERM", Origin: at(5)},
		},
		Mounts: []profile.Mount{
			{Host: "~/data", Sandbox: "~/data", Origin: at(7)},
			{Host: "./gen", Sandbox: "/gen", Writable: true, Origin: at(6)},
		},
		State: "project", Cache: profile.CacheProject, Compat: profile.CompatNixLd,
		Nix:     profile.Nix{Daemon: "own", Store: profile.StoreFull},
		Sources: []profile.Source{{Name: "work", File: "work.yaml", SHA256: "00"}},
	}
}

const store = "/nix/store/00000000000000000000000000000000-"

func resolution() resolve.Resolution {
	return resolve.Resolution{
		System: "x86_64-linux",
		Packages: []resolve.Package{
			{Attr: "jq", Version: "1.7", Why: "profile work:2", Outputs: []resolve.Output{{Name: "bin", Path: store + "jq-bin"}, {Name: "man", Path: store + "jq-man"}}},
			{Attr: "git", Why: "base", Outputs: []resolve.Output{{Name: "out", Path: store + "git"}}},
		},
		Tools: map[string]string{
			resolve.ToolBash: store + "bash/bin/bash", resolve.ToolEnv: store + "coreutils/bin/env",
		},
	}
}

func build(t *testing.T, prof profile.Profile) Plan {
	t.Helper()
	p, err := Build(prof, resolution())
	must.Do(t, err)
	return p
}

func TestEqualInputsGiveEqualBytes(t *testing.T) {
	prof := example()
	want := build(t, prof).Encode()
	for range 20 {
		if got := build(t, prof).Encode(); !bytes.Equal(got, want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

func TestPathHoldsTheProfilesPackagesFirstAndNoDocumentation(t *testing.T) {
	want := []string{store + "jq-bin/bin", store + "git/bin"}
	if got := build(t, example()).Path; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHostVariablesAreNamedAndNeverCopied(t *testing.T) {
	for _, e := range build(t, example()).Env {
		if e.From == FromHost && e.Value != "" {
			t.Errorf("%s has a value in the plan: %q", e.Name, e.Value)
		}
		if e.Name == "VAULT_TOKEN" && (!e.Secret || e.Why != "profile work:4") {
			t.Errorf("a variable that a profile passes is a secret with its rule, got %+v", e)
		}
		if e.Name == "TERM" && e.Secret {
			t.Error("a base variable becomes no secret because a profile names it too")
		}
	}
}

func TestMountsComeParentsFirst(t *testing.T) {
	mounts := build(t, example()).Mounts
	for i, m := range mounts {
		for _, later := range mounts[i+1:] {
			if strings.HasPrefix(m.Destination, later.Destination+"/") {
				t.Errorf("%s is mounted before %s, which would cover it", m.Destination, later.Destination)
			}
		}
	}
}

func TestAMountIsSecretOnlyIfTheProfileSaysSo(t *testing.T) {
	for _, secret := range []bool{false, true} {
		prof := example()
		prof.Mounts = []profile.Mount{{Host: "~/.aws/credentials", Sandbox: "~/.aws/credentials", Secret: secret, Origin: at(8)}}
		for _, m := range build(t, prof).Mounts {
			if m.Why == "profile work:8" && m.Secret != secret {
				t.Errorf("%+v; want secret: %t", m, secret)
			}
		}
	}
}

func TestTiersWithoutAResolver(t *testing.T) {
	for tier, want := range map[string]bool{profile.TierFull: true, profile.TierInet: true, profile.TierAllow: true, profile.TierNone: false} {
		prof := example()
		prof.Network.Tier = tier
		for how, p := range map[string]Plan{"by profile": build(t, prof), "by flag": build(t, example()).WithTier(tier)} {
			has := slices.ContainsFunc(p.Mounts, func(m Mount) bool { return m.Destination == "/etc/resolv.conf" })
			if has != want {
				t.Errorf("tier %s %s: a resolv.conf is there: %t", tier, how, has)
			}
		}
	}
}

// The audit shows what stands in the plan.
func TestAnotherTierLeavesOutWhatItDoesNotUse(t *testing.T) {
	prof := example()
	prof.Network = profile.Network{Tier: profile.TierAllow, Allow: []string{"a.test", "b.test"}, Private: []string{"b.test"}, Via: "http://p:1", In: []int{3000}}
	for tier, want := range map[string]Network{
		"allow": build(t, prof).Network, "inet": {Tier: "inet", In: []int{3000}}, "none": {Tier: "none", In: []int{3000}},
	} {
		if got := build(t, prof).WithTier(tier).Network; !reflect.DeepEqual(got, want) {
			t.Errorf("tier %s: %+v; want %+v", tier, got, want)
		}
	}
}

func TestPresetsStandInThePlanAsTheirHosts(t *testing.T) {
	prof := example()
	prof.Network = profile.Network{Tier: profile.TierAllow, Allow: []string{"pypi", "example.org:22"}}
	got := build(t, prof).Network.Allow
	if want := []string{"example.org:22", "files.pythonhosted.org", "pypi.org"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTierAllowWithoutAListIsTheAgentsOwnHosts(t *testing.T) {
	prof := example()
	prof.Network = profile.Network{Tier: profile.TierAllow}
	for name, known := range agents {
		prof.Agent.Name = name
		made := build(t, prof)
		for how, p := range map[string]Plan{"by profile": made, "by flag": made.WithTier(profile.TierInet).WithTier(profile.TierAllow)} {
			if got := p.Network.Allow; len(got) == 0 || !slices.Equal(got, hostpattern.Expand([]string{known.preset})) {
				t.Errorf("%s, %s: %q", name, how, got)
			}
		}
	}
	prof.Agent.Name = "another"
	if got := build(t, prof).Network.Allow; len(got) != 0 {
		t.Errorf("of an agent that is not known: %q", got)
	}
}

func TestPublishedPortsJoinThoseOfTheProfile(t *testing.T) {
	prof := example()
	prof.Network.In = []int{3000}
	before := build(t, prof)
	if got, want := before.WithPorts(8000, 3000, 80).Network.In, []int{80, 3000, 8000}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !slices.Equal(before.Network.In, []int{3000}) {
		t.Error("the plan itself was changed")
	}
}

func TestTwoMountsAtOneDestinationAreRefusedWithBothRules(t *testing.T) {
	prof := example()
	prof.Mounts = append(prof.Mounts, profile.Mount{Host: "/x", Sandbox: "/tmp", Origin: at(9)})
	_, err := Build(prof, resolution())
	if err == nil || !strings.Contains(err.Error(), "base and profile work:9 both mount at /tmp") {
		t.Errorf("got %v", err)
	}
}

func TestDecodeReadsBackWhatEncodeWrote(t *testing.T) {
	want := build(t, example())
	got, err := Decode("plan.json", want.Encode())
	must.Do(t, err)
	if !bytes.Equal(got.Encode(), want.Encode()) {
		t.Errorf("got %s, want %s", got.Encode(), want.Encode())
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := string(build(t, example()).Encode())
	for name, tc := range map[string]struct{ src, want string }{
		"a changed package":       {strings.Replace(good, "jq-bin", "jq-bad", 1), "does not fit its digest"},
		"a mount more":            {strings.Replace(good, `"mounts": [`, `"mounts": [{"kind":"bind","source":"/","destination":"/host","why":"base"},`, 1), "does not fit its digest"},
		"an unknown key":          {strings.Replace(good, `"system"`, `"sytem"`, 1), "unknown field"},
		"another version":         {strings.Replace(good, `"version": 3,`, `"version": 7,`, 1), "version 7; this claudebox reads version 3"},
		"no version":              {strings.Replace(good, `"version": 3,`, "", 1), "version 0; this claudebox"},
		"a value of another kind": {strings.Replace(good, `"state": "project"`, `"state": 3`, 1), "state is a number"},
		"a file cut short":        {good[:len(good)/2], "not JSON, or cut short"},
		"an empty file":           {"", "not JSON, or cut short"},
		"a second document":       {good + "{}", "more follows"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode("plan.json", []byte(tc.src))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "Go ") {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestAClosureOutsideTheStoreIsRefused(t *testing.T) {
	for _, path := range []string{"/etc", "/nix/store", "/nix/store/../../etc", "/nix/store/x/y", ""} {
		p := build(t, example())
		p.Pins.Closure = []string{path}
		if _, err := Decode("plan.json", p.Encode()); err == nil || !strings.Contains(err.Error(), "is no store path") {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

func FuzzDecodeThenEncodeGivesTheSameBytes(f *testing.F) {
	p, err := Build(example(), resolution())
	must.Do(f, err)
	f.Add(p.Encode())
	f.Fuzz(func(t *testing.T, src []byte) {
		first, err := Decode("fuzz", src)
		if err != nil {
			return
		}
		second, err := Decode("fuzz", first.Encode())
		if err != nil || !bytes.Equal(first.Encode(), second.Encode()) {
			t.Errorf("decode∘encode changed the plan: %v", err)
		}
	})
}
