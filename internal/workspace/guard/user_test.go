package guard

import (
	"strings"
	"testing"
)

func TestWhatAsksIsNotTakenForWhatMakes(t *testing.T) {
	for line, makes := range map[string]bool{
		"git clone x": true, "git -C d stash pop": true, "git stash": true, "git pull": true, "git worktree add w": true, "gh repo clone x": true,
		"git status": false, "git stash list": false, "git stash show -p": false, "git worktree list": false, "git log": false,
	} {
		if got := makesAny(strings.Fields(line)); got != makes {
			t.Errorf("%s: %t", line, got)
		}
	}
}
