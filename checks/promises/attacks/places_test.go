//go:build lab

package attacks_test

import (
	"os"
	"strings"
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

// A login lies where a variable says, which no list of usual places has. A folder around it is mounted.
func TestALoginIsMountedThatAVariableMovedElsewhere(t *testing.T) {
	for _, tc := range []struct{ variable, value, file, mount string }{
		{"CODEX_HOME", "~/own/codex", "own/codex/auth.json", "own/codex"},
		{"CODEX_HOME", "~/own/codex", "own/codex/auth.json", "own"},
		{"GEMINI_CLI_HOME", "~/own", "own/.gemini/oauth_creds.json", "own"},
		{"XDG_CONFIG_HOME", "~/own", "own/gh/hosts.yml", "own/gh"},
		{"XDG_DATA_HOME", "~/own", "own/opencode/auth.json", "own"},
		{"KUBECONFIG", "/nowhere:~/own/cluster", "own/cluster", "own"},
		{"GNUPGHOME", "~/link", "own/keys/ring", "own/keys"},
		{"DOCKER_CONFIG", "~/own[1]*", "own[1]*/config.json", "own[1]*/config.json"},
	} {
		t.Run(tc.variable+" "+tc.mount, func(t *testing.T) {
			w := newWorld(t)
			w.write(tc.file, canary)
			w.link("own/keys", "link")
			w = w.with(tc.variable + "=" + strings.ReplaceAll(tc.value, "~", w.home))
			got := w.attack("cat '"+w.path(tc.file)+"'", "--mount-ro", w.path(tc.mount))
			if got.status != 125 || !strings.Contains(got.stderr, tc.mount) || strings.Contains(got.stdout, canary) {
				t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
			}
		})
	}
}
