package gituse

import (
	"slices"
	"testing"

	"claudebox/internal/host"
)

func TestPathsInACommandOfGitsConfigurationAreFound(t *testing.T) {
	got := pathsIn(host.Facts{Home: "/home/u", Cwd: "/home/u/project"}, `!sh -c 'x=/opt/a; ~/bin/b "$@" | c/d >/tmp/e'`)
	if want := []string{"/opt/a", "/home/u/bin/b", "/tmp/e"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
