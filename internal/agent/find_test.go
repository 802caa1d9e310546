package agent_test

import (
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent"
	"claudebox/internal/linux/pathname"
)

// Places that the tests speak of.
const (
	versions = "/home/u/.local/share/claude/versions/2.1"
	npm      = "/home/u/.npm-global/lib/node_modules"
)

// request is that of a user whose project is /home/u/p.
func request(change func(*agent.Request)) agent.Request {
	r := agent.Request{
		Name: "claude", Home: "/home/u", Path: "/home/u/.local/bin:/usr/bin", Project: "/home/u/p", UID: user, GID: user,
	}
	if change != nil {
		change(&r)
	}
	return r
}

// installed is what Claude Code's own installer leaves, on top of a host.
func installed(content string) map[string]string {
	return map[string]string{versions: content, "/home/u/.local/bin/claude": "->../share/claude/versions/2.1"}
}

// hostLibraries are the mounts of a Debian host's libraries.
var hostLibraries = []string{"symlink usr/lib /lib", "symlink usr/lib64 /lib64", "ro-bind /usr/lib", "ro-bind /usr/lib64"}

// want is what a lookup gives: the words, the mounts as one line each.
type want struct {
	words     string
	mounts    []string
	note      string // one of the notes holds it
	libraries bool
}

func TestFindLooksInOrder(t *testing.T) {
	files := merge(debian(installed(program("", ""))), map[string]string{
		"/nix/store/a-claude/bin/claude":       "x",
		"/nix/store/b-claude-code/bin/claude":  "x",
		"/nix/store/c-codex/bin/codex":         "x",
		"/opt/codex/codex":                     program("", ""),
		"/run/current-system/sw/bin":           "->/nix/store/s-system-path/bin",
		"/nix/store/s-system-path/bin/claude":  "->/nix/store/b-claude-code/bin/claude",
		"/nix/store/s-system-path/bin/ls":      "->/nix/store/d-coreutils/bin/ls",
		"/nix/store/d-coreutils/bin/ls":        "->coreutils",
		"/nix/store/d-coreutils/bin/coreutils": "x",
		"/home/u/p/bin/claude":                 program("", ""),
		"/bin/claude":                          program("", ""),
	})
	installer := []string{"ro-bind " + versions}
	for name, tc := range map[string]struct {
		change func(*agent.Request)
		want   want
	}{
		"the profile's command, with its words": {
			func(r *agent.Request) { r.Command = []string{"/opt/codex/codex", "--yolo"} },
			want{words: "/opt/codex/codex --yolo", mounts: []string{"ro-bind /opt/codex/codex"}},
		},
		"a command below home": {
			func(r *agent.Request) { r.Command, r.Home = []string{"~/.local/bin/claude"}, "/home/u" },
			want{words: versions, mounts: installer},
		},
		"a program of the profile's packages before the manifest's": {
			func(r *agent.Request) {
				r.Inside, r.Pinned = []string{"/nix/store/a-claude/bin"}, "/nix/store/b-claude-code/bin/claude"
			},
			want{words: "/nix/store/a-claude/bin/claude"},
		},
		"the manifest's before PATH": {
			func(r *agent.Request) { r.Pinned = "/nix/store/b-claude-code/bin/claude" },
			want{words: "/nix/store/b-claude-code/bin/claude"},
		},
		"the manifest's agent is not taken for another": {
			func(r *agent.Request) {
				r.Name, r.Pinned, r.Path = "codex", "/nix/store/b-claude-code/bin/claude", "/nix/store/c-codex/bin"
			},
			want{words: "/nix/store/c-codex/bin/codex"},
		},
		"PATH, to the end of its links": {
			nil, want{words: versions, mounts: installer},
		},
		"PATH of NixOS, to the package and not to the system's link farm": {
			func(r *agent.Request) { r.Path = "/run/current-system/sw/bin" },
			want{words: "/nix/store/b-claude-code/bin/claude"},
		},
		"a program of many names keeps the one it was called by": {
			func(r *agent.Request) { r.Name, r.Path = "ls", "/run/current-system/sw/bin" },
			want{words: "/nix/store/d-coreutils/bin/ls"},
		},
		"a folder of the project on PATH is passed over, and said so": {
			func(r *agent.Request) { r.Path = "/home/u/p/bin:" + r.Path },
			want{words: versions, mounts: installer, note: "/home/u/p/bin/claude is passed over"},
		},
		"relative and empty folders of PATH count for nothing": {
			func(r *agent.Request) { r.Path = "bin::.:" + r.Path },
			want{words: versions, mounts: installer},
		},
	} {
		t.Run(name, func(t *testing.T) { check(t, files, request(tc.change), tc.want) })
	}
}

func TestFindMountsWhatAProgramOutsideTheStoreNeeds(t *testing.T) {
	claude := npm + "/@anthropic-ai/claude-code"
	script := map[string]string{
		claude + "/cli.js": "#!/usr/bin/env node\n", "/home/u/.local/bin/claude": "->" + claude + "/cli.js",
	}
	node := map[string]string{"/usr/bin/node": program("", "")}
	for name, tc := range map[string]struct {
		files  map[string]string
		change func(*agent.Request)
		want   want
	}{
		"the installer's program: itself and the host's libraries": {
			debian(installed(program(loader64, ""))), nil,
			want{words: versions, mounts: append([]string{"ro-bind " + versions}, hostLibraries...), libraries: true},
		},
		"library folders that are no links are mounted as folders": {
			split(installed(program(loader64, ""))), nil,
			want{words: versions, mounts: []string{"ro-bind " + versions, "ro-bind /lib", "ro-bind /lib64", "ro-bind /usr/lib"}, libraries: true},
		},
		"a library folder that leads elsewhere, as what is there; one that leads nowhere, not at all": {
			merge(installed(program(loader64, "")), map[string]string{
				"/lib": "->/nowhere", "/lib64": "->/opt/lib64", "/opt/lib64/ld-linux-x86-64.so.2": code, "/usr/lib/x.so": code,
			}), nil,
			want{words: versions, mounts: []string{"ro-bind " + versions, "ro-bind /opt/lib64 /lib64", "ro-bind /usr/lib"}, libraries: true},
		},
		"nothing of the host for a static program": {
			debian(installed(program("", ""))), nil, want{words: versions, mounts: []string{"ro-bind " + versions}},
		},
		"nothing of the host for a program patched for Nix": {
			debian(installed(program("/nix/store/g-glibc/lib/ld.so", ""))), nil,
			want{words: versions, mounts: []string{"ro-bind " + versions}},
		},
		"the plan's loader where the host's is a link to the store, as on NixOS": {
			nixos(installed(program(loader64, ""))), func(r *agent.Request) { r.PlanHasLoader = true },
			want{words: versions, mounts: []string{"ro-bind " + versions}},
		},
		"the plan's loader where the host has none": {
			installed(program(loader64, "")), func(r *agent.Request) { r.PlanHasLoader = true },
			want{words: versions, mounts: []string{"ro-bind " + versions}},
		},
		"a loader in a place of its own, alone": {
			debian(merge(installed(program("/opt/glibc/ld.so", "")), map[string]string{"/opt/glibc/ld.so": code})), nil,
			want{words: versions, mounts: append([]string{"ro-bind /opt/glibc/ld.so", "ro-bind " + versions}, hostLibraries...), libraries: true},
		},
		"libraries of its own, one by one and not their folder": {
			debian(merge(installed(program(loader64, "$ORIGIN/../lib:relative:/nowhere")), map[string]string{
				"/home/u/.local/share/claude/lib/libx.so": "->libx.so.1", "/home/u/.local/share/claude/lib/libx.so.1": code,
				"/home/u/.local/share/claude/lib/secret": code,
			})), nil,
			want{words: versions, libraries: true, mounts: append([]string{
				"ro-bind " + versions,
				"ro-bind /home/u/.local/share/claude/lib/libx.so.1 /home/u/.local/share/claude/lib/libx.so",
			}, hostLibraries...)},
		},
		"npm's program: its package": {
			debian(map[string]string{claude + "/bin/claude.exe": program("", ""), "/home/u/.local/bin/claude": "->" + claude + "/bin/claude.exe"}), nil,
			want{words: claude + "/bin/claude.exe", mounts: []string{"ro-bind " + claude}},
		},
		"npm's script: its package, run by the manifest's node": {
			script, func(r *agent.Request) { r.Node = "/nix/store/n-nodejs/bin/node" },
			want{words: "/nix/store/n-nodejs/bin/node " + claude + "/cli.js", mounts: []string{"ro-bind " + claude}},
		},
		"npm's script: a node of the profile's packages goes before the manifest's": {
			merge(script, map[string]string{"/nix/store/m-nodejs/bin/node": "x"}),
			func(r *agent.Request) {
				r.Node, r.Inside = "/nix/store/n-nodejs/bin/node", []string{"/nix/store/m-nodejs/bin"}
			},
			want{words: "/nix/store/m-nodejs/bin/node " + claude + "/cli.js", mounts: []string{"ro-bind " + claude}},
		},
		"npm's script: the host's node when there is no other": {
			merge(script, node), nil,
			want{words: "/usr/bin/node " + claude + "/cli.js", mounts: []string{"ro-bind " + claude, "ro-bind /usr/bin/node"}},
		},
		"env -S keeps its words": {
			merge(script, merge(node, map[string]string{claude + "/cli.js": "#!/usr/bin/env -S node --no-warnings --x\n"})), nil,
			want{words: "/usr/bin/node --no-warnings --x " + claude + "/cli.js", mounts: []string{"ro-bind " + claude, "ro-bind /usr/bin/node"}},
		},
		"npm's script with dependencies beneath it: its package": {
			merge(script, merge(node, map[string]string{
				claude + "/package.json":         `{"dependencies":{"ws":"1"},"optionalDependencies":{"absent":"1"}}`,
				claude + "/node_modules/ws/a.js": "x",
				npm + "/ws/a.js":                 "another version",
			})), nil,
			want{words: "/usr/bin/node " + claude + "/cli.js", mounts: []string{"ro-bind " + claude, "ro-bind /usr/bin/node"}},
		},
		"npm's script with dependencies beside it: the folder of packages": {
			merge(script, merge(node, map[string]string{
				claude + "/package.json": `{"dependencies":{"ws":"1"}}`, npm + "/ws/a.js": "x",
			})), nil,
			want{words: "/usr/bin/node " + claude + "/cli.js", mounts: []string{"ro-bind " + npm, "ro-bind /usr/bin/node"}},
		},
		"pnpm's script: the folder that its links stay in": {
			merge(node, map[string]string{
				"/home/u/pnpm/.pnpm/c@1/node_modules/c/cli.js": "#!/usr/bin/env node\n",
				"/home/u/.local/bin/claude":                    "->/home/u/pnpm/.pnpm/c@1/node_modules/c/cli.js",
			}), nil,
			want{words: "/usr/bin/node /home/u/pnpm/.pnpm/c@1/node_modules/c/cli.js", mounts: []string{"ro-bind /home/u/pnpm/.pnpm", "ro-bind /usr/bin/node"}},
		},
		"a script that starts one program stands for it": {
			map[string]string{
				"/home/u/.local/bin/claude": "#!/bin/bash\n# made by the installer\n\nexec \"" + versions + "\" \"$@\"\n",
				versions:                    program("", ""),
			},
			nil,
			want{words: versions, mounts: []string{"ro-bind " + versions}},
		},
		"pnpm's shim: what it starts, by the node inside": {
			merge(script, merge(node, map[string]string{"/home/u/.local/bin/claude": pnpmShim, "/home/u/.local/bin/global/5/node_modules/@anthropic-ai/claude-code/cli.js": "#!/usr/bin/env node\n"})),
			func(r *agent.Request) { r.Node = "/nix/store/n-nodejs/bin/node" },
			want{words: "/nix/store/n-nodejs/bin/node /home/u/.local/bin/global/5/node_modules/@anthropic-ai/claude-code/cli.js", mounts: []string{"ro-bind /home/u/.local/bin/global/5/node_modules/@anthropic-ai/claude-code"}},
		},
		"the shim of a pnpm that takes itself for a node": {
			map[string]string{
				"/home/u/.local/bin/claude":      strings.Replace(pnpm10Shim, `"$basedir/global`, `"/home/u/.local/share/pnpm/pnpm"  "$basedir/global`, 1),
				"/home/u/.local/share/pnpm/pnpm": program("", ""), "/home/u/.local/bin/global/5/.pnpm/@a+c@2.1/node_modules/@a/c/bin/claude.exe": program("", ""),
			},
			nil,
			want{words: "/home/u/.local/bin/global/5/.pnpm/@a+c@2.1/node_modules/@a/c/bin/claude.exe", mounts: []string{"ro-bind /home/u/.local/bin/global/5/.pnpm"}},
		},
		"pnpm 10's shim of a program that is no script": {
			map[string]string{"/home/u/.local/bin/claude": pnpm10Shim, "/home/u/.local/bin/global/5/.pnpm/@a+c@2.1/node_modules/@a/c/bin/claude.exe": program("", "")},
			nil,
			want{words: "/home/u/.local/bin/global/5/.pnpm/@a+c@2.1/node_modules/@a/c/bin/claude.exe", mounts: []string{"ro-bind /home/u/.local/bin/global/5/.pnpm"}},
		},
		"a wrapper with variables and words": {
			merge(installed(program("", "")), map[string]string{"/home/u/.local/bin/claude": "#!/bin/bash\nset -euo pipefail\nexport ANTHROPIC_MODEL=\"opus\"\nBIN=$HOME/.local/share/claude/versions\nexec \"$BIN/2.1\" --verbose \"$@\"\n"}),
			func(r *agent.Request) { r.Home = "/home/u" },
			want{words: versions + " --verbose", mounts: []string{"ro-bind " + versions}},
		},
		"a wrapper beside its program": {
			merge(installed(program("", "")), map[string]string{"/home/u/.local/bin/claude": "->../share/claude/run", "/home/u/.local/share/claude/run": "#!/bin/sh\nhere=$(cd \"$(dirname \"$(readlink -f \"$0\")\")\" && pwd)\n\"$here/versions/2.1\" \"$@\"\n"}),
			nil,
			want{words: versions, mounts: []string{"ro-bind " + versions}},
		},
		"another shell script runs by the sandbox's shell, with a note": {
			map[string]string{"/home/u/.local/bin/claude": "#!/bin/sh\ncd /\nexec /bin/true \"$@\"\n", "/nix/store/b-bash/bin/sh": "x"},
			func(r *agent.Request) { r.Inside = []string{"/nix/store/b-bash/bin"} },
			want{words: "/nix/store/b-bash/bin/sh /home/u/.local/bin/claude", mounts: []string{"ro-bind /home/u/.local/bin/claude"}, note: "shell script"},
		},
		"a script's interpreter by its path, with its one argument": {
			map[string]string{"/home/u/.local/bin/claude": "#! /usr/bin/python3 -I -B\n", "/usr/bin/python3": "->python3.13", "/usr/bin/python3.13": program("", "")},
			nil,
			want{words: "/usr/bin/python3.13 -I -B /home/u/.local/bin/claude", mounts: []string{"ro-bind /home/u/.local/bin/claude", "ro-bind /usr/bin/python3.13"}},
		},
		"an interpreter in a package: the file alone, since the script chose its path": {
			map[string]string{"/home/u/.local/bin/claude": "#!/home/u/w/node_modules/x/run\n", "/home/u/w/node_modules/x/run": program("", "")},
			nil,
			want{words: "/home/u/w/node_modules/x/run /home/u/.local/bin/claude", mounts: []string{"ro-bind /home/u/.local/bin/claude", "ro-bind /home/u/w/node_modules/x/run"}},
		},
		"what lies in another mount is not mounted again": {
			debian(map[string]string{
				"/usr/bin/claude": "->../lib/node_modules/c/cli.js", "/usr/lib/node_modules/c/cli.js": "#!/usr/bin/env node\n",
				"/usr/bin/node": program(loader64, ""),
			}), nil,
			want{words: "/usr/bin/node /usr/lib/node_modules/c/cli.js", mounts: append([]string{"ro-bind /usr/bin/node"}, hostLibraries...), libraries: true},
		},
		"a path that env would take for a variable is bound at another": {
			map[string]string{"/home/u/a=b/claude=x": program("", ""), "/home/u/.local/bin/claude": "->/home/u/a=b/claude=x"},
			nil,
			want{words: "/run/claudebox/agent/claude_x", mounts: []string{"ro-bind /home/u/a=b/claude=x", "ro-bind /home/u/a=b/claude=x /run/claudebox/agent/claude_x"}},
		},
		"so is one of the store": {
			map[string]string{"/nix/store/a-x=y/bin/claude": "x", "/home/u/.local/bin/claude": "->/nix/store/a-x=y/bin/claude"},
			nil,
			want{words: "/run/claudebox/agent/claude", mounts: []string{"ro-bind /nix/store/a-x=y/bin/claude /run/claudebox/agent/claude"}},
		},
	} {
		t.Run(name, func(t *testing.T) { check(t, tc.files, request(tc.change), tc.want) })
	}
}

func TestThePlansLoaderGivesWayToTheHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		want    bool
	}{
		"the host's libraries are mounted": {program(loader64, ""), true},
		"they are not":                     {program("", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(nil)
			r.Files = newTree(debian(installed(tc.content)), nil)
			got, err := agent.Find(r)
			must.Do(t, err)
			displaces := func(name string) bool {
				return slices.ContainsFunc(got.Mounts, func(m agent.Mount) bool { return pathname.Below(name, m.Destination) })
			}
			if displaced := displaces(loader64); displaced != tc.want || displaced != got.Libraries {
				t.Errorf("%s is displaced: %v, want %v; libraries: %v", loader64, displaced, tc.want, got.Libraries)
			}
			if displaces("/bin/bash") {
				t.Error("/bin/bash is displaced")
			}
		})
	}
}

// check compares a lookup on a host of these files with what is wanted.
func check(t *testing.T, files map[string]string, r agent.Request, want want) {
	t.Helper()
	r.Files = newTree(files, nil)
	got, err := agent.Find(r)
	must.Do(t, err)
	if words := strings.Join(append([]string{got.Path}, got.Args...), " "); words != want.words {
		t.Errorf("words:\n got %s\nwant %s", words, want.words)
	}
	slices.Sort(want.mounts)
	if mounts := lines(got.Mounts); !slices.Equal(mounts, want.mounts) {
		t.Errorf("mounts:\n got %s\nwant %s", strings.Join(mounts, "\n     "), strings.Join(want.mounts, "\n     "))
	}
	if !strings.Contains(strings.Join(got.Notes, "\n"), want.note) {
		t.Errorf("notes %q; one should hold %q", got.Notes, want.note)
	}
	if got.Libraries != want.libraries {
		t.Errorf("libraries of the host: %v, want %v", got.Libraries, want.libraries)
	}
	if store := len(want.mounts) == 0; got.Store != store && !strings.Contains(want.mounts[0], "/nix/store") {
		t.Errorf("of the store: %v, want %v", got.Store, store)
	}
}

// lines are mounts, one a line, sorted; a destination that is the source is
// left out.
func lines(mounts []agent.Mount) []string {
	var list []string
	for _, m := range mounts {
		line := kind(m) + " " + m.Source
		if m.Source != m.Destination {
			line += " " + m.Destination
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}

// kind is bwrap's word for a mount.
func kind(m agent.Mount) string {
	if m.Link {
		return "symlink"
	}
	return "ro-bind"
}

// pnpm10Shim is what pnpm 10.34 writes for a program that is no script.
const pnpm10Shim = `#!/bin/sh
basedir=$(dirname "$(echo "$0" | sed -e 's,\\,/,g')")

case ` + "`uname`" + ` in
    *CYGWIN*|*MINGW*|*MSYS*)
        if command -v cygpath > /dev/null 2>&1; then
            basedir=` + "`cygpath -w \"$basedir\"`" + `
        fi
    ;;
esac

if [ -z "$NODE_PATH" ]; then
  export NODE_PATH="/home/u/x/node_modules"
else
  export NODE_PATH="/home/u/x/node_modules:$NODE_PATH"
fi
"$basedir/global/5/.pnpm/@a+c@2.1/node_modules/@a/c/bin/claude.exe"   "$@"
exit $?
`

// pnpmShim is what pnpm 9 writes for a program.
const pnpmShim = `#!/bin/sh
basedir=$(dirname "$(echo "$0" | sed -e 's,\\,/,g')")

case ` + "`uname`" + ` in
    *CYGWIN*) basedir=` + "`cygpath -w \"$basedir\"`" + `;;
esac

if [ -z "$NODE_PATH" ]; then
  export NODE_PATH="/home/u/x/node_modules"
else
  export NODE_PATH="/home/u/x/node_modules:$NODE_PATH"
fi
if [ -x "$basedir/node" ]; then
  exec "$basedir/node"  "$basedir/global/5/node_modules/@anthropic-ai/claude-code/cli.js" "$@"
else
  exec node  "$basedir/global/5/node_modules/@anthropic-ai/claude-code/cli.js" "$@"
fi
`
