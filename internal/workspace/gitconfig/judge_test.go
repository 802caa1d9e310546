package gitconfig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"claudebox/internal/workspace/gitconfig"
)

func TestHarmlessSettingsStayByWhatTheySay(t *testing.T) {
	judge := gitconfig.Judge{
		Own:      func(gitconfig.Entry) bool { return false },
		Worktree: func(at string) bool { return at == "/mine" },
		Local:    func(at string) bool { return at == "/mine" },
	}
	for setting, stays := range map[string]bool{
		"remote.o.url=https://example.org/x":   true,
		"remote.o.url=ssh://git@example.org/x": true,
		"remote.o.url=git@example.org:x/y.git": true,
		"remote.o.url=/mine":                   true,
		"remote.o.url=file:///mine":            true,
		"remote.o.url=/other":                  false,
		"remote.o.url=../x":                    false,
		"remote.o.url=file:///other":           false,
		"remote.o.url=ext::sh -c x":            false,
		"remote.o.url=./a:b":                   false,
		"remote.o.url=-oProxyCommand=x":        false,
		"remote.o.url=x://y":                   false,
		"branch.m.remote=origin":               true,
		"branch.m.remote=/other":               false,
		"branch.m.remote=../x":                 false,
		"remote.pushdefault=origin":            true,
		"remote.pushdefault=/other":            false,
		"extensions.refstorage=reftable":       true,
		"extensions.refstorage=files:///x":     false,
		"core.protectntfs=false":               false,
		"core.protecthfs=true":                 true,
		"core.worktree=/x":                     false,
		"core.worktree=/mine":                  true,
		"core.fsmonitor=x":                     false,
		"filter.x.clean=x":                     false,
		"hook.x.command=x":                     false,
		"submodule.s.update=!x":                false,
		"include.path=x":                       false,
		"remote.o.fetch=+refs/*:refs/*":        true,
		"remote.o.vcs=x":                       false,
		"url.x.insteadof=y":                    false,
		"core.bare=false":                      true,
		"user.name=me":                         true,
		"core.sshcommand=x":                    false,
	} {
		key, value, _ := strings.Cut(setting, "=")
		parts := strings.Split(key, ".")
		text := "[" + parts[0] + "]\n"
		if len(parts) == 3 {
			text = "[" + parts[0] + " \"" + parts[1] + "\"]\n"
		}
		_, dropped := gitconfig.Harmless([]byte(text+"\t"+parts[len(parts)-1]+" = \""+value+"\"\n"), judge)
		if got := len(dropped) == 0; got != stays {
			t.Errorf("%s stays: %v, want %v", setting, got, stays)
		}
		own := judge
		own.Own = func(gitconfig.Entry) bool { return true }
		if _, dropped := gitconfig.Harmless([]byte(text+"\t"+parts[len(parts)-1]+" = \""+value+"\"\n"), own); len(dropped) > 0 {
			t.Errorf("%s was the user's, and goes", setting)
		}
	}
	if _, dropped := gitconfig.Harmless([]byte("[core]\n\tbare = false\n[x"), judge); !slices.Contains(dropped, "bad config line 3") {
		t.Errorf("a bad line stays: %q", dropped)
	}
}

// An agent fills a configuration with settings that go: each was compared with all before it, for minutes.
func TestAConfigurationOfManySettingsIsJudgedAtOnce(t *testing.T) {
	text := []byte("[z]\n")
	for n := range 100_000 {
		text = fmt.Appendf(text, "k%d=\n", n)
	}
	text = append(text, text...)
	nobodys := gitconfig.Judge{Own: func(gitconfig.Entry) bool { return false }}
	if _, dropped := gitconfig.Harmless(text, nobodys); len(dropped) != 100_000 {
		t.Errorf("%d went", len(dropped))
	}
}
