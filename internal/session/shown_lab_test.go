//go:build lab

package session

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/inside"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/storetree"
	"claudebox/internal/session/planning"
)

// TestMain is also the stage that becomes bwrap.
func TestMain(m *testing.M) {
	if status, ran := storetree.Run(os.Args); ran {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// start is a start whose launch is compared.
type start struct {
	prepare string // by the user's shell, in the project
	dir     string // where it starts, below the project
	profile string
	options planning.Options
	leaves  []string // what its branch has no place for, below the project
}

const (
	repository = `git init -q -b main; printf 'node_modules/\n' >.gitignore; mkdir src; echo a >src/a; git add .; git commit -qm one; `
	ignored    = `mkdir node_modules extra below; truncate -s 21000000 node_modules/large extra/large
echo extra >>.gitignore; echo k >key.txt; echo k >src/key.txt; `
	flake = `cat >flake.nix <<'END'
{ outputs = { self, nixpkgs }: let p = nixpkgs.legacyPackages.x86_64-linux; in {
	devShells.x86_64-linux.default = p.runCommand "nix-shell" { outputs = [ "out" ]; nativeBuildInputs = [ p.hello ]; } ":"; }; }
END
`
)

var starts = map[string]start{
	"a plain start":       {prepare: repository, profile: "nix: {daemon: off}"},
	"a folder":            {prepare: "mkdir below", dir: "below", profile: "nix: {daemon: off}"},
	"Nix inside":          {prepare: repository, profile: "nix: {daemon: own}"},
	"a part of the store": {prepare: repository, profile: "nix: {daemon: own, store: closure}"},
	"a dev shell":         {prepare: repository + flake, profile: "nix: {daemon: own}"},
	"a branch":            {prepare: repository, profile: "nix: {daemon: own}", options: planning.Options{Branch: "feat"}},
	"a branch that has no place for all of it": {
		prepare: repository + ignored, dir: "below", profile: "hide: [key.txt, src/key.txt]",
		options: planning.Options{Branch: "feat"}, leaves: []string{"below", "extra", "key.txt", "src/key.txt"},
	},
}

// startVariable names the start for the process that takes it.
const startVariable = "CLAUDEBOX_TEST_START"

// Promise: what you saw is what runs.
func TestWhatRunsIsWhatWasShown(t *testing.T) {
	if name := os.Getenv(startVariable); name != "" {
		starts[name].take(t)
		return
	}
	for name, s := range starts {
		t.Run(name, func(t *testing.T) {
			cmd := s.command(t)
			cmd.Env = append(cmd.Env, startVariable+"="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// command is this program, installed beside claudebox's others, in a project of a new home. There it runs this test.
func (s start) command(t *testing.T) *exec.Cmd {
	t.Helper()
	bin, home := trial.Binary(t), trial.Home(t, "cb-shown-")
	project, self := home+"/project", home+"/bin/session.test"
	script := `set -e; mkdir -p "$HOME/bin" "$HOME/out" "$HOME/project"; cp "$1" "$2"; ln -s "$3" "$HOME/libexec"; cd "$HOME/project"
printf '[user]\n\tname = Ada\n\temail = ada@example.org\n' >~/.gitconfig; ` + s.prepare
	program, err := os.Executable()
	must.Do(t, err)
	libexec := filepath.Join(filepath.Dir(filepath.Dir(bin)), "libexec")
	env := []string{
		"HOME=" + home, "USER=someone", "TERM=xterm", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "CLAUDEBOX_BIN=" + bin,
	}
	prepare := exec.Command("bash", "-c", script, "bash", program, self, libexec)
	prepare.Env = env
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	profile := "name: test\nextends: default\n" + s.profile + "\n"
	must.Write(t, home+"/profile.yaml", profile)
	if _, err := os.Stat(project + "/flake.nix"); err == nil {
		trial.Lock(t, project)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(self, "-test.run=^"+test+"$")
	cmd.Dir, cmd.Env, cmd.WaitDelay = filepath.Join(project, s.dir), env, time.Minute
	return cmd
}

// manifestOf is the manifest of the claudebox to test.
func manifestOf() string {
	return filepath.Join(filepath.Dir(filepath.Dir(os.Getenv("CLAUDEBOX_BIN"))), "share/claudebox/manifest.json")
}

// take takes the start, and compares what was shown before it with what it ran.
func (s start) take(t *testing.T) {
	home := os.Getenv("HOME")
	o := s.options
	o.Profile, o.Yes, o.MountRW = home+"/profile.yaml", true, []string{home + "/out"}
	script := `pwd >"$1/dir"; cat /proc/self/mountinfo >"$1/mounts"`
	command := []string{"bash", "-c", script, "bash", home + "/out"}
	caller := planning.Caller{Stderr: os.Stderr, Columns: func() int { return 80 }, Manifest: manifestOf(), Version: "test"}
	session, err := Prepare(caller, o, planning.Purpose{Command: command})
	must.Do(t, err)
	defer session.Close()
	before, shown := session.Launch, fields(session.Launch)
	r := newRunning(session)
	must.Do(t, r.run())
	if now := fields(session.Launch); !reflect.DeepEqual(now, shown) {
		t.Errorf("the launch that was shown was changed: %s", differ(shown, now))
	}
	var lacks []string
	for _, rel := range s.leaves {
		lacks = append(lacks, session.project.Path+"/"+rel)
	}
	ran := r.runner.Launch
	if want := fields(before.On(lacks)); !reflect.DeepEqual(fields(ran), want) {
		t.Errorf("another launch ran than was shown: %s", differ(want, fields(ran)))
	}
	left := len(before.Mounts) - len(ran.Mounts)
	if dir := fields(ran)["Dir"] != shown["Dir"]; dir != slices.Contains(s.leaves, s.dir) || left != max(0, len(s.leaves)-1) {
		t.Errorf("%d mounts are left out, and it runs in %s", left, ran.Dir)
	}
	s.wantInside(t, before, ran, home+"/out")
}

// wantInside compares a launch with what was there inside.
func (s start) wantInside(t *testing.T, shown, ran launch.Launch, out string) {
	t.Helper()
	dir, err := os.ReadFile(out + "/dir")
	mounts, fault := os.ReadFile(out + "/mounts")
	must.Do(t, err, fault)
	if got := strings.TrimSpace(string(dir)); got != ran.Dir {
		t.Errorf("it ran in %s, not in %s", got, ran.Dir)
	}
	there := map[string]bool{}
	for line := range strings.Lines(string(mounts)) {
		there[strings.Fields(line)[4]] = true
	}
	for _, m := range shown.Mounts {
		isBind := m.Kind == plan.Bind || m.Kind == plan.ROBind || m.Kind == plan.ROData
		runs := slices.ContainsFunc(ran.Mounts, func(of launch.Mount) bool { return of.Destination == m.Destination })
		if isBind && there[m.Destination] != runs {
			t.Errorf("%s (%s) is inside: %v; in the launch that ran: %v", m.Destination, m.Why, there[m.Destination], runs)
		}
	}
}

// fields are all fields of a launch, as text.
func fields(l launch.Launch) map[string]string {
	all, value := map[string]string{}, reflect.ValueOf(l)
	for _, f := range reflect.VisibleFields(value.Type()) {
		if f.Anonymous {
			continue
		}
		v := value.FieldByIndex(f.Index)
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		all[f.Name] = fmt.Sprintf("%+v", v)
	}
	return all
}

// differ are the fields that differ.
func differ(want, got map[string]string) string {
	var b strings.Builder
	for name := range want {
		if want[name] != got[name] {
			fmt.Fprintf(&b, "%s\n\t%s\n\t%s\n", name, want[name], got[name])
		}
	}
	return b.String()
}

// Promise: what you saw is what runs.
func TestAStoreThatAnotherSessionTookMeanwhileIsWorthAnotherStart(t *testing.T) {
	if os.Getenv(startVariable) == "" {
		cmd := start{profile: "nix: {daemon: own}"}.command(t)
		cmd.Env = append(cmd.Env, startVariable+"=busy")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	caller := planning.Caller{Stderr: os.Stderr, Columns: func() int { return 80 }, Manifest: manifestOf(), Version: "test"}
	o := planning.Options{Profile: os.Getenv("HOME") + "/profile.yaml", Yes: true}
	run := func(take bool) (store string, err error) {
		session, err := Prepare(caller, o, planning.Purpose{Command: []string{"true"}})
		must.Do(t, err)
		defer session.Close()
		shown := fields(session.Launch)
		store = session.parts.nix.Store
		if take {
			other, err := inside.Open(store)
			must.Do(t, err)
			t.Cleanup(other.Close)
		}
		err = session.Run()
		if now := fields(session.Launch); !reflect.DeepEqual(now, shown) {
			t.Errorf("the launch that was shown was changed: %s", differ(shown, now))
		}
		return store, err
	}
	first, err := run(false) // makes the agent's home
	second, again := run(true)
	third, fault := run(false)
	if err != nil || !errors.Is(again, launch.ErrAgain) || fault != nil || first != second || second == third {
		t.Errorf("%s: %v\n%s: %v\n%s: %v", first, err, second, again, third, fault)
	}
}
