package usergit_test

import (
	"testing"

	"claudebox/internal/session/usergit"
)

// BenchmarkPick is what a launch pays for the identity: a user's file with a
// conditional include, from memory.
func BenchmarkPick(b *testing.B) {
	files := map[string]string{
		"/h/.gitconfig": "[user]\nname = A\n[includeIf \"gitdir:~/work/\"]\npath = ~/work.inc\n[alias]\nst = status\n", "/h/work.inc": "[user]\nemail = a@x\n",
	}
	src := usergit.Sources{
		Files: []string{"/h/.gitconfig"}, Home: "/h", Repo: usergit.Repo{Dirs: []string{"/h/work/p/.git"}},
		ReadFile:  func(name string) ([]byte, error) { return []byte(files[name]), nil },
		Canonical: func(name string) (string, error) { return name, nil },
	}
	for b.Loop() {
		id, err := usergit.Pick(src, lookup(nil))
		if err != nil || id.Email != "a@x" {
			b.Fatal(id, err)
		}
	}
}
