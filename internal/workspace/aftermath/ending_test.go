package aftermath_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/aftermath"
)

// Who has looked at a folder before something in it became the user's does not know that it is to be protected.
func TestALaunchLooksAgainWhereAnEndCameBetween(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		folder      string
		yours, want bool
	}{
		"something became the user's": {"p", true, true},
		"in a folder above":           {".", true, true},
		"in a folder below":           {"p/sub", true, true},
		"elsewhere":                   {"other", true, false},
		"nothing did":                 {"p", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			home := w.path(".claudebox")
			p, known := w.open(), aftermath.Ends(home)
			end, err := aftermath.BeginEnd(home, []string{w.path(tc.folder)})
			must.Do(t, err)
			ends := (*aftermath.EndsError)(nil)
			_, err = aftermath.Begin(home, p, aftermath.Agent{Ends: known})
			if errors.As(err, &ends) != (tc.folder != "other") {
				t.Errorf("while it ends: %v", err)
			}
			end.Yours = tc.yours
			end.Over()
			if _, err = aftermath.Begin(home, p, aftermath.Agent{Ends: known}); errors.As(err, &ends) != tc.want {
				t.Errorf("afterwards: %v", err)
			}
			aftermath.Await(err, func(string) {})
			if _, err := aftermath.Begin(home, p, aftermath.Agent{Ends: aftermath.Ends(home)}); err != nil {
				t.Errorf("it has looked again: %v", err)
			}
		})
	}
}

func TestEndsAreKeptNoLongerThanALaunchMayTake(t *testing.T) {
	w := newWorld(t)
	home := w.path(".claudebox")
	for range 3 {
		end, err := aftermath.BeginEnd(home, []string{w.path("p")})
		must.Do(t, err)
		end.Yours = true
		end.Over()
		for _, name := range aftermath.Ends(home) {
			must.Do(t, os.Chtimes(home+"/ends/"+name, time.Time{}, time.Now().Add(-25*time.Hour)))
		}
	}
	if got := aftermath.Ends(home); len(got) != 1 {
		t.Errorf("there are %v", got)
	}
}
