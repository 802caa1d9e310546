//go:build lab

package sandbox_test

import (
	"strings"
	"testing"
)

// readable is what stands before the secrets that are told where nobody is asked.
const readable = "claudebox: secrets that can be read inside: "

// R12: with --yes, a profile that mounts ~/.ssh read-write, and a token that was let in by its name, entered in silence.
func TestASecretThatCanBeReadInsideIsToldWithYes(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".ssh/id", "a key\n")
	got := run(t, w.session("true", "-P", w.profile(t, "mounts: [{host: ~/.ssh, mode: rw, secret: true}]")))
	if want := readable + "~/.ssh"; got.status != 0 || !strings.Contains(got.stderr, want) {
		t.Errorf("a mount: %+v; want %q", got, want)
	}
	w.env["T"], w.env["COLOR"] = "ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO", "blue"
	w.env["CLAUDEBOX_EXTRA_ENV"] = "T,COLOR"
	got = run(t, w.session("true"))
	if want := readable + "T\n"; got.status != 0 || got.stderr != want {
		t.Errorf("a variable: %+v; want %q", got, want)
	}
}

// D19: every variable that was let in was called a secret, and who did what `check` said could not start any more.
func TestWhatIsNoSecretIsNotCalledOneAndTheRemedyWorks(t *testing.T) {
	w := newWorld(t)
	w.env["COLOR"], w.env["T"] = "blue", "ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO"
	profile := w.profile(t, "extra_env_passthrough: [COLOR, T]")
	found := oneLine(run(t, w.claudebox("check", "-P", profile)).stdout)
	if strings.Contains(found, "COLOR") || !strings.Contains(found, "T can be read inside") ||
		!strings.Contains(found, "take it out there (profile ") || !strings.Contains(found, "and name it under `secrets`") {
		t.Errorf("check says:\n%s", found)
	}
	if text := succeed(t, w.claudebox("why", "COLOR", "-P", profile)); strings.Contains(text, "secret") {
		t.Errorf("why says:\n%s", text)
	}
	profile = w.profile(t, "extra_env_passthrough: [COLOR]", "secrets: [{env: T, hosts: [example.com]}]")
	wantEqual(t, w.inside(t, `case $T in ghp_kZ3v*) echo read;; esac; echo $COLOR`, "-P", profile), "blue\n")
}
