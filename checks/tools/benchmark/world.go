package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/cli"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/plan/resolve"
)

// world is a user with a home, a project, and a claudebox of their own whose
// manifest can be changed.
type world struct {
	home     string
	floor    string // the least program around bwrap, built beside this one
	manifest resolve.Manifest
}

// newWorld makes the home this process lives in from here on.
func newWorld(bin string) (*world, error) {
	if bin == "" {
		return nil, errors.New("CLAUDEBOX_BIN is not set: run checks/bench")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	own, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp(own, "claudebox-bench-")
	if err != nil {
		return nil, err
	}
	beside := filepath.Dir(self)
	w := &world{home: home, floor: filepath.Join(beside, "floor")}
	if err := errors.Join(w.install(bin), w.installHelpers(bin), os.Mkdir(home+"/project", 0o700), os.Chdir(home+"/project"), os.Setenv("HOME", home)); err != nil {
		w.remove()
		return nil, err
	}
	return w, nil
}

// install copies claudebox's program and its manifest.
func (w *world) install(bin string) error {
	from := filepath.Dir(filepath.Dir(bin))
	if err := copyProgram(filepath.Join(from, "bin"), filepath.Join(w.home, "bin")); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(from, "share/claudebox/manifest.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &w.manifest); err != nil {
		return err
	}
	return w.writeManifest()
}

// installHelpers copies claudebox's other programs.
func (w *world) installHelpers(bin string) error {
	return os.CopyFS(w.home+"/libexec", os.DirFS(filepath.Join(filepath.Dir(filepath.Dir(bin)), "libexec")))
}

// copyProgram writes a program in one piece: how its pages lie in the kernel's
// cache is worth a tenth of a millisecond, and depends on how they came there.
func copyProgram(from, to string) error {
	program, err := os.ReadFile(filepath.Join(from, "claudebox"))
	return errors.Join(err, os.Mkdir(to, 0o700), os.WriteFile(filepath.Join(to, "claudebox"), program, 0o700))
}

func (w *world) writeManifest() error {
	text, err := json.Marshal(w.manifest)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(w.manifestFile()), 0o700), os.WriteFile(w.manifestFile(), text, 0o600))
}

func (w *world) manifestFile() string { return w.home + "/share/claudebox/manifest.json" }

// addPackages puts so many packages into the manifest. Each is a package of its
// own, whose store path may be another's as well: the manifest has not so many.
func (w *world) addPackages(n int) ([]string, error) {
	var known []nixeval.Package
	for _, attribute := range slices.Sorted(maps.Keys(w.manifest.Packages)) {
		known = append(known, w.manifest.Packages[attribute])
	}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("bench%d", i))
		w.manifest.Packages[names[i]] = known[i%len(known)]
	}
	return names, w.writeManifest()
}

func (w *world) remove() {
	_ = exec.Command("chmod", "-R", "u+rwX", w.home).Run() // checkouts of sessions on a branch are closed
	os.RemoveAll(w.home)
}

// profile writes a profile whose agent ends at once.
func (w *world) profile(name, rest string) string { return w.profileOf(name, "true", rest) }

func (w *world) profileOf(name, agent, rest string) string {
	file := filepath.Join(w.home, name+".yaml")
	text := "name: " + name + "\nextends: default\nagent: {command: [" + agent + "]}\n" + rest
	text = strings.Replace(text, "[true]", `["true"]`, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err) // the home was made by us a moment ago
	}
	return file
}

// command is claudebox with these words, in the project of this user.
func (w *world) command(words ...string) way {
	return func() (*exec.Cmd, error) {
		cmd := exec.Command(w.home+"/bin/claudebox", words...)
		cmd.Dir, cmd.Env = w.home+"/project", append(os.Environ(), "HOME="+w.home)
		return cmd, nil
	}
}

func (w *world) system() cli.System {
	return cli.System{Stdin: os.Stdin, Stdout: io.Discard, Stderr: io.Discard, Manifest: w.manifestFile()}
}
