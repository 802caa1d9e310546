package devshell

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
)

// What leads the agent elsewhere does not come in, by whatever of its names; tools do.
func TestADevShellBringsToolsAndRedirectsNothing(t *testing.T) {
	launch := environment{"PATH": "/own:/base", "HOME": "/home/u", "GOFLAGS": "-mod=readonly", "XDG_DATA_DIRS": "/data"}
	r := Request{Packages: 1, Refused: []string{"ANTHROPIC_*"}}
	for name, comes := range map[string]bool{
		"FOO": true, "PYTHONPATH": true, "NIX_CFLAGS_COMPILE": true, "NIX_LDFLAGS": true, "NIX_LD_LIBRARY_PATH": false, "PKG_CONFIG_PATH": true, "DATABASE_URL": true,
		"ANTHROPIC_BASE_URL": false, "LD_PRELOAD": false, "LD_LIBRARY_PATH": false, "HOME": false, "GIT_SSH": false,
		"HTTPS_PROXY": false, "all_proxy": false, "NODE_EXTRA_CA_CERTS": false, "CURL_CA_BUNDLE": false, "BUN_OPTIONS": false,
		"GOFLAGS": false, "BASH_FUNC_git%%": false, "NIX_CONFIG": false, "XDG_CONFIG_HOME": false, "SSH_AUTH_SOCK": false,
	} {
		made, came, left := merge(r, launch, launch, environment{name: "theirs"})
		if (made[name] == "theirs") != comes || slices.Contains(came, name) != comes || slices.Contains(left, name) == comes && diag.IsVariable(name) && name != "HOME" {
			t.Errorf("%s: %q, came %q, left %q", name, made[name], came, left)
		}
		r := r
		r.Vars = []string{name}
		if made, _, _ := merge(r, launch, launch, environment{name: "theirs"}); made[name] != "theirs" && diag.IsVariable(name) {
			t.Errorf("%s is not let in by vars", name)
		}
	}
}

func TestThePathOfADevShell(t *testing.T) {
	for name, tc := range map[string]struct{ theirs, want string }{
		"between the profile's and the base": {"/a:/b", "/own:/a:/b:/base"},
		"nothing":                            {"", "/own:/base"},
		"relative folders":                   {".:bin::/a:~/x", "/own:/a:/base"},
		"folders that are there already":     {"/base:/a:/own:/a", "/own:/a:/base"},
	} {
		if got := searchPath("/own:/base", tc.theirs, 1); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// .envrc is data: a line that is more than a reference names nothing.
func TestWhatEnvrcNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"flake.nix", "flake.lock", "default.nix", "sub/flake.nix", "sub/flake.lock"} {
		if os.MkdirAll(filepath.Join(dir, "sub"), 0o755) != nil || os.WriteFile(filepath.Join(dir, name), nil, 0o600) != nil {
			t.Fatal("no folder")
		}
	}
	for text, want := range map[string]string{
		"use flake": ".", "use flake .#x": ".#x", "\tuse  flake ./sub # of work": "./sub", "use flake path:./sub#y": "path:./sub#y",
		"use nix": "default.nix", "export A=b\nuse flake . --impure\n": ". impure",
		"use flake $REF": "", "use flake github:o/r": "", "use flake --option a b": "", "use flake ./none": "", "use flake `id`": "", "use flake .;id": "",
	} {
		made, found, err := ofEnvrc(dir, text)
		got := strings.Join(made.refs, " ") + made.file
		if made.impure {
			got += " impure"
		}
		if err != nil {
			got = ""
		}
		if got != want || !found {
			t.Errorf("%q: %q, %v, %v; want %q", text, got, found, err, want)
		}
	}
	for _, text := range []string{"", "# use flake", "echo use flake", "use node", "useflake", "use flakes"} {
		if made, found, err := ofEnvrc(dir, text); found {
			t.Errorf("%q: %+v, %v", text, made, err)
		}
	}
}

// A changed file changes the key, and no other does.
func TestTheKeyIsOfTheFilesThatWereRead(t *testing.T) {
	dir := t.TempDir()
	file := target{dir: dir, refs: []string{".#x"}}
	write := func(name, text string) {
		must.Write(t, filepath.Join(dir, name), text)
	}
	write("flake.nix", "1")
	write("seen.nix", "1")
	write("data.json", "1")
	of := func() string {
		return key(Request{}, file, filesOf(Request{Watch: []string{"*.json"}}, file, []string{"seen.nix"}))
	}
	was := of()
	for name, changes := range map[string]bool{"flake.nix": true, "seen.nix": true, "data.json": true, "flake.lock": true, "other.nix": false} {
		write(name, "2")
		now := of()
		if (now != was) != changes {
			t.Errorf("%s: changed %v", name, now != was)
		}
		was = now
	}
}

// Nix says which files it reads: in the project's own folder, in the store's copy of the repository, or by address.
func TestTheFilesThatAnEvaluationReads(t *testing.T) {
	const source, other = "/nix/store/k9vpgj6wfhzvc9q26vwy32gqbjdnvlqq-source/", "/nix/store/cp35mw2dpbawa255r66zi80bvw4qm754-source/"
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"in the store":                   {[]string{source + "flake.nix", other + "flake.nix", other + "x.nix", source + "nix/shell.nix"}, "flake.nix nix/shell.nix"},
		"of a folder below":              {[]string{source + "sub/flake.nix", source + "lib.nix", source + "sub/a.nix"}, "../lib.nix ../sub/a.nix ../sub/flake.nix"},
		"by its address":                 {[]string{"«git+file:///p»/flake.nix", "«github:a/b»/flake.nix", "«git+file:///p»/a.nix"}, "a.nix flake.nix"},
		"files of a folder":              {[]string{"/p/shell.nix", "/p/nix/a.nix", "/nix/var/x.nix", "<nix/derivation-internal.nix>"}, "nix/a.nix shell.nix"},
		"the folder itself, of Nix 2.34": {[]string{"/p/flake.nix", other + "flake.nix", other + "x.nix", "/p/nix/a.nix"}, "flake.nix nix/a.nix"},
		"nothing of Nix's":               {[]string{"«nix-internal»/call-flake.nix"}, ""},
	} {
		r := reading{t: target{dir: "/p"}}
		for _, line := range tc.lines {
			if !r.take("evaluating file '" + line + "'") {
				t.Errorf("%s: %s is not taken", name, line)
			}
		}
		slices.Sort(r.files)
		if got := strings.Join(r.files, " "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Values of a strange shell are text in the script of its hook, whatever is in them.
func TestValuesAreQuotedForBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	const nasty = `$(touch TAKEN)'"\` + "`touch TAKEN`\n; touch TAKEN\n"
	text := func(s string) []byte {
		return []byte(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`)
	}
	s := shell{Variables: map[string]variable{
		"A": {"exported", text(nasty)}, "B": {"var", text(nasty)}, "C": {"array", []byte("[" + string(text(nasty)) + "]")},
		"D": {"associative", []byte(`{` + string(text(nasty)) + `:` + string(text(nasty)) + `}`)}, "x;touch TAKEN": {"var", text("")},
	}}
	cmd := exec.Command(bash, "-c", s.definitions(func(string) bool { return false })+`printf %s "$A$B${C[0]}${D[@]}"; for k in "${!D[@]}"; do printf %s "$k"; done`)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != strings.Repeat(nasty, 5) {
		t.Errorf("%v: %q", err, out)
	}
	if _, err := os.Stat(filepath.Join(cmd.Dir, "TAKEN")); err == nil {
		t.Error("a value was run")
	}
}

// The agent can write what is kept: outside it is text, and nothing is followed.
func TestTheRecordOfAnAgentIsShownAsText(t *testing.T) {
	state := t.TempDir()
	folder := FolderOf("x")
	must.Do(t, os.MkdirAll(filepath.Join(state, folder), 0o755))
	file := filepath.Join(state, folder, recordName)
	must.Write(t, file, `{"shown":"\u001b[2Jx","programs":["\u001b]0;x\u0007"],"failed":"\r\n"}`)
	if r, known := Look(state, folder); !known || strings.ContainsAny(r.Brief()+r.Summary()+strings.Join(r.Programs, ""), "\x1b\r\n\a") {
		t.Errorf("%v %+v", known, r)
	}
	elsewhere := filepath.Join(t.TempDir(), "secret")
	if os.Rename(file, elsewhere) != nil || os.Symlink(elsewhere, file) != nil {
		t.Fatal("no link")
	}
	if r, known := Look(state, folder); known {
		t.Errorf("by a link: %+v", r)
	}
}
