//go:build lab

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

func TestAFolderThatIsNoProjectIsRefused(t *testing.T) {
	for name, folder := range map[string]string{
		"the root":                               "/",
		"the store":                              "/nix/store",
		"the system's configuration":             "/etc",
		"a folder of the kernel's":               "/proc/self",
		"the folder of temporary files":          "/tmp",
		"the folder of homes":                    "/home",
		"a folder of somebody else":              "/usr/share",
		"the home":                               "~",
		"what holds the home":                    "~/..",
		"keys":                                   "~/.ssh",
		"what lies in a folder of keys":          "~/.gnupg/private-keys-v1.d",
		"all configuration":                      "~/.config",
		"a login":                                "~/.config/gh",
		"Claude Code's own folder":               "~/.claude",
		"what lies in it":                        "~/.claude/projects/x",
		"claudebox's folder":                     "~/.claudebox",
		"another instance":                       "~/.claudebox/instances/0123456789abcdef/.claude",
		"claudebox's configuration":              "~/.config/claudebox",
		"a browser's profile":                    "~/.mozilla/firefox",
		"a pattern's match":                      "~/.age-keys",
		"the repository itself":                  "~/project/.git",
		"a link to the home":                     "~/to-home",
		"a link to keys":                         "~/to-keys",
		"the home by another way":                "~/project/../.",
		"a folder around one of keys":            "~/.local/share",
		"all that programs of the user have got": "~/.cache",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := strings.Replace(folder, "~", w.home, 1)
			w.link(t, w.home, "to-home")
			w.folder(t, ".ssh")
			w.link(t, ".ssh", "to-keys")
			if strings.HasPrefix(folder, "~") {
				w.folder(t, path)
			}
			w.project = path
			wantRefused(t, run(t, w.session("true")), "as the project")
			if !strings.Contains(folder, ".claudebox") && exists(w.path(".claudebox")) {
				t.Error("a refused launch made ~/.claudebox")
			}
		})
	}
}

func TestAProjectLiesAtItsOwnPath(t *testing.T) {
	for name, folder := range map[string]string{
		"below the home":             "~/project",
		"deep below the home":        "~/src/a b/ü/project",
		"beside the home":            "~/../elsewhere",
		"with a name that is a flag": "~/--ro-bind",
		"with a line's end in it":    "~/a\nb",
		"with a quote in it":         "~/it's \"$HOME\" `id`",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.project = w.folder(t, filepath.Clean(strings.Replace(folder, "~", w.home, 1)))
			t.Cleanup(func() { os.RemoveAll(w.project) })
			wantEqual(t, w.inside(t, "printf %s \"$PWD\"; echo inside >file"), w.project)
			wantEqual(t, w.read(t, w.project+"/file"), "inside\n")
		})
	}
}

func TestAProjectInTheFolderOfTemporaryFilesShowsNothingElseOfIt(t *testing.T) {
	w := newWorld(t)
	dir, err := os.MkdirTemp("/tmp", "cb-project-")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	w.project = dir
	// Where it is another file system than the home, nothing is held back in it, which is said.
	got := run(t, w.claudebox("shell", "--yes", "--no-report", "--", "bash", "-euc", "echo x >file; cat file; ls -A /tmp"))
	wantEqual(t, got.stdout, "x\n"+dir[len("/tmp/"):]+"\n")
}

// The caller came by a link: inside, both the place and the work are there.
func TestAProjectBehindALinkLiesAtItsRealPath(t *testing.T) {
	w := newWorld(t)
	w.link(t, "project", "linked")
	w.project = w.path("linked")
	w.env["PWD"] = w.project
	wantEqual(t, w.normal(w.inside(t, "pwd -P; echo x >file")), "HOME/project\n")
	wantEqual(t, w.read(t, "project/file"), "x\n")
}
