package session

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"claudebox/checks/kit/must"
)

// The search for links that lead out of a project ends: a start waits for it.
func TestLinksOfAHugeProjectAreLookedForWithABound(t *testing.T) {
	top := t.TempDir()
	err := errors.Join(os.Mkdir(top+"/.claude", 0o700), os.Mkdir(top+"/.agents", 0o700), os.Mkdir(top+"/.agents/closed", 0))
	for n := range 2 * mostEntries {
		err = errors.Join(err, os.WriteFile(fmt.Sprintf("%s/m%d", top, n), nil, 0o600),
			os.WriteFile(fmt.Sprintf("%s/.claude/m%d", top, n), nil, 0o600))
	}
	for _, link := range []string{"/a", "/z", "/.claude/a", "/.claude/z", "/.agents/z"} {
		err = errors.Join(err, os.Symlink("/etc", top+link))
	}
	must.Do(t, err)
	if got, want := linksOut(top), []string{top + "/a", top + "/.claude/a", top + "/.agents/z"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Where packages come from is set for all users of a company's machine.
func TestFilesOfPackageManagersOfTheMachineAreNamed(t *testing.T) {
	root := t.TempDir()
	must.Write(t, root+"/etc/pip.conf", "[global]\nindex-url = https://pypi.corp.example/simple\n")
	must.Write(t, root+"/etc/npmrc", "cafile=/etc/ssl/ca.pem\n")
	if got, want := filesOfMachine(root), []string{root + "/etc/pip.conf"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
