package project_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/workspace/project"
)

// wantRefusal expects an error that says want and has a remedy.
func wantRefusal(t testing.TB, req project.Request, want string) {
	t.Helper()
	_, err := project.Open(req)
	var e *diag.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || e.Remedy == "" {
		t.Errorf("%s: got %v, want %q and a remedy", req.Dir, err, want)
	}
}

func TestSomebodyElsesFolderIsRefused(t *testing.T) {
	w := newWorld(t)
	w.mkdir("p")
	req := w.request("p")
	req.UID = os.Getuid() + 1
	wantRefusal(t, req, "belongs to user")
}

func TestAFolderThatHoldsASecretPlaceIsRefused(t *testing.T) {
	w := newWorld(t)
	w.mkdir("data")
	req := w.request("data")
	req.Never = append(req.Never, "~/data/keys")
	wantRefusal(t, req, "secrets")
	req.Never = []string{"~/data/keys-*"}
	wantRefusal(t, req, "secrets")
}

func TestAFolderTheHostExecutesIsAllowedInRed(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{".config/home-manager", "dotfiles", "bin"} {
		w.mkdir(dir)
		p := w.open(dir)
		if len(p.Notes) != 1 || !p.Notes[0].Red {
			t.Errorf("%s: notes %+v, want one in red", dir, p.Notes)
		}
	}
}

func TestAFolderThatIsGoneIsRefused(t *testing.T) {
	wantRefusal(t, newWorld(t).request("gone"), "no such file")
}

func TestAProjectMayLieInTheHostsTmp(t *testing.T) {
	w := newWorld(t)
	w.mkdir("p")
	req := w.request("p")
	req.Never = append(req.Never, "/tmp", "/var/tmp")
	if _, err := project.Open(req); err != nil {
		t.Error(err)
	}
}

// TestALinkOfAnAgentsLeadsToAnotherProject: the next launch in `p/part` would give all of the other one.
func TestALinkOfAnAgentsLeadsToAnotherProject(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.repo("other", "x")
	w.mkdir("other/part/deep")
	w.link("../other/part", "p/part")
	w.link("other/part", "p/own")
	w.mkdir("p/other/part")
	w.link("other/part", "yours")
	for _, dir := range []string{"p/part", "p/part/deep"} {
		wantRefusal(t, w.request(dir), "it is a link that leads out of its repository, to ")
		_, err := project.Open(w.request(dir))
		_, to, _ := strings.Cut(diag.Remedy(err), "cd ")
		if to != strings.Replace(w.path(dir), "p/", "other/", 1) {
			t.Errorf("the remedy leads to %q", to)
		}
	}
	for _, dir := range []string{"p/own", "yours", "yours/deep", "other/part"} {
		if _, err := project.Open(w.request(dir)); err != nil {
			t.Error(err)
		}
	}
}

func TestAFolderThatASecretLinksToIsRefused(t *testing.T) {
	w := newWorld(t)
	w.mkdir("dotfiles/ssh")
	w.link("dotfiles/ssh", ".ssh")
	wantRefusal(t, w.request("dotfiles"), "secrets")
	wantRefusal(t, w.request("dotfiles/ssh"), "secrets")
}

func TestSignsInAHomesNameAreNoPattern(t *testing.T) {
	w := newWorld(t)
	for _, home := range []string{"a[b]", "c*", "d~e"} {
		for _, dir := range []string{".ssh/x", ".age-keys", ".claudebox", ".config/gh", "."} {
			w.mkdir(home + "/" + dir)
			req := w.request(home + "/" + dir)
			req.Home = w.path(home)
			req.Own = []string{w.path(home + "/.claudebox")}
			wantRefusal(t, req, "")
		}
	}
}

// The agent could open a folder that was closed, and make a repository in it
// that nobody judges.
func TestAClosedFolderIsHidden(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("NOT RUN: root is stopped by no mode: run by checks/as-user")
	}
	w := newWorld(t)
	w.repo("p", "x")
	must.Do(t, os.MkdirAll(w.path("p/a/closed"), 0o755))
	must.Do(t, os.Chmod(w.path("p/a/closed"), 0o311))
	t.Cleanup(func() { os.Chmod(w.path("p/a/closed"), 0o755) })
	p, err := project.Open(w.request("p"))
	must.Do(t, err)
	if got := w.mounts(p); !slices.Contains(got, "hidden ~/p/a/closed") || !slices.Contains(got, "pin ~/p/a") {
		t.Errorf("%q", got)
	}
}
