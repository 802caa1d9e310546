package session

import (
	"testing"

	"claudebox/internal/session/planning"
)

// The remedy for a refused host works as it is written.
func TestTheRemedyForARefusedHostNamesTheProfile(t *testing.T) {
	for name, tc := range map[string]struct {
		options planning.Options
		want    string
	}{
		"the usual profile":   {planning.Options{}, "`claudebox allow-host a.test`"},
		"another":             {planning.Options{Profile: "my own.yaml"}, "`claudebox allow-host a.test -P 'my own.yaml'`"},
		"a tier by a flag":    {planning.Options{Network: "allow"}, ""},
		"a plan that is kept": {planning.Options{Plan: "plan.json"}, ""},
	} {
		if got := (planning.Call{Options: tc.options}).AllowHost("a.test"); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
