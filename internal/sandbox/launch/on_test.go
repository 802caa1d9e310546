package launch

import (
	"reflect"
	"testing"
)

// The checkout of a branch is made when the user has said yes: an agent's branch decides what it has no place for.
//
// Promise: what you saw is what runs.
func TestABranchLeavesOutWhatOthersHaveToMount(t *testing.T) {
	l := Launch{
		Setting: Setting{Project: "/p", Dir: "/p/below", Bash: "/bash"},
		Mounts: []Mount{
			{Destination: "/p", Why: "base"},
			{Destination: "/p/.env"},
			{Destination: "/p/key", IfThere: true},
			{Destination: "/p/layer", IfThere: true},
			{Destination: "/p/other", IfThere: true},
		},
		ReadOnly: []string{"/p/key"}, Warnings: []string{"/p/key"},
	}
	want := l
	want.Dir, want.Mounts = "/p", []Mount{l.Mounts[0], l.Mounts[1], l.Mounts[4]}
	got := l.On([]string{"/p", "/p/.env", "/p/key", "/p/layer", "/p/below"})
	if !reflect.DeepEqual(got, want) || len(l.Mounts) != 5 || l.Mounts[2].Destination != "/p/key" {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got := l.On([]string{"/p/other"}); got.Dir != "/p/below" || len(got.Mounts) != 4 {
		t.Errorf("%+v", got)
	}
}
