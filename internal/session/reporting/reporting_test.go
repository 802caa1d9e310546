package reporting

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/network/helper"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// closed is a terminal whose window is gone.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("input/output error") }

// launching is a call that prints to somebody.
func launching(home string, to io.Writer) planning.Call {
	c := planning.Call{}
	c.Folders.Home, c.Facts.Home, c.Facts.Cwd = home+"/.claudebox", home, home+"/project"
	c.Caller.Stderr, c.Caller.Columns = to, func() int { return 0 }
	return c
}

// ended is a session in a new home whose agent made .envrc.
func ended(t *testing.T) (home string, reports []aftermath.Report) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = errors.Join(os.Mkdir(home+"/project", 0o700), os.Mkdir(home+"/.claudebox", 0o700))
	}
	must.Do(t, err)
	c := launching(home, io.Discard)
	p, err := project.Open(project.Request{
		Dir: c.Facts.Cwd, Home: home, UID: os.Getuid(), Memory: aftermath.NewMemory(c.Folders.Home),
	})
	must.Do(t, err)
	begun, err := aftermath.Begin(c.Folders.Home, p, aftermath.Agent{})
	if err == nil {
		err = os.WriteFile(home+"/project/.envrc", nil, 0o600)
	}
	must.Do(t, err)
	return home, []aftermath.Report{begun.End()}
}

// told is what a launch prints of earlier sessions.
func told(t *testing.T, home string) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := Open(launching(home, &out)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestAKilledSessionsFolderWasMovedToAnotherFolder: the next launch gives it to its agent.
func TestAKilledSessionsFolderWasMovedToAnotherFolder(t *testing.T) {
	home, _ := ended(t)
	told(t, home)
	must.Do(t, os.MkdirAll(home+"/a/lib", 0o700), os.Mkdir(home+"/b", 0o700))
	p, err := project.Open(project.Request{
		Dir: home + "/a/lib", Home: home, UID: os.Getuid(), Beside: true, Memory: aftermath.NewMemory(home + "/.claudebox"),
	})
	must.Do(t, err)
	_, err = aftermath.Begin(home+"/.claudebox", p, aftermath.Agent{})
	must.Do(t, err)
	records, err := filepath.Glob(home + "/.claudebox/sessions/*")
	must.Do(t, err)
	content, err := os.ReadFile(records[0])
	must.Do(t, err, os.WriteFile(home+"/.claudebox/sessions/dead", content, 0o600)) // as nobody holds it
	must.Do(t, os.WriteFile(home+"/a/lib/.envrc", nil, 0o600), os.Rename(home+"/a/lib", home+"/b/lib"))
	var out bytes.Buffer
	c := launching(home, &out)
	c.Options.MountRW = []string{home + "/b/lib:/mnt"}
	_, err = Open(c)
	must.Do(t, err)
	if !strings.Contains(out.String(), ".envrc") {
		t.Errorf("got %q", out.String())
	}
}

func TestWhatCouldNotBePrintedIsPrintedByTheNextLaunch(t *testing.T) {
	home, reports := ended(t)
	To{call: launching(home, closed{})}.Tell(reports, nil)
	if _, err := Open(launching(home, closed{})); err != nil { // its terminal is closed, too
		t.Fatal(err)
	}
	quiet := launching(home, io.Discard) // as `claudebox check` makes one
	quiet.Options.NoReport = true
	if _, err := Open(quiet); err != nil {
		t.Fatal(err)
	}
	got := told(t, home)
	if !strings.Contains(got, "claudebox: a session in ~/project that began at ") || !strings.Contains(got, ".envrc") {
		t.Errorf("got %q", got)
	}
	if got := told(t, home); got != "" {
		t.Errorf("it is told again: %q", got)
	}
}

func TestWhatWasToldOnceIsNotToldAgain(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, home string, to *To){
		"as it was printed": func(_ *testing.T, _ string, to *To) { to.call.Caller.Stderr = io.Discard },
		"as it was written": func(t *testing.T, home string, to *To) {
			folder, err := beneath.Open(home)
			must.Do(t, err)
			t.Cleanup(func() { folder.Close() })
			to.folder, to.name = folder, "report"
		},
		"as nobody wants it": func(_ *testing.T, _ string, to *To) { to.call.Options.NoReport = true },
	} {
		t.Run(name, func(t *testing.T) {
			home, reports := ended(t)
			to := To{call: launching(home, closed{})}
			prepare(t, home, &to)
			to.Tell(reports, nil)
			if got := told(t, home); got != "" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// That a session was killed concerns nobody if it left nothing.
func TestAKilledSessionThatLeftNothingIsNotTold(t *testing.T) {
	var said bytes.Buffer
	c := launching(t.TempDir(), &said)
	show(c, aftermath.Report{Project: "/p", Unfinished: true})
	if said.Len() > 0 {
		t.Errorf("it says %q", &said)
	}
	if !show(c, aftermath.Report{Project: "/p", Unfinished: true, Cut: true}) || !strings.Contains(said.String(), "did not finish") {
		t.Errorf("of one that is not known whole it says %q", &said)
	}
}

func TestALostSummaryIsInTheReport(t *testing.T) {
	dir := t.TempDir()
	folder, err := beneath.Open(dir)
	must.Do(t, err)
	defer folder.Close()
	to := To{call: launching(dir, io.Discard), folder: folder, name: "report"}
	to.call.Options.NoReport = true
	to.Tell([]aftermath.Report{{Project: "/p\u202egpj"}}, &helper.Summary{Lost: true, Restarted: 2})
	var told struct{ Network helper.Summary }
	text, err := os.ReadFile(filepath.Join(dir, "report"))
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil || !told.Network.Lost || told.Network.Restarted != 2 || !bytes.Contains(text, []byte(`p\u202egpj`)) {
		t.Errorf("%v: %s", err, text)
	}
}
