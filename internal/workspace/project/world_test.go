package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/realgit"
	"claudebox/internal/linux/identity"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/project"
)

// world is a home with projects in it, made of real files and real git
// repositories.
type world struct {
	t    testing.TB
	home string
}

func newWorld(t testing.TB) world {
	t.Helper()
	return world{t, must.Folder(t)}
}

func (w world) path(name string) string { return filepath.Join(w.home, name) }

// write makes a file and the folders above it.
func (w world) write(name, content string) {
	w.t.Helper()
	must.Write(w.t, w.path(name), content)
}

func (w world) mkdir(name string) {
	w.t.Helper()
	must.Do(w.t, os.MkdirAll(w.path(name), 0o755))
}

func (w world) link(text, name string) {
	w.t.Helper()
	must.Do(w.t, os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
	must.Do(w.t, os.Symlink(text, w.path(name)))
}

// git runs the real git in a folder of the world.
func (w world) git(dir string, args ...string) string {
	w.t.Helper()
	env := []string{"HOME=" + w.home, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always"}
	return realgit.Do(w.t, w.path(dir), env, args...)
}

// repo makes a repository with one commit that holds the files.
func (w world) repo(dir string, files ...string) {
	w.t.Helper()
	w.mkdir(dir)
	w.git(dir, "init", "-q", "-b", "main")
	for _, f := range files {
		w.write(filepath.Join(dir, f), f+"\n")
	}
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-q", "--allow-empty", "-m", "first")
}

// memory is that of a user who has had no session, but for what was found in folders that tools fill.
type memory struct{ filled project.Filled }

func (memory) Known(project.Scope) *project.Seen        { return nil }
func (m memory) Filled(string) project.Filled           { return m.filled }
func (memory) Pushed(identity.ID) []string              { return nil }
func (memory) Had(string) bool                          { return false }
func (memory) Hidden(identity.ID) []string              { return nil }
func (memory) Doubted(string, string) bool              { return false }
func (memory) StillHidden(string) (stay, all []string)  { return nil, nil }
func (memory) Entered(string) []string                  { return nil }
func (memory) Inherited(seen git.Snapshot) git.Snapshot { return seen }

func (w world) request(dir string) project.Request {
	return project.Request{
		Dir: w.path(dir), Home: w.home, UID: os.Getuid(), Memory: memory{},
		Own:   []string{w.path(".claudebox"), w.path(".config/claudebox")},
		Never: []string{"~/.ssh", "~/.age*", "~/.config/gh", "/var/lib/tailscale", "/run/secrets*", "/run/user/*"},
	}
}

// lent opens a folder that is mounted read-only: its git folders are there, without what is secret.
func (w world) lent(dir string) project.Project {
	w.t.Helper()
	req := w.request(dir)
	req.Beside, req.Lent = true, true
	p, err := project.Open(req)
	must.Do(w.t, err)
	return p
}

func (w world) open(dir string) project.Project {
	w.t.Helper()
	p, err := project.Open(w.request(dir))
	if err != nil {
		w.t.Fatalf("open %s: %v", dir, err)
	}
	return p
}

// mounts renders a project's mounts with the home shortened to "~", one each:
// "ro ~/p/.git/hooks".
func (w world) mounts(p project.Project) []string {
	var out []string
	for _, m := range p.Mounts {
		out = append(out, string(m.Mode)+" "+strings.Replace(m.Path, w.home, "~", 1))
	}
	return out
}

func notes(p project.Project) string {
	var all []string
	for _, n := range p.Notes {
		all = append(all, n.Text)
	}
	return strings.Join(all, "\n")
}
