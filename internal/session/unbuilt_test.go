package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/internal/host"
	"claudebox/internal/profile"
)

// What is asked for and not there is refused, never left out.
func TestWhatIsNotBuiltIsRefused(t *testing.T) {
	for line, what := range map[string]string{
		"nix: {builds: off}": "nix.builds: off",
	} {
		t.Run(what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "p.yaml")
			if err := os.WriteFile(file, []byte("name: p\nextends: default\n"+line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			caller := Caller{}
			prof, _, err := profile.Load(file, caller.profiles(host.Facts{UID: os.Getuid()}))
			if err != nil {
				t.Fatal(err)
			}
			if refused := refuseWishes(prof); refused == nil || !strings.Contains(refused.Error(), what) {
				t.Errorf("%s: got %v", line, refused)
			}
		})
	}
}
