package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/secret/broker"
)

// world is a user with a home.
type world struct {
	t    testing.TB
	home string
}

func newWorld(t testing.TB) world {
	t.Helper()
	return world{t, must.Folder(t)}
}

func (w world) path(name string) string { return filepath.Join(w.home, name) }

func (w world) write(name, content string) {
	w.t.Helper()
	must.Write(w.t, w.path(name), content)
}

func (w world) read(name string) string {
	w.t.Helper()
	return must.Read(w.t, w.path(name))
}

func (w world) request() state.Request {
	return state.Request{
		Request: agenthome.Request{Home: w.path(".claudebox"), UserHome: w.home, Trusted: []string{"/src/p"}},
		UID:     os.Getuid(), Kind: state.Project, Root: "/src/p", Caches: []string{"home-.npm"},
		AskTokens: unasked, Key: broker.NewKey(),
	}
}

// unasked is a token endpoint for logins that do not run out.
func unasked(context.Context, []byte) (int, []byte, error) {
	return 0, nil, errors.New("asked for tokens")
}

// launch looks, prepares and gives the instance.
func (w world) launch(req state.Request) state.Instance {
	w.t.Helper()
	in, err := state.Look(req)
	must.Do(w.t, err)
	must.Do(w.t, in.Prepare())
	return in
}

// session is a launch with its end.
func (w world) session(req state.Request) state.Instance {
	w.t.Helper()
	in := w.launch(req)
	must.Do(w.t, in.Close())
	return in
}

// tree lists all below a folder of the home, folders with a slash at the end.
func (w world) tree(name string) []string {
	var all []string
	top := w.path(name)
	must.Do(w.t, filepath.WalkDir(top, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, at)
		if d.IsDir() {
			rel += "/"
		}
		all = append(all, rel)
		return nil
	}))
	slices.Sort(all)
	return all
}

// answers reads a JSON file of the agent's home.
func answers(t *testing.T, in state.Instance, name string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(in.Dir, ".claude", name))
	must.Do(t, err)
	var o map[string]any
	must.Do(t, json.Unmarshal(content, &o))
	return o
}

// wantRefusal expects an error that holds want, and a remedy that holds
// remedy.
func wantRefusal(t *testing.T, err error, want, remedy string) {
	t.Helper()
	var e *diag.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || !strings.Contains(e.Remedy, remedy) || e.Remedy == "" {
		t.Errorf("got %v (%+v), want %q and a remedy with %q", err, e, want, remedy)
	}
}
