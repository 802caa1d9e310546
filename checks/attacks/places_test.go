//go:build lab

package attacks_test

import (
	"os"
	"testing"
)

// What claudebox makes inside must not be made in a folder of the host that
// is mounted around it, where a link could lead it anywhere.
func TestAMountAroundWhatIsMadeInside(t *testing.T) {
	for _, place := range []string{"/bin", "/lib64", "/etc/claude-code", "/usr/bin", "/etc/nix", "/etc/ssl/certs", "/usr/share/zoneinfo"} {
		t.Run(place, func(t *testing.T) {
			w := newWorld(t)
			w.folder("source")
			w.claudebox(append([]string{"shell", "--yes"}, append(w.profile(`mounts: [{host: ~/source, sandbox: "`+place+`", mode: rw}]`), "--", "true")...)...)
			made, err := os.ReadDir(w.path("source"))
			if err != nil || len(made) > 0 {
				t.Errorf("made on the host: %v, %v", made, err)
			}
		})
	}
}
