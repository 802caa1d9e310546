package aftermath_test

import "testing"

// TestAFolderThatToolsLookForIsMadeAsALink: what tools run in it has other names where it really lies.
func TestAFolderThatToolsLookForIsMadeAsALink(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir -p .idea cfg; echo a >.idea/workspace.xml; ln -s cfg .cargo; ln -s cfg .husky")
	r := w.session(`echo b >cfg/tasks.json; ln -s cfg .vscode; mkdir sub; ln -s ../cfg sub/.claude; rm -r .idea; ln -s cfg .idea
		mkdir .config; ln -s ../cfg .config/mise; ln -s cfg plain; rm .cargo; ln -s . .cargo; ln -s $HOME/out .zed`)
	wantLines(t, r, "changed .cargo", "new .config/mise", "changed .husky", "new .idea", "removed .idea/workspace.xml",
		"new .vscode", "new .zed", "new sub/.claude")
}

// TestWhatALinkLeadsToIsChanged: the link itself stays as it was.
func TestWhatALinkLeadsToIsChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ user, agent, want string }{
		"a new file in a folder":     {"mkdir cfg; ln -s cfg .vscode", "echo b >cfg/tasks.json", "changed .vscode"},
		"a file in a folder":         {"mkdir cfg; echo a >cfg/x; ln -s cfg .vscode", "echo b >>cfg/x", "changed .vscode"},
		"the whole project":          {"ln -s . .vscode; echo a >x", "echo b >>x", "changed .vscode"},
		"a file that means nothing":  {"mkdir cfg; ln -s cfg .cargo", "echo b >cfg/notes", ""},
		"a file that means much":     {"mkdir cfg; ln -s cfg .cargo", "echo b >cfg/config.toml", "changed .cargo"},
		"one in a folder below":      {"mkdir -p a/cfg; ln -s cfg a/.claude", "mkdir a/cfg/hooks; echo b >a/cfg/hooks/x", "changed a/.claude"},
		"nothing was there":          {"ln -s cfg .vscode", "mkdir cfg; echo b >cfg/tasks.json", "new .vscode"},
		"a file":                     {"echo a >rc; ln -s rc .envrc", "echo b >>rc", "changed .envrc"},
		"a file that is told anyway": {"echo a >AGENTS.md; ln -s AGENTS.md CLAUDE.md", "echo b >>AGENTS.md", "changed AGENTS.md"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(c.user)
			var want []string
			if c.want != "" {
				want = append(want, c.want)
			}
			wantLines(t, w.session(c.agent), want...)
		})
	}
}

// TestAnEnvironmentIsChangedInPlace: the folder of the file does not show it.
func TestAnEnvironmentIsChangedInPlace(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir -p .venv/bin venv/bin node_modules/.bin; for f in .venv/bin/activate venv/bin/python node_modules/.bin/x; do echo a >$f; done")
	wantLines(t, w.session("touch .venv/x"))
	wantLines(t, w.session("for f in .venv/bin/activate venv/bin/python node_modules/.bin/x; do echo b >>$f; done"),
		"changed .venv/bin", "changed node_modules/.bin", "changed venv/bin")
}
