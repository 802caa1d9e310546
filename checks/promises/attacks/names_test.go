//go:build lab

package attacks_test

import (
	"strings"
	"testing"
	"unicode"

	"claudebox/checks/kit/must"
)

// Names of folders that end a line, order the terminal about, turn text
// around, or hide.
var hostileNames = []string{
	"a\ntouch broken #", "b'\ntouch broken\n'", "c$(touch broken)", "d`touch broken`", "e\x1b]0;title\x07", "f\x1b[2J", "g\u202egnp.exe",
	"h\u200bi", "j k", "l\"m", "n=o", "-p", "q\\", "r\u009b2J",
	"s\nCLAUDEBOX_SCRIPT\ntouch broken\n", "t\nCLAUDEBOX_FILE\ntouch broken\n",
}

func TestAFoldersNameIsRunAsALineOfTheScript(t *testing.T) {
	for _, name := range hostileNames {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).in(name)
			script := w.claudebox("plan", "--format", "sh", "--", "--version")
			if script.status != 0 {
				t.Fatal(script)
			}
			w.write("script", script.stdout)
			w.write("project/empty", "")
			host := w.in("project")
			host.run(nil, "sh", w.path("script"))
			if host.exists("project/broken") || w.in(name).exists(name+"/broken") {
				t.Errorf("the name was run as a command\n%s", script.stdout)
			}
		})
	}
}

func TestAFoldersNameOrdersTheTerminalAbout(t *testing.T) {
	for _, name := range hostileNames {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).in(name)
			for _, format := range []string{"text", "argv", "sh"} {
				wantSeen(t, w.claudebox("plan", "--format", format))
			}
			wantSeen(t, w.claudebox("check"))
			wantSeen(t, w.claudebox("shell", "--dry-run", "--", "true"))
			must.Write(t, w.project+"/.git", "gitdir: "+w.project+"/x")
			wantSeen(t, w.claudebox("plan"))
		})
	}
}

// wantSeen is for text on a terminal.
func wantSeen(t *testing.T, got outcome) {
	t.Helper()
	for _, r := range got.stdout + got.stderr {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%q is printed as it is\n%s", r, strings.ToValidUTF8(got.String(), "?"))
			return
		}
	}
}

func TestAFoldersNameIsAnOptionOfBwrap(t *testing.T) {
	for _, name := range hostileNames {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).in(name)
			if got := w.attack("pwd"); got.stdout != w.project+"\n" {
				t.Error(got)
			}
		})
	}
}
