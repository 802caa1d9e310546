package launch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
)

// aPlan is as small as a plan can be that shows the rules of binding.
func aPlan(mounts ...plan.Mount) plan.Plan {
	return plan.Plan{
		Profile: "default",
		Network: plan.Network{Tier: "full"},
		Env: []plan.Env{
			{Name: "API_KEY", From: plan.FromHost, Secret: true, Why: "base"},
			{Name: "EDITOR", From: plan.FromHost, Why: "base"},
			{Name: "HOME", From: plan.FromMade, Value: "${home}", Why: "base"},
			{Name: "LITERAL", From: plan.FromConst, Value: "${home}", Why: "profile p:1"},
			{Name: "NIX_REMOTE", From: plan.FromMade, Value: "daemon", Why: "base"},
			{Name: "PWD", From: plan.FromMade, Value: "${cwd}", Why: "base"},
		},
		Mounts: mounts,
	}
}

func aHost() Host {
	return Host{
		Facts: host.Facts{
			Home: "/home/u", UID: 1000, GID: 100, User: "u", Group: "users",
			Env: host.Environment{"API_KEY=sk-secret-value-of-the-user", "EDITOR=vim", "OTHER=canary"},
		},
		Setting: Setting{
			Bwrap: "/store/bwrap", Env: "/store/env", Bash: "/store/bash", Shim: "/store/env", Project: "/home/u/src/p", Dir: "/home/u/src/p/sub",
			State: "/home/u/.claudebox/instances/1", Agent: Agent{Words: []string{"/store/agent", "--fixed"}}, Request: []string{"-p", "hi"},
			Seccomp: []byte{1},
		},
	}
}

var usual = []plan.Mount{
	{Kind: plan.Tmpfs, Destination: "/", Why: "base"},
	{Kind: plan.Tmpfs, Destination: "${home}", Why: "base"},
	{Kind: plan.Bind, Source: "${project}", Destination: "${project}", Why: "base"},
}

func bind(t *testing.T, p plan.Plan, h Host) Launch {
	t.Helper()
	l, err := tryBind(p, h)
	must.Do(t, err)
	return l
}

func asItIs(path string) (string, error) { return path, nil }

func tryBind(p plan.Plan, h Host) (l Launch, err error) {
	if h.Mounts, err = Mounts(p, h, asItIs); err != nil {
		return Launch{}, err
	}
	return Bind(p, h)
}

func env(l Launch) map[string]string {
	vars := map[string]string{}
	for _, v := range l.Env {
		vars[v.Name] = v.Value
	}
	return vars
}

func TestOnlyPlannedVariablesEnter(t *testing.T) {
	got := env(bind(t, aPlan(usual...), aHost()))
	want := map[string]string{
		"API_KEY": "sk-secret-value-of-the-user", "EDITOR": "vim", "HOME": "/home/u", "LITERAL": "${home}",
		"PWD": "/home/u/src/p/sub", "LANG": "C.UTF-8", "USER": "u",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s = %q, want %q", name, got[name], value)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("these entered too: %v", got)
	}
}

func TestAnAddedVariableHasAName(t *testing.T) {
	h := aHost()
	h.ExtraEnv = []string{"OTHER", "x}$(touch broken)${y", "1ST", "BASH_FUNC_f%%"}
	h.Facts.Env = append(h.Facts.Env, "x}$(touch broken)${y=1", "1ST=1", "BASH_FUNC_f%%=() { :; }")
	got := env(bind(t, aPlan(), h))
	if got["OTHER"] != "canary" || len(got) != 8 {
		t.Errorf("got %q", got)
	}
}

func TestAnEditorThatIsNotInsideIsDroppedAndGitDoesNotWaitForIt(t *testing.T) {
	h := aHost()
	h.Overrides = map[string]Override{"EDITOR": {Drop: true}}
	got := env(bind(t, aPlan(usual...), h))
	if value, entered := got["EDITOR"]; entered || got["GIT_EDITOR"] != "true" {
		t.Errorf("EDITOR=%q (entered %v), GIT_EDITOR=%q", value, entered, got["GIT_EDITOR"])
	}
}

func TestSecretsAreShownMaskedAndAsNames(t *testing.T) {
	l := bind(t, aPlan(usual...), aHost())
	argv, err := l.Argv()
	must.Do(t, err)
	script, err := l.Script()
	must.Do(t, err)
	for _, v := range l.Env {
		argv += v.Masked()
	}
	if strings.Contains(argv+script, "secret-value") {
		t.Errorf("the key is shown in\n%s\n%s", argv, script)
	}
	if !strings.Contains(script, `--setenv API_KEY "${API_KEY-}"`) {
		t.Errorf("the script does not name the variable:\n%s", script)
	}
}

func TestWhatIsProbablyASecretIsMarkedAndUnaskedForStaysOutside(t *testing.T) {
	token := "ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO"
	p, h := aPlan(usual...), aHost()
	p.Env = append(p.Env, plan.Env{Name: "PROXY", From: plan.FromConst, Value: "http://me:hunter2@proxy", Why: "profile p:2"})
	h.Facts.Env = append(host.Environment{"EDITOR=" + token}, h.Facts.Env...)
	h.ExtraEnv = []string{"OTHER", "PLAIN"}
	h.Facts.Env = append(h.Facts.Env, "PLAIN="+token)
	l := bind(t, p, h)
	var secret []string
	for _, v := range l.Env {
		if v.Secret {
			secret = append(secret, v.Name)
		}
	}
	if want := []string{"API_KEY", "PLAIN", "PROXY"}; !slices.Equal(secret, want) {
		t.Errorf("secret are %q, want %q", secret, want)
	}
	for _, v := range l.Env { // D19: one that was let in by its name is no secret for that, and may be one all the same
		if v.Name == "OTHER" && (v.Value == "" || v.Masked() == v.Value) {
			t.Errorf("OTHER is shown as %q", v.Masked())
		}
	}
	warnings := []string{
		"PROXY enters (profile p:2), and is probably a secret: an address with a password",
	}
	if slices.ContainsFunc(l.Env, func(v Variable) bool { return v.Name == "EDITOR" }) || len(l.Left) != 1 ||
		!l.Left[0].Red || !strings.HasPrefix(l.Left[0].Text, "EDITOR does not enter: it is probably a secret (a GitHub") {
		t.Errorf("EDITOR: %v", l.Left)
	}
	notes := []string{"PLAIN is probably a GitHub personal token"}
	if !slices.Equal(l.Warnings, warnings) || !slices.Equal(l.Notes, notes) {
		t.Errorf("warnings %q and notes %q, want %q and %q", l.Warnings, l.Notes, warnings, notes)
	}
}

func TestParentsOfTheProjectBelowHomeAreReadOnly(t *testing.T) {
	l := bind(t, aPlan(usual...), aHost())
	if want := []string{"/home/u/src", "/"}; !slices.Equal(l.ReadOnly, want) {
		t.Errorf("read-only are %q, want %q", l.ReadOnly, want)
	}
	h := aHost()
	h.Project = "/home/u/p"
	if got := bind(t, aPlan(usual...), h).ReadOnly; !slices.Equal(got, []string{"/"}) {
		t.Errorf("home itself must stay writable, read-only are %q", got)
	}
}

func TestNothingIsMadeInAFolderOfTheHost(t *testing.T) {
	for _, kind := range []plan.MountKind{plan.File, plan.Symlink, plan.Tmpfs} {
		for _, folder := range []plan.MountKind{plan.Bind, plan.ROBind} {
			_, err := tryBind(aPlan(append(usual,
				plan.Mount{Kind: folder, Source: "/srv/bin", Destination: "/bin", Why: "profile p:1"},
				plan.Mount{Kind: kind, Source: "/store/bash", Destination: "/bin/sh", Why: "base"})...), aHost())
			if err == nil {
				t.Errorf("a %s is made in a %s of the host", kind, folder)
			}
		}
	}
}

func TestALinkAboveAMountIsLeftOut(t *testing.T) {
	h := aHost()
	h.Project, h.Dir = "/home/u/go/src/p", "/home/u/go/src/p"
	l := bind(t, aPlan(append(usual,
		plan.Mount{Kind: plan.Symlink, Source: "${home}/.cache/home-go", Destination: "${home}/go", Why: "base"},
		plan.Mount{Kind: plan.Symlink, Source: "${home}/.cache/home-gopher", Destination: "${home}/gopher", Why: "base"},
	)...), h)
	at := func(destination string) plan.MountKind {
		i := slices.IndexFunc(l.Mounts, func(m Mount) bool { return m.Destination == destination })
		if i < 0 {
			return ""
		}
		return l.Mounts[i].Kind
	}
	if at("/home/u/go") != plan.Dir || at("/home/u/gopher") != plan.Symlink {
		t.Errorf("~/go is %q, ~/gopher is %q", at("/home/u/go"), at("/home/u/gopher"))
	}
	if slices.Contains(l.ReadOnly, "/home/u/go") {
		t.Error("~/go is read-only: go has to keep its modules there")
	}
}

func TestTwoMountsAtOnePlaceAreRefused(t *testing.T) {
	h := aHost()
	h.Mounts = []Mount{{Kind: plan.ROBind, Source: "/x", Destination: "/home/u/src/p", Why: "--mount-ro"}}
	_, err := tryBind(aPlan(usual...), h)
	if err == nil || !strings.Contains(err.Error(), "--mount-ro") {
		t.Errorf("got %v", err)
	}
}

// An agent can make any number of repositories, of which each costs mounts.
func TestMoreMountsThanLinuxMakesAreRefusedAtOnce(t *testing.T) {
	list := []Mount{{Kind: plan.Bind, Source: "/p", Destination: "/p"}}
	for n := range mostMounts - 2 {
		at := fmt.Sprintf("/p/%06d", n)
		list = append(list, Mount{Kind: plan.Bind, Source: at, Destination: at, Why: "git runs what it names", Open: true})
	}
	expect.Linear(t, len(list), func(many int) {
		if all, err := place(list[:many]); err != nil || len(all) != many || all[9].Point.Root != "/p" {
			t.Errorf("%d mounts, %v", len(all), err)
		}
	})
	_, err := place(append(list, Mount{Kind: plan.Bind, Source: "/p/x", Destination: "/p/x"}, Mount{Kind: plan.Bind, Source: "/p/y", Destination: "/p/y"}))
	if err == nil || !strings.Contains(err.Error(), "80001 mounts are needed, /p/y") ||
		diag.Remedy(err) != "remove what you did not make there, such as repositories of git" {
		t.Errorf("got %v", err)
	}
	if _, err := place(list[:len(list)/2]); err != nil {
		t.Errorf("after the remedy: %v", err)
	}
}

func TestAMountPointInAWritableFolderMustBeThereAlready(t *testing.T) {
	h := aHost()
	h.Mounts = []Mount{
		{Kind: plan.ROBind, Source: "/x", Destination: "/home/u/src/p/a/b", Open: true, Why: "--mount-ro"},
		{Kind: plan.ROBind, Source: "/y", Destination: "/home/u/other", Open: true, Why: "--mount-ro"},
	}
	for _, m := range bind(t, aPlan(usual...), h).Mounts {
		switch m.Destination {
		case "/home/u/src/p/a/b":
			if (m.Point != Place{Root: "/home/u/src/p", Path: "a/b"}) {
				t.Errorf("the point of %s is %+v", m.Destination, m.Point)
			}
		default:
			if m.Point != (Place{}) {
				t.Errorf("the point of %s is %+v, want none", m.Destination, m.Point)
			}
		}
	}
}

func TestTheAgentIsRunAsItIsAndACommandIsLookedUp(t *testing.T) {
	h := aHost()
	want := []string{"/store/agent", "--fixed", "-p", "hi"}
	if got := bind(t, aPlan(usual...), h).Command; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	h.Agent.LookUp = true
	if got, want := bind(t, aPlan(usual...), h).Command, append([]string{"/store/env", "--"}, want...); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// In tier none no placeholder stands for a secret.
func TestAnArgumentWithASecretThatNothingUsesIsRefused(t *testing.T) {
	h := aHost()
	h.Request, h.Kept = []string{"--key=secret-value"}, []Kept{{Name: "KEY", Value: "secret-value"}}
	if _, err := Bind(aPlan(), h); err == nil || strings.Contains(err.Error(), "secret-value") {
		t.Errorf("got %v", err)
	}
	h.Request = nil // as the remedy says
	bind(t, aPlan(), h)
}

func TestUserSourcesAreHandedOverAsDescriptors(t *testing.T) {
	l := bind(t, aPlan(append(usual, plan.Mount{Kind: plan.ROBind, Source: "/nix/store", Destination: "/nix/store", Why: "base"})...), aHost())
	argv, err := l.Argv()
	must.Do(t, err)
	expect.Contains(t, argv, "--bind-fd 5 /home/u/src/p\n", "# 5: /home/u/src/p\n", "--ro-bind /nix/store /nix/store\n")
}

func TestMoreWordsThanBwrapTakesAreRefused(t *testing.T) {
	h := aHost()
	for i := range 3000 {
		h.Mounts = append(h.Mounts, Mount{Kind: plan.ROBind, Source: "/x", Destination: "/m/" + strings.Repeat("x", i+1)})
	}
	_, _, err := bind(t, aPlan(usual...), h).Words()
	if err == nil || !strings.Contains(err.Error(), "bwrap takes 9000") {
		t.Errorf("got %v", err)
	}
}

func TestMaskShowsNoneOfAShortSecret(t *testing.T) {
	for secret, want := range map[string]string{
		"": "••••", "hunter2": "••••", "sk-ant-0123456789abcdef": "sk-a••••ef",
	} {
		if got := mask(secret); got != want {
			t.Errorf("mask(%q) = %q, want %q", secret, got, want)
		}
	}
}

func TestQuoteMakesOneWord(t *testing.T) {
	for in, want := range map[string]string{
		"": "''", "a b": "'a b'", "it's": `'it'\''s'`, "/nix/store/x-1.0": "/nix/store/x-1.0", "$(id)": "'$(id)'", "~": "'~'",
		"a\nrm -rf ~":        `$'a\x0arm -rf ~'`,
		"\x1b]0;x\a it's \\": `$'\x1b]0;x\x07 it\'s \\'`,
		"abc\u202ecod.exe":   `$'abc\xe2\x80\xaecod.exe'`,
		"a\u3164b\t":         `$'a\xe3\x85\xa4b\x09'`,
		"Größe":              "'Größe'",
		"\xff":               `$'\xff'`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAScriptHasNoLineThatANameMade(t *testing.T) {
	h := aHost()
	h.Project = "/home/u/a\ntouch /tmp/broken #"
	h.Dir = h.Project
	h.Mounts = []Mount{
		{Kind: plan.ROData, Source: h.Project + "/f\nfalse", Destination: h.Project + "/f\nfalse", Data: []byte("text\n")},
		{Kind: plan.ROData, Source: h.Project + "/g\nfalse", Destination: h.Project + "/g\nfalse", Data: []byte{1}},
	}
	text, err := bind(t, aPlan(usual...), h).Script()
	must.Do(t, err)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "touch") || strings.HasPrefix(line, "false") {
			t.Errorf("a name became the line %q of\n%s", line, text)
		}
	}
}

// bwrap takes a number of words: single files are too many, the folder that has them is not.
func TestAWholeFolderTakesFewerWordsThanItsFiles(t *testing.T) {
	l := bind(t, aPlan(usual...), aHost())
	few := slices.Clone(l.Mounts)
	for n := range maxWords / 3 {
		at := fmt.Sprintf("/data/%d", n)
		l.Mounts = append(l.Mounts, Mount{Kind: plan.ROBind, Source: at, Destination: at, Why: "--mount-ro"})
	}
	if _, _, err := l.Words(); diag.Remedy(err) != "mount whole folders instead of single files" {
		t.Errorf("got %v", err)
	}
	l.Mounts = append(few, Mount{Kind: plan.ROBind, Source: "/data", Destination: "/data", Why: "--mount-ro"})
	if _, _, err := l.Words(); err != nil {
		t.Errorf("after the remedy: %v", err)
	}
}
