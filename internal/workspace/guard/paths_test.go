package guard_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// An agent exchanges folders on the way to what is held back for links to the user's. So nothing is changed by a path,
// which such a link leads elsewhere, but by the folder that is open.
func TestNothingIsChangedByAPathThatAnAgentMayExchange(t *testing.T) {
	changes := regexp.MustCompile(`\b(os\.(Remove|Rename|Mkdir|Write|Create|Symlink|Link|Ch|OpenFile|Truncate)\w*|unix\.(Rename|Unlink|Mkdir|Symlink|Link|Chmod))\(`)
	files, err := filepath.Glob("*.go")
	must.Do(t, err)
	looked := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		looked++
		for n, line := range strings.Split(must.Read(t, file), "\n") {
			if changes.MatchString(line) {
				t.Errorf("%s:%d: %s", file, n+1, strings.TrimSpace(line))
			}
		}
	}
	if looked == 0 {
		t.Error("no file was looked at")
	}
}
