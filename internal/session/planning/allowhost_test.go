package planning

import (
	"testing"
)

// The remedy for a refused host works as it is written.
func TestTheRemedyForARefusedHostNamesTheProfile(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"the usual profile":   {Options{}, "`claudebox allow-host a.test`"},
		"another":             {Options{Profile: "my own.yaml"}, "`claudebox allow-host a.test -P 'my own.yaml'`"},
		"a tier by a flag":    {Options{Network: "allow"}, ""},
		"a plan that is kept": {Options{Plan: "plan.json"}, ""},
	} {
		if got := (Call{Options: tc.options}).AllowHost("a.test"); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
