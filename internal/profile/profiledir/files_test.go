package profiledir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/profile"
)

func TestProfileFoldersFollowTheEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		env      host.Environment
		manifest string
		want     string
	}{
		"by default below home": {
			nil, "", "/home/me/.claudebox/profiles /home/me/.config/claudebox/profiles /etc/claudebox/profiles",
		},
		"moved by variables": {
			host.Environment{"CLAUDEBOX_HOME=/own", "XDG_CONFIG_HOME=/config"},
			"",
			"/own/profiles /config/claudebox/profiles /etc/claudebox/profiles",
		},
		"a relative XDG_CONFIG_HOME is ignored": {
			host.Environment{"XDG_CONFIG_HOME=config"},
			"",
			"/home/me/.claudebox/profiles /home/me/.config/claudebox/profiles /etc/claudebox/profiles",
		},
		"what claudebox was built with comes last": {
			nil, "/nix/store/0-claudebox/share/claudebox/manifest.json",
			"/home/me/.claudebox/profiles /home/me/.config/claudebox/profiles /etc/claudebox/profiles /nix/store/0-claudebox/share/claudebox/profiles",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := New(host.Facts{Home: "/home/me", Cwd: "/src", Env: tc.env}, tc.manifest)
			if got := strings.Join(files.folders, " "); got != tc.want {
				t.Errorf("folders %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAReferenceIsRelativeToWhereItStands(t *testing.T) {
	files := Files{cwd: "/src/app", Home: "/home/me"}
	for _, tc := range []struct{ ref, from, file, shown string }{
		{"./p.yaml", "", "/src/app/p.yaml", "p.yaml"},
		{"p.yaml", "", "/src/app/p.yaml", "p.yaml"},
		{"../p.yaml", "", "/src/p.yaml", "/src/p.yaml"},
		{"~/p.yaml", "", "/home/me/p.yaml", "/home/me/p.yaml"},
		{"/etc/../p.yaml", "", "/p.yaml", "/p.yaml"},
		{"./q.yaml", "sub/p.yaml", "/src/app/sub/q.yaml", "sub/q.yaml"},
		{"../q.yaml", "sub/p.yaml", "/src/app/q.yaml", "q.yaml"},
		{"./q.yaml", "/etc/claudebox/profiles/p.yaml", "/etc/claudebox/profiles/q.yaml", "/etc/claudebox/profiles/q.yaml"},
	} {
		file := files.Absolute(tc.ref, diag.Position{File: tc.from, Line: 1})
		if file != tc.file || files.Shown(file) != tc.shown {
			t.Errorf("%s in %q: %s, shown as %s; want %s, %s", tc.ref, tc.from, file, files.Shown(file), tc.file, tc.shown)
		}
		if again := files.Absolute(files.Shown(file), diag.Position{}); again != file {
			t.Errorf("%s is shown as %s, which names %s", file, files.Shown(file), again)
		}
	}
}

func TestOthersMayNotWriteAProfile(t *testing.T) {
	for name, tc := range map[string]struct {
		mode     uint32
		uid, gid uint32
		others   bool
	}{
		"readable by all":                    {0o644, 1000, 100, false},
		"writable by all":                    {0o646, 1000, 1000, true},
		"writable by a group of many":        {0o664, 1000, 100, true},
		"writable by the user's own group":   {0o664, 1000, 1000, false},
		"root's, and writable by root alone": {0o664, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			st := unix.Stat_t{Mode: unix.S_IFREG | tc.mode, Uid: tc.uid, Gid: tc.gid}
			if got := writableByOthers(st); got != tc.others {
				t.Errorf("writable by others: %t", got)
			}
		})
	}
}

func TestAProfileOfAnotherUserIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	must.Write(t, file, "name: p\n")
	if _, err := Read(file, os.Getuid()); err != nil {
		t.Errorf("one's own: %v", err)
	}
	if os.Getuid() == 0 {
		if _, err := Read(file, 1000); err != nil {
			t.Errorf("root's: %v", err)
		}
		must.Do(t, os.Chown(file, 1001, 1001))
	}
	var stopped *diag.Error
	if _, err := Read(file, 1000+os.Getuid()); !errors.As(err, &stopped) || stopped.Remedy == "" {
		t.Errorf("another user's: %v", err)
	}
}

// A folder that cannot be searched must not make a later profile of the same
// name count.
func TestAProfileThatCannotBeReadIsNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	files := Files{cwd: dir, uid: os.Getuid(), folders: []string{filepath.Join(dir, "missing"), filepath.Join(dir, "a"), filepath.Join(dir, "b")}}
	for _, folder := range files.folders[1:] {
		must.Do(t, os.Mkdir(folder, 0o700))
		must.Write(t, filepath.Join(folder, "p.yaml"), "name: p\n")
	}
	if _, file, _, err := files.Open("p", diag.Position{}); err != nil || file != "a/p.yaml" {
		t.Fatalf("opened %s, %v", file, err)
	}
	must.Do(t, os.Chmod(filepath.Join(dir, "a/p.yaml"), 0o666))
	if _, file, _, err := files.Open("p", diag.Position{}); err == nil {
		t.Errorf("opened %s", file)
	}
	var missing *profile.NotFoundError
	if _, _, _, err := files.Open("q", diag.Position{}); !errors.As(err, &missing) || strings.Join(missing.Known, " ") != "p default" {
		t.Errorf("a name that is not there: %v, known %v", err, missing)
	}
}

// Of R10's kind: a default profile of the user's with another ending was passed over for the built-in one.
func TestAProfileWithAnotherEndingIsNotPassedOver(t *testing.T) {
	for _, name := range []string{"default.toml", "Default.yaml", "default.YML", "default.conf"} {
		dir := t.TempDir()
		files := Files{cwd: dir, uid: os.Getuid(), folders: []string{filepath.Join(dir, "missing"), dir}}
		must.Write(t, filepath.Join(dir, name), "network: none\n")
		_, _, err := profile.Load("default", files)
		if err == nil || !strings.Contains(err.Error(), name+" looks like it") || diag.Remedy(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"default.yaml~", "default.md", "other.toml", "default"} {
		must.Write(t, filepath.Join(dir, name), "")
	}
	if _, _, err := profile.Load("default", Files{cwd: dir, uid: os.Getuid(), folders: []string{dir}}); err != nil {
		t.Errorf("others: %v", err)
	}
}

func TestAModulesPlanWinsInItsOwnPlaceAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		want  string
	}{
		"none":                          {nil, ""},
		"a plan":                        {[]string{"b/plans/p.json"}, "b/plans/p.json"},
		"the earlier of two":            {[]string{"a/plans/p.json", "b/plans/p.json"}, "a/plans/p.json"},
		"over a profile beside it":      {[]string{"a/plans/p.json", "a/profiles/p.yaml"}, "a/plans/p.json"},
		"not over an earlier profile":   {[]string{"a/profiles/p.yml", "b/plans/p.json"}, ""},
		"over another profile's name":   {[]string{"a/profiles/q.yaml", "b/plans/p.json"}, "b/plans/p.json"},
		"the plan of another profile":   {[]string{"a/plans/q.json"}, ""},
		"a profile alone is no plan":    {[]string{"a/profiles/p.yaml"}, ""},
		"a folder of profiles is empty": {[]string{"a/profiles/x", "b/plans/p.json"}, "b/plans/p.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range tc.files {
				file := filepath.Join(dir, file)
				must.Write(t, file, "")
			}
			got, want := Files{folders: []string{dir + "/a/profiles", dir + "/b/profiles"}}.Plan("p"), tc.want
			if want != "" {
				want = filepath.Join(dir, want)
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if got := (Files{folders: []string{t.TempDir()}}).Plan("./p.yaml"); got != "" {
		t.Errorf("for a file: %q", got)
	}
}

// Two calls of allow-host at once: the later one is refused, and works when it is called again.
func TestAProfileThatChangesMeanwhileIsSavedWhenCalledAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	const text = "name: p\nnetwork: {tier: allow, allow: [a.example]}\n"
	must.Write(t, file, text)
	add := func() MoreHosts {
		m, err := Files{uid: os.Getuid(), cwd: filepath.Dir(file)}.AddHosts(file, []string{"b.example"})
		must.Do(t, err)
		return m
	}
	m := add()
	must.Write(t, file, text+"# mine\n")
	if err := m.Save(); diag.Remedy(err) != "call it again" {
		t.Errorf("got %v", err)
	}
	if err := add().Save(); err != nil {
		t.Errorf("called again: %v", err)
	}
}
