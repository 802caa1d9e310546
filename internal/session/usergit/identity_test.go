package usergit_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/realgit"
	"claudebox/internal/session/usergit"
)

// world is a home and a repository below one folder, as files by name. In
// contents HOME stands for the home's path.
type world struct {
	files map[string]string

	links   map[string]string
	branch  string // empty: main
	remotes []string
	env     []string
	want    string // user.name
	fails   bool
}

var worlds = map[string]world{
	"nothing is set":  {},
	"the user's file": {files: map[string]string{".gitconfig": "[user]\nname = a\n"}, want: "a"},
	"~/.gitconfig wins over XDG": {files: map[string]string{
		".gitconfig": "[user]\nname = a\n", ".config/git/config": "[user]\nname = b\n",
	}, want: "a"},
	"XDG alone": {files: map[string]string{".config/git/config": "[user]\nname = b\n"}, want: "b"},
	"XDG_CONFIG_HOME elsewhere": {
		files: map[string]string{"x/git/config": "[user]\nname = b\n", ".config/git/config": "[user]\nname = no\n"},
		env:   []string{"XDG_CONFIG_HOME=HOME/x"}, want: "b",
	},
	"GIT_CONFIG_GLOBAL replaces both": {
		files: map[string]string{".gitconfig": "[user]\nname = no\n", "g": "[user]\nname = b\n"},
		env:   []string{"GIT_CONFIG_GLOBAL=HOME/g"}, want: "b",
	},
	"GIT_CONFIG_SYSTEM is read first": {
		files: map[string]string{"s": "[user]\nname = b\n"},
		env:   []string{"GIT_CONFIG_SYSTEM=HOME/s", "GIT_CONFIG_NOSYSTEM=0"}, want: "b",
	},
	"GIT_CONFIG_NOSYSTEM leaves it out": {
		files: map[string]string{"s": "[user]\nname = b\n"},
		env:   []string{"GIT_CONFIG_SYSTEM=HOME/s", "GIT_CONFIG_NOSYSTEM=true"},
	},
	"the last of a file wins": {files: map[string]string{".gitconfig": "[user]\nname = a\n[x]\ny = z\n[user]\nname = b\n"}, want: "b"},
	"a relative include": {files: map[string]string{
		".gitconfig": "[include]\npath = sub/inc\n", "sub/inc": "[include]\npath = ../two\n", "two": "[user]\nname = i\n",
	}, want: "i"},
	"an include from home": {files: map[string]string{".gitconfig": "[include]\npath = ~/inc\n", "inc": "[user]\nname = i\n"}, want: "i"},
	"an include in its place": {files: map[string]string{
		".gitconfig": "[user]\nname = a\n[include]\npath = inc\n[user]\nname = c\n", "inc": "[user]\nname = b\n",
	}, want: "c"},
	"an include that is not there":         {files: map[string]string{".gitconfig": "[include]\npath = gone\n[user]\nname = a\n"}, want: "a"},
	"an include with a subsection is none": {files: map[string]string{".gitconfig": "[include \"x\"]\npath = inc\n", "inc": "[user]\nname = b\n"}},
	"a link in an include goes the kernel's way": {
		files: map[string]string{".gitconfig": "[include]\npath = ~/l/../inc\n", "inc": "[user]\nname = wrong\n", "d/inc": "[user]\nname = right\n", "d/e/f": ""},
		links: map[string]string{"l": "d/e"}, want: "right",
	},
	"a circle of includes":                    {files: map[string]string{".gitconfig": "[include]\npath = ~/.gitconfig\n"}, fails: true},
	"a bad line":                              {files: map[string]string{".gitconfig": "[user\n"}, fails: true},
	"gitdir with a folder":                    {files: conditional("gitdir:~/src/work/"), want: "i"},
	"gitdir with another folder":              {files: conditional("gitdir:~/src/other/")},
	"gitdir with a part of a name":            {files: conditional("gitdir:~/src/wor")},
	"gitdir without a slash at the end":       {files: conditional("gitdir:~/src/work")},
	"gitdir of the repository itself":         {files: conditional("gitdir:~/src/work/p/.git"), want: "i"},
	"gitdir at any depth":                     {files: conditional("gitdir:work/"), want: "i"},
	"gitdir by a full path":                   {files: conditional("gitdir:HOME/src/"), want: "i"},
	"gitdir with stars":                       {files: conditional("gitdir:~/s*/**/.git"), want: "i"},
	"gitdir with one star that meets a slash": {files: conditional("gitdir:~/s*/.git")},
	"gitdir in another case":                  {files: conditional("gitdir:~/SRC/")},
	"gitdir/i in another case":                {files: conditional("gitdir/i:~/SRC/"), want: "i"},
	"gitdir beside the file":                  {files: conditional("gitdir:./src/"), want: "i"},
	"gitdir/i beside the file":                {files: conditional("gitdir/i:./SRC/"), want: "i"},
	"gitdir beside an included file": {files: map[string]string{
		".gitconfig": "[include]\npath = src/inc\n", "src/inc": "[includeIf \"gitdir:./work/\"]\npath = two\n", "src/two": "[user]\nname = i\n",
	}, want: "i"},
	"gitdir with a class":                  {files: conditional("gitdir:~/src/[v-x]ork/"), want: "i"},
	"gitdir with a negated class":          {files: conditional("gitdir:~/src/[!w]ork/")},
	"gitdir through a link":                {files: conditional("gitdir:~/l/"), links: map[string]string{"l": "src"}},
	"gitdir of a repository behind a link": {files: conditional("gitdir:~/real/"), links: map[string]string{"src": "real"}, want: "i"},
	"gitdir of the link itself":            {files: conditional("gitdir:~/src/"), links: map[string]string{"src": "real"}, want: "i"},
	"onbranch":                             {files: conditional("onbranch:feature/"), branch: "feature/x", want: "i"},
	"onbranch elsewhere":                   {files: conditional("onbranch:feature/"), branch: "fix/x"},
	"onbranch with a star":                 {files: conditional("onbranch:f*"), branch: "fix", want: "i"},
	"hasconfig":                            {files: conditional("hasconfig:remote.*.url:https://example.org/**"), remotes: []string{"https://example.org/a/b"}, want: "i"},
	"hasconfig with one star":              {files: conditional("hasconfig:remote.*.url:https://example.org/*"), remotes: []string{"https://example.org/a/b"}},
	"hasconfig in the scp form":            {files: conditional("hasconfig:remote.*.url:git@example.org:*/**"), remotes: []string{"git@example.org:a/b"}, want: "i"},
	"hasconfig without remotes":            {files: conditional("hasconfig:remote.*.url:**")},
	"hasconfig by the user's own remote, defined later": {files: map[string]string{
		".gitconfig": "[includeIf \"hasconfig:remote.*.url:x:*\"]\npath = inc\n[remote \"r\"]\nurl = x:y\n", "inc": "[user]\nname = i\n",
	}, want: "i"},
	"a condition git does not know": {files: conditional("moon:full")},
}

func conditional(condition string) map[string]string {
	return map[string]string{
		".gitconfig": "[includeIf \"" + condition + "\"]\npath = inc\n", "inc": "[user]\nname = i\n",
	}
}

func TestPickIsWhatGitPicks(t *testing.T) {
	for name, w := range worlds {
		t.Run(name, func(t *testing.T) {
			home, repo := w.build(t)
			env := append([]string{"HOME=" + home, "PWD=" + repo}, w.variables(home)...)
			out, ok := realgit.Run(t, repo, env, "config", "--get", "user.name")
			if !w.fails && strings.TrimSpace(out) != w.want {
				t.Fatalf("the table is wrong: git says %q, want %q", out, w.want)
			}
			id, err := usergit.Pick(w.sources(t, home, repo), lookup(env))
			if (err != nil) != w.fails || id.Name != w.want {
				t.Errorf("got %q, %v; want %q, failure %v (git ok: %v)", id.Name, err, w.want, w.fails, ok)
			}
		})
	}
}

func (w world) variables(home string) []string {
	var out []string
	for _, v := range w.env {
		out = append(out, strings.ReplaceAll(v, "HOME/", home+"/"))
	}
	return out
}

// build makes the world on disk and gives the home and the repository as the
// user came to it.
func (w world) build(t *testing.T) (home, repo string) {
	home = t.TempDir()
	for name, to := range w.links {
		must.Do(t, os.MkdirAll(filepath.Join(home, to), 0o700))
		must.Do(t, os.Symlink(to, filepath.Join(home, name)))
	}
	for name, content := range w.files {
		file := filepath.Join(home, name)
		must.Write(t, file, strings.ReplaceAll(content, "HOME/", home+"/"))
	}
	repo = filepath.Join(home, "src/work/p")
	must.Do(t, os.MkdirAll(repo, 0o700))
	quiet := []string{"HOME=/nonexistent"}
	run := func(args ...string) {
		if _, ok := realgit.Run(t, repo, quiet, args...); !ok {
			t.Fatalf("git %q", args)
		}
	}
	run("init", "-q")
	run("symbolic-ref", "HEAD", "refs/heads/"+w.branchName())
	for i, url := range w.remotes {
		run("remote", "add", "r"+string(rune('0'+i)), url)
	}
	return home, repo
}

func (w world) branchName() string {
	if w.branch == "" {
		return "main"
	}
	return w.branch
}

func (w world) sources(t *testing.T, home, repo string) usergit.Sources {
	canonical, err := filepath.EvalSymlinks(repo)
	must.Do(t, err)
	return usergit.Sources{
		Files:     usergit.Files(home, lookup(append([]string{"GIT_CONFIG_NOSYSTEM=1"}, w.variables(home)...))),
		Home:      home,
		ReadFile:  os.ReadFile,
		Canonical: filepath.EvalSymlinks,
		Repo: usergit.Repo{
			Dirs:    []string{canonical + "/.git", repo + "/.git"},
			Branch:  w.branchName(),
			Remotes: w.remotes,
		},
	}
}

// lookup reads a list of NAME=VALUE; the last of a name wins.
func lookup(env []string) func(string) (string, bool) {
	return func(name string) (value string, found bool) {
		for _, v := range env {
			if after, ok := strings.CutPrefix(v, name+"="); ok {
				value, found = after, true
			}
		}
		return value, found
	}
}

func TestVariablesOutrankOrStandInForFiles(t *testing.T) {
	src := usergit.Sources{Files: []string{"f"}, ReadFile: func(string) ([]byte, error) {
		return []byte("[user]\nname = file\n[author]\nemail = file@x\n"), nil
	}}
	env := lookup([]string{"GIT_AUTHOR_EMAIL=env@x", "EMAIL=fallback@x", "GIT_COMMITTER_NAME=c"})
	got, err := usergit.Pick(src, env)
	want := usergit.Identity{Name: "file", Email: "fallback@x", AuthorEmail: "env@x", CommitterName: "c"}
	got.Settings = nil
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestAnUnreadableFileIsNamed(t *testing.T) {
	src := usergit.Sources{Files: []string{"/f"}, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrPermission }}
	if _, err := usergit.Pick(src, lookup(nil)); err == nil || !strings.Contains(err.Error(), "/f") {
		t.Errorf("got %v", err)
	}
}

func TestMadeFileIsReadByGit(t *testing.T) {
	id := usergit.Identity{Name: "A \"Q\" \\ #;", Email: "a@x", CommitterEmail: "c@x", DefaultBranch: "trunk"}
	got, ok := realgit.List(t, usergit.Make(id, usergit.Own{}, []string{"/home/u/p q", "/home/u/m/.git"}, usergit.Access{}))
	want := []string{
		"user.name\nA \"Q\" \\ #;", "user.email\na@x", "user.useconfigonly\ntrue", "committer.email\nc@x",
		"init.defaultbranch\ntrunk",
		"safe.directory\n/home/u/p q", "safe.directory\n/home/u/m/.git",
	}
	if !ok || strings.Join(got, "\x00") != strings.Join(want, "\x00") {
		t.Errorf("git reads %q, want %q", got, want)
	}
}

func TestWithoutIdentityGitInventsNobody(t *testing.T) {
	home, repo := world{files: map[string]string{".gitconfig": string(usergit.Make(usergit.Identity{}, usergit.Own{}, nil, usergit.Access{}))}}.build(t)
	if out, ok := realgit.Run(t, repo, []string{"HOME=" + home}, "commit", "--allow-empty", "-m", "x"); ok {
		t.Errorf("git committed: %s", out)
	}
}

// U9: what a user's git does outside and not inside was not said.
func TestOtherSettingsAreNamedWithoutTheirValues(t *testing.T) {
	src := usergit.Sources{Files: []string{"f"}, ReadFile: func(string) ([]byte, error) {
		return []byte("[user]\nname = A\n[alias]\nco = checkout\nst = status\n[pull]\nrebase\n[color]\nui = auto\n" +
			"[url \"https://u:password@host/\"]\ninsteadOf = x\n[credential]\nhelper = store\n"), nil
	}}
	id, err := usergit.Pick(src, lookup(nil))
	got := usergit.Carry(id, nil, allInside)
	if want := "url.*.insteadof"; err != nil || strings.Join(got.Left, ", ") != want || strings.Contains(fmt.Sprint(got.Entries), "password") {
		t.Errorf("got %+v, %v; want %q", got, err, want)
	}
}
