//go:build lab

package doctor_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// world is a user with a project and a profile that runs a shell of the
// store, so that no fault of an agent is in the way.
type world struct {
	home, project string
	env           []string
}

const labProfile = `name: lab
agent: {name: bash, command: [bash]}
confirm: never
`

// ownProfile is where the profile lies: among the user's own, so that all that it says counts.
const ownProfile = ".config/claudebox/profiles/lab.yaml"

func newWorld(t *testing.T) *world {
	t.Helper()
	home := trial.Home(t, "claudebox-doctor-")
	w := &world{home: home, project: filepath.Join(home, "project")}
	w.env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "CLAUDEBOX_PROFILE=" + filepath.Join(home, ownProfile)}
	must.Do(t, os.Mkdir(w.project, 0o700), os.Mkdir(home+"/.cache", 0o700),
		os.MkdirAll(filepath.Dir(filepath.Join(home, ownProfile)), 0o700), os.WriteFile(filepath.Join(home, ownProfile), []byte(labProfile), 0o600))
	return w
}

// result is how a run ended.
type result struct {
	status         int
	stdout, stderr string
}

// run runs claudebox in the project, with nothing on standard input.
func (w *world) run(t *testing.T, words ...string) result {
	t.Helper()
	return w.start(t, trial.Binary(t), words...)
}

// withoutTerminal does the same in a session that no terminal belongs to.
func (w *world) withoutTerminal(t *testing.T, words ...string) result {
	t.Helper()
	return w.start(t, "setsid", append([]string{"--wait", trial.Binary(t)}, words...)...)
}

// foreign is the finding that every broken world has besides: in a user
// namespace root is nobody, so that no program of the host's can be trusted.
const foreign = "agent"

// runBroken does the same where a shell script with the rights of root over
// mounts and limits has broken something first. The rights are gone when
// claudebox starts.
func (w *world) runBroken(t *testing.T, script string, words ...string) result {
	t.Helper()
	script = "set -e\n" + script + "\n" + `exec setpriv --inh-caps=-all --ambient-caps=-all -- "$@"`
	return w.start(t, "unshare", slices.Concat(
		[]string{"--user", "--map-current-user", "--mount", "--keep-caps", "sh", "-c", script, "sh", trial.Binary(t)}, words)...)
}

func (w *world) start(t *testing.T, program string, words ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, words...)
	cmd.Dir, cmd.Env = w.project, w.env
	status, stdout, stderr := trial.Run(t, cmd)
	return result{status, stdout, stderr}
}

// finding is one entry of `check --format json`.
type finding struct{ Name, Level, Detail, Remedy string }

func (r result) findings(t *testing.T) []finding {
	t.Helper()
	var list []finding
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		t.Fatalf("%v in %q; standard error: %s", err, r.stdout, r.stderr)
	}
	return list
}

// of gives the findings of a level.
func of(list []finding, level string) []finding {
	return slices.DeleteFunc(slices.Clone(list), func(f finding) bool { return f.Level != level })
}

// listing names every file below a folder with what it is.
func listing(t *testing.T, folder string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if filepath.Base(path) == ".cache" {
			return fs.SkipDir // what is kept there is no leftover
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		return nil
	})
	must.Do(t, err)
	return b.String()
}
