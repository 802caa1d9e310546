package trust_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/profile/grant"
	"claudebox/internal/profile/trust"
)

func TestAVerdictIsOnOneContentAtOnePlace(t *testing.T) {
	s := trust.Store{Dir: filepath.Join(t.TempDir(), "home/trusted"), UID: os.Getuid()}
	f := trust.File{Path: "/src/p/.claudebox.yaml", Source: []byte("network: full\n")}
	tier := func(level string) grant.Grant { return grant.Grant{Key: "network", Level: level} }
	full := grant.Change{Before: tier("inet"), After: tier("full")}
	more := grant.Change{After: grant.Grant{Key: "packages", Name: "evil"}}
	otherBase := grant.Change{Before: tier("none"), After: tier("full")}
	must.Do(t, s.Keep(trust.Verdict{Path: f.Path, SHA256: f.SHA256(), Allowed: true, Changes: []grant.Change{full}}))
	v, err := s.Find(f.Path)
	must.Do(t, err)
	changed, moved := f, f
	changed.Source = []byte("network: full \n")
	moved.Path = "/src/q/.claudebox.yaml"
	for name, tc := range map[string]struct {
		file trust.File
		asks []grant.Change
		want bool
	}{
		"what was allowed":                         {f, []grant.Change{full}, true},
		"less than was allowed":                    {f, nil, true},
		"more, over another profile":               {f, []grant.Change{full, more}, false},
		"as much, over a profile that grants less": {f, []grant.Change{otherBase}, false},
		"one byte changed":                         {changed, []grant.Change{full}, false},
		"the same content, another way":            {moved, []grant.Change{full}, false},
	} {
		if got := v.Allows(tc.file, tc.asks); got != tc.want {
			t.Errorf("%s: allowed is %v", name, got)
		}
	}
	if v, err := s.Find(moved.Path); err != nil || v.Allowed {
		t.Errorf("of another place it says %+v, %v", v, err)
	}
	must.Do(t, s.Keep(trust.Verdict{Path: f.Path, SHA256: f.SHA256()}))
	if v, err := s.Find(f.Path); err != nil || v.Allowed || !v.On(f) {
		t.Errorf("a denial is %+v, %v", v, err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) != 1 {
		t.Errorf("the folder holds %v", left)
	}
}

// An earlier build kept widenings as it printed them. What the user said then still counts, for these and no others.
func TestAVerdictOfVersionOneCounts(t *testing.T) {
	s := trust.Store{Dir: filepath.Join(t.TempDir(), "trusted"), UID: os.Getuid()}
	f := trust.File{Path: "/src/p/.claudebox.yaml", Source: []byte("x\n")}
	must.Do(t, s.Keep(trust.Verdict{Path: f.Path, SHA256: f.SHA256(), Allowed: true}))
	files, err := filepath.Glob(s.Dir + "/*")
	must.Do(t, err)
	edit(t, files[0], `"version": 2`, `"version": 1, "widens": ["network: full instead of inet", "env: A=1"]`)
	v, err := s.Find(f.Path)
	must.Do(t, err)
	full := grant.Change{Before: grant.Grant{Key: "network", Level: "inet"}, After: grant.Grant{Key: "network", Level: "full"}}
	set := grant.Change{After: grant.Grant{Key: "env", Name: "A", Of: "1"}}
	other := grant.Change{After: grant.Grant{Key: "env", Name: "A", Of: "2"}}
	if !v.Allows(f, []grant.Change{full, set}) || v.Allows(f, []grant.Change{full, other}) {
		t.Errorf("it allows %+v", v)
	}
}

// Whatever happens to what was kept, it never becomes a yes.
func TestADamagedVerdictIsNone(t *testing.T) {
	path := "/src/p/.claudebox.yaml"
	for name, damage := range map[string]func(t *testing.T, file string){
		"cut":             func(t *testing.T, file string) { must.Do(t, os.Truncate(file, 20)) },
		"emptied":         func(t *testing.T, file string) { must.Do(t, os.Truncate(file, 0)) },
		"of another path": func(t *testing.T, file string) { edit(t, file, "/src/p", "/src/q") },
		"of another time": func(t *testing.T, file string) { edit(t, file, `"version": 2`, `"version": 3`) },
		"open to others":  func(t *testing.T, file string) { must.Do(t, os.Chmod(file, 0o622)) },
		"a link": func(t *testing.T, file string) {
			must.Do(t, os.Rename(file, file+".x"))
			must.Do(t, os.Symlink(file+".x", file))
		},
		"a folder": func(t *testing.T, file string) { must.Do(t, os.Remove(file)); must.Do(t, os.Mkdir(file, 0o700)) },
		"a pipe":   func(t *testing.T, file string) { must.Do(t, os.Remove(file)); must.Do(t, unix.Mkfifo(file, 0o600)) },
		"in a linked place": func(t *testing.T, file string) {
			dir := filepath.Dir(file)
			must.Do(t, os.Rename(dir, dir+".x"))
			must.Do(t, os.Symlink(dir+".x", dir))
		},
		"in no folder": func(t *testing.T, file string) {
			dir := filepath.Dir(file)
			must.Do(t, os.RemoveAll(dir))
			must.Write(t, dir, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := trust.Store{Dir: filepath.Join(t.TempDir(), "trusted"), UID: os.Getuid()}
			must.Do(t, s.Keep(trust.Verdict{Path: path, SHA256: "x", Allowed: true}))
			files, err := filepath.Glob(s.Dir + "/*")
			must.Do(t, err)
			damage(t, files[0])
			v, err := s.Find(path)
			var said *diag.Error
			if v.Allowed || !errors.As(err, &said) || said.Remedy == "" {
				t.Errorf("it says %+v, %v", v, err)
			}
		})
	}
}

func edit(t *testing.T, file, old, text string) {
	t.Helper()
	content := must.Read(t, file)
	must.Write(t, file, strings.ReplaceAll(content, old, text))
}

func TestAProjectsProfileThatIsNoFileIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(file string) error
		want string
	}{
		"a link":           {func(file string) error { return os.Symlink("/etc/hostname", file) }, "it is a link"},
		"a link to itself": {func(file string) error { return os.Symlink(filepath.Base(file), file) }, "it is a link"},
		"a pipe":           {func(file string) error { return unix.Mkfifo(file, 0o600) }, "not a regular file"},
		"a folder":         {func(file string) error { return os.Mkdir(file, 0o700) }, "not a regular file"},
		"a device":         {func(file string) error { return unix.Mknod(file, unix.S_IFCHR|0o600, 0) }, "not a regular file"},
		"a socket":         {func(file string) error { return unix.Mknod(file, unix.S_IFSOCK|0o600, 0) }, "not a regular file"},
		"ten megabytes":    {func(file string) error { return os.WriteFile(file, make([]byte, 10<<20), 0o600) }, "larger than 1 MiB"},
		"a hole of a terabyte": {func(file string) error {
			return errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 1<<40))
		}, "larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			must.Do(t, tc.make(filepath.Join(root, ".claudebox.yaml")))
			f, err := trust.Read(root)
			var said *diag.Error
			if f != nil || !errors.As(err, &said) || !strings.Contains(err.Error(), tc.want) || said.Remedy == "" {
				t.Errorf("got %v, %v", f, err)
			}
		})
	}
}

// R10: `.claudebox.yml`, `.claudebox.toml` and the like with `network: none` were passed over, and the network was open.
func TestAFileThatLooksLikeAProjectsProfileIsNotPassedOver(t *testing.T) {
	for name, tc := range map[string]struct {
		files, name, source, refused string
	}{
		"another ending for YAML":        {".claudebox.yml", ".claudebox.yml", "x\n", ""},
		"a list of packages":             {".claudebox/tools.txt", ".claudebox/tools.txt", "packages: [ \"x\",\n]\n", ""},
		"what an editor left":            {".claudebox.yaml .claudebox.yaml~ .#.claudebox.yaml .claudebox.yaml.swp", ".claudebox.yaml", "x\n", ""},
		"a folder with something else":   {".claudebox/profiles/tight.yaml .claudebox/notes.txt", "", "", ""},
		"TOML":                           {".claudebox.toml", "", "", ".claudebox.toml: it looks like a project's profile"},
		"JSON":                           {".claudebox.json", "", "", ".claudebox.json: it looks like"},
		"a letter too few at its end":    {".claudebox.yam", "", "", ".claudebox.yam: it looks like a project's profile"},
		"TOML beside the true one":       {".claudebox.toml .claudebox.yaml", "", "", ".claudebox.toml: it looks like"},
		"no dot":                         {"claudebox.yaml", "", "", "claudebox.yaml: it looks like"},
		"capitals":                       {".Claudebox.YAML", "", "", ".Claudebox.YAML: it looks like"},
		"no ending":                      {".claudeboxrc", "", "", ".claudeboxrc: it looks like"},
		"a hyphen":                       {".claude-box.toml", "", "", ".claude-box.toml: it looks like"},
		"a letter too few":               {".cladebox.yml", "", "", ".cladebox.yml: it looks like"},
		"a file for the folder":          {".claudebox", "", "", ".claudebox: not a directory"},
		"a profile in the folder":        {".claudebox/profile.yaml", "", "", ".claudebox/profile.yaml: it looks like"},
		"a list of another name":         {".claudebox/packages.txt", "", "", ".claudebox/packages.txt: it looks like"},
		"a list in capitals":             {".claudebox/Tools.txt", "", "", ".claudebox/Tools.txt: it looks like"},
		"two":                            {".claudebox.yaml .claudebox.yml", "", "", "/.claudebox.yaml: .claudebox.yml is there as well"},
		"a list beside a profile":        {".claudebox.yml .claudebox/tools.txt", "", "", ".claudebox/tools.txt is there as well"},
		"what only begins like it":       {"claudebox.go claudebox-lab.md .claude/settings.json claude.yaml", "", "", ""},
		"a folder of a program's source": {"claudebox/main.go", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range strings.Fields(tc.files) {
				file = filepath.Join(root, file)
				must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
				must.Write(t, file, "x\n")
			}
			f, err := trust.Read(root)
			var said *diag.Error
			switch {
			case tc.refused != "":
				if f != nil || !errors.As(err, &said) || !strings.Contains(err.Error(), tc.refused) || said.Remedy == "" {
					t.Errorf("got %v, %v; want %q", f, err, tc.refused)
				}
			case err != nil, (f != nil) != (tc.name != ""):
				t.Errorf("got %v, %v", f, err)
			case f != nil && (f.Name() != tc.name || f.Path != root+"/"+tc.name || f.Root != root || string(f.Source) != tc.source):
				t.Errorf("got %+v, source %q", f, f.Source)
			}
		})
	}
}

func TestALinkInTheWayOfAListOfPackagesIsRefused(t *testing.T) {
	root := t.TempDir()
	must.Do(t, os.Symlink("/etc", filepath.Join(root, ".claudebox")))
	if f, err := trust.Read(root); f != nil || err == nil || !strings.Contains(err.Error(), ".claudebox: not a directory") {
		t.Errorf("got %v, %v", f, err)
	}
}

func TestAProjectWithoutAProfileHasNone(t *testing.T) {
	if f, err := trust.Read(t.TempDir()); f != nil || err != nil {
		t.Errorf("got %v, %v", f, err)
	}
	t.Chdir(t.TempDir())
	must.Write(t, ".claudebox.yaml", "x")
	cwd, err := os.Getwd()
	must.Do(t, err)
	if f, err := trust.Read("."); err != nil || string(f.Source) != "x" || f.Path != cwd+"/.claudebox.yaml" {
		t.Errorf("got %+v, %v", f, err)
	}
}
