//go:build lab

package network_test

import (
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/checks/promises/network/world"
)

const patience = trial.Patience

// topVariable hands the folder of all users and the probe to the test in its
// user namespace.
const topVariable = "CLAUDEBOX_NETWORK_TOP"

// sources make a result of before count no more once the probe has changed.
//
//go:embed probe
var _ embed.FS

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	flag.Parse()
	// The tests wait, for silence to be sure of, more than they work.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	status := world.Main(prepare, m.Run)
	if os.Getenv(topVariable) != "" && !world.Entered() {
		os.RemoveAll(os.Getenv(topVariable))
	}
	return status
}

// prepare makes the folder and builds the probe. It lies in the user's own home,
// as claudebox refuses projects in some other places.
func prepare() error {
	if os.Getenv("CLAUDEBOX_BIN") == "" {
		return errors.New("CLAUDEBOX_BIN is not set: run checks/test, or see the package's documentation")
	}
	home, err := trial.Top()
	if err != nil {
		return err
	}
	top, err := os.MkdirTemp(home, "cb-network-")
	if err != nil {
		return err
	}
	return errors.Join(
		os.Setenv(topVariable, top),
		storeReleases(top),
		trial.Build(probe(), "./probe"),
	)
}

func top() string   { return os.Getenv(topVariable) }
func probe() string { return filepath.Join(top(), "probe") }

// tools of a claudebox, by their names in the manifest; empty: the manifest's.
type tools map[string]string

// install puts a claudebox, with other tools than the lab's own, where the test
// can run it.
func install(t *testing.T, program string, other tools) string {
	t.Helper()
	folder, err := os.MkdirTemp(top(), "claudebox-")
	must.Do(t, err)
	text, err := os.ReadFile(os.Getenv("CLAUDEBOX_MANIFEST"))
	must.Do(t, err)
	var manifest map[string]any
	must.Do(t, json.Unmarshal(text, &manifest))
	for name, path := range other {
		if path == "" {
			continue
		}
		manifest["tools"].(map[string]any)[name] = path
	}
	text, err = json.Marshal(manifest)
	must.Do(t, err)
	share := filepath.Join(folder, "share/claudebox")
	must.Do(t,
		copyFolder(program, folder, "bin"), copyFolder(program, folder, "libexec"),
		os.MkdirAll(share, 0o755), os.WriteFile(filepath.Join(share, "manifest.json"), text, 0o644),
	)
	return filepath.Join(folder, "bin/claudebox")
}

// copyFolder copies a folder of what a program is installed with.
func copyFolder(program, to, name string) error {
	from := filepath.Join(filepath.Dir(filepath.Dir(program)), name)
	return os.CopyFS(filepath.Join(to, name), os.DirFS(from))
}

// user is somebody on a world's host, with a home and a project.
type user struct {
	world         *world.World
	layout        world.Layout
	home, project string
	env           []string
	binary        string
}

func newUser(t *testing.T, w *world.World) *user {
	t.Helper()
	home, err := os.MkdirTemp(top(), "home-")
	must.Do(t, err)
	u := &user{world: w, layout: world.Systemd, home: home, project: filepath.Join(home, "project"), binary: os.Getenv("CLAUDEBOX_BIN")}
	programs := filepath.Join(home, ".local/bin")
	must.Do(t, os.Mkdir(u.project, 0o755), os.MkdirAll(programs, 0o755), os.Link(probe(), filepath.Join(programs, "claude")))
	u.env = []string{"HOME=" + home, "USER=someone", "PATH=" + programs + ":/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8"}
	return u
}

// claudebox is a call in the project, without a terminal.
func (u *user) claudebox(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	cmd := u.world.Command(u.layout, u.binary, words...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = u.project, u.env, patience
	return cmd
}

// session runs a script by bash in a sandbox. Flags of claudebox go before.
func (u *user) session(t *testing.T, script string, flags ...string) *exec.Cmd {
	t.Helper()
	return u.claudebox(t, slices.Concat([]string{"shell", "--yes", "--no-report"}, flags, []string{"--", "bash", "-euc", script})...)
}

// probing runs the probe in a sandbox, mounted at a path of its own.
func (u *user) probing(t *testing.T, words []string, flags ...string) *exec.Cmd {
	t.Helper()
	const place = "/opt/probe"
	return u.claudebox(t, slices.Concat(
		[]string{"shell", "--yes", "--no-report", "--mount-ro", probe() + ":" + place}, flags, []string{"--", place}, words,
	)...)
}

// probe runs the probe in a tier.
func (u *user) probe(t *testing.T, tier string, words ...string) *exec.Cmd {
	t.Helper()
	return u.probing(t, words, u.in(t, tier, "")...)
}

// in asks for a tier, with more of a profile where that is needed.
func (u *user) in(t *testing.T, tier, profile string) []string {
	t.Helper()
	profile += "\nnix: {daemon: off}" // bwrap of bookworm lays no overlay
	if tier == "allow" {
		return u.allowing(t, "good.test", profile)
	}
	return u.profile(t, "network: "+tier+"\n"+profile)
}

// outcome is what a run left.
type outcome struct {
	status         int
	stdout, stderr string
}

func run(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	status, stdout, stderr := trial.Run(t, cmd)
	return outcome{status, stdout, trial.WithoutProgress(stderr)}
}

// succeed is what a command prints that must succeed, with nothing on standard
// error.
func succeed(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	got := run(t, cmd)
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("status %d\nstderr: %s\nstdout: %s", got.status, got.stderr, got.stdout)
	}
	return got.stdout
}

func wantEqual(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// lines are the fields of a probe's findings.
func lines(text string) [][]string {
	var all [][]string
	for line := range strings.Lines(text) {
		all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return all
}
