package aftermath_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/aftermath"
)

// reports are the names of the reports that are kept.
func (w world) reports() []string {
	w.t.Helper()
	files, err := filepath.Glob(w.path(".claudebox/reports/*"))
	must.Do(w.t, err)
	return files
}

// untold is a launch that cannot tell: its terminal is closed.
func (w world) untold() []aftermath.Report {
	w.t.Helper()
	reports := aftermath.Sweep(w.path(".claudebox"))
	for _, r := range reports {
		r.Told(false)
	}
	return reports
}

// What is told must be what was found, whatever the names are.
func TestWhatNobodyWasToldIsToldByALaterLaunch(t *testing.T) {
	t.Parallel()
	const script = `git init -q n; git -C n config core.fsmonitor x; echo a >"$(printf 'a\377')"; mkdir "$(printf 'd\377')"
		echo a >"$(printf 'd\377/.envrc')"; echo b >Makefile`
	for name, end := range map[string]func(w world, s *aftermath.Session) aftermath.Report{
		"of a session": func(_ world, s *aftermath.Session) aftermath.Report { return s.End() },
		"of a session that was killed": func(w world, s *aftermath.Session) aftermath.Report {
			s.Kill()
			return aftermath.Sweep(w.path(".claudebox"))[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("p/Makefile", "a")
			began := time.Now()
			s := w.begin()
			time.Sleep(50 * time.Millisecond)
			w.sh(script)
			first := end(w, s)
			if len(w.reports()) != 1 {
				t.Errorf("%q", w.reports())
			}
			if len(first.Changes) == 0 || len(first.Failures) > 0 {
				t.Fatalf("%+v", first)
			}
			if r := w.untold(); len(r) > 0 {
				t.Errorf("another launch tells while this one does: %+v", r)
			}
			first.Told(false)
			for range 2 {
				r := w.untold()
				if len(r) != 1 || !reflect.DeepEqual(r[0].Changes, first.Changes) || r[0].Project != w.path("p") {
					t.Fatalf("got  %+v\nwant %+v", r, first)
				}
				if !r[0].Unfinished || r[0].Began.Sub(began).Abs() > time.Minute {
					t.Errorf("%+v", r[0])
				}
			}
			if w.records() != "" {
				t.Error("the session would be judged again")
			}
			if r := w.sweep(); len(r) != 1 {
				t.Errorf("%+v", r)
			}
			if r := w.sweep(); len(r) > 0 || len(w.reports()) > 0 {
				t.Errorf("when it was told: %+v, %q", r, w.reports())
			}
		})
	}
}

// What was repaired is not found again, nor what was compared.
func TestWhatWasRepairedBeforeAKillIsTold(t *testing.T) {
	w := newWorld(t)
	s := w.begin()
	w.sh("git init -q n; git -C n config core.fsmonitor x; echo a >.envrc; git init -q --bare conversations; " +
		"mv conversations ..; git -C ../conversations config core.fsmonitor y; touch ../conversations/hooks/update")
	s.Break()
	reports := w.sweep()
	if len(reports) != 2 {
		t.Fatalf("%+v", reports)
	}
	wantLines(t, reports[1])
	if r := reports[0]; !r.Unfinished || time.Since(r.Began) > time.Minute {
		t.Errorf("%+v", r)
	}
	all := strings.Join(lines(reports[0]), "\n")
	expect.Contains(t, all, "new .envrc", "taken out n/.git", "taken out "+w.path("conversations"))
	if r := w.sweep(); len(r) > 0 || len(w.reports()) > 0 {
		t.Errorf("it is told again: %+v, %q", r, w.reports())
	}
}

// A session is killed while the agent runs: nothing was compared. Another one, too, before anybody is told.
func TestAKilledSessionsChangesAreTold(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; echo a >Makefile; echo a >package.json; git add .; git commit -qm x; echo a >mise.toml")
	time.Sleep(1100 * time.Millisecond) // what changed in the second before a session may be the session's, see record.begun
	for range 2 {
		s := w.begin()
		w.sh("echo a >.envrc; echo b >>package.json")
		s.Kill()
	}
	reports := w.sweep()
	if len(reports) != 2 {
		t.Fatalf("%+v", reports)
	}
	wantLines(t, reports[0], "changed .envrc", "changed package.json")
	wantLines(t, reports[1])
	if c := reports[0].Changes; c[0].Ordinary || !c[1].Ordinary {
		t.Errorf("%+v", c)
	}
	if r := w.sweep(); len(r) > 0 {
		t.Errorf("told again: %+v", r)
	}
}

func TestWhatWasComparedBeforeAKillIsTold(t *testing.T) {
	w := newWorld(t)
	s := w.begin()
	w.sh("echo a >.envrc")
	s.Break()
	reports := w.sweep()
	if len(reports) != 2 {
		t.Fatalf("%+v", reports)
	}
	wantLines(t, reports[0], "new .envrc")
	wantLines(t, reports[1])
}

// A failure is told by the launch that tries again, as it is then; what changed is not known any more by then.
func TestAReportWithFailuresIsToldBesideTheNextTry(t *testing.T) {
	w := newWorld(t)
	w.sh(stubbornBefore)
	s := w.begin()
	w.sh(stubborn)
	r := s.End()
	wantLines(t, r, append([]string{"new .envrc"}, r.Failures...)...)
	if len(r.Failures) != 1 {
		t.Fatalf("%+v", r)
	}
	r.Told(false)
	w.sh(mended)
	reports := w.sweep()
	if len(reports) != 2 {
		t.Fatalf("%+v", reports)
	}
	wantLines(t, reports[0], "new .envrc")
	if len(reports[1].Failures) > 0 {
		t.Errorf("when it is mended: %+v", reports[1])
	}
}

// A launch and an end that have nothing to tell make no file.
func TestWhatSaysNothingIsNotKept(t *testing.T) {
	w := newWorld(t)
	s := w.begin()
	s.End().Told(false)
	w.begin().Kill()
	for _, r := range w.untold() {
		if !r.Silent() {
			t.Errorf("%+v", r)
		}
	}
	if _, err := os.Lstat(w.path(".claudebox/reports")); !os.IsNotExist(err) {
		t.Errorf("there is a folder for reports: %v", err)
	}
}

// Where no launch can tell, as without a standard error, the reports do not grow without end.
func TestReportsThatNobodyIsToldAreBounded(t *testing.T) {
	w := newWorld(t)
	for n := range 19 {
		s := w.begin()
		time.Sleep(25 * time.Millisecond)
		w.sh(fmt.Sprintf("echo %d >.envrc; touch %d.mk", n, n))
		s.End().Told(false)
	}
	if r := w.untold(); len(r) != 19 {
		t.Errorf("%d are told", len(r))
	}
	if r := w.untold(); len(r) != 16 {
		t.Errorf("%d are told again", len(r))
	}
}

func TestAReportThatIsNoneGoesAway(t *testing.T) {
	w := newWorld(t)
	w.write(".claudebox/reports/empty", "")
	w.write(".claudebox/reports/cut", "claudebox report 2\nabc")
	w.write(".claudebox/reports/other", "claudebox report 0\n{}")
	must.Do(t, os.Symlink("/etc/passwd", w.path(".claudebox/reports/link")))
	if r := w.sweep(); len(r) > 0 || len(w.reports()) != 1 {
		t.Errorf("%+v, %q", r, w.reports())
	}
}
