//go:build lab

package sandbox_test

import (
	"fmt"
	"strings"
	"testing"
)

// What `claudebox why` answers is what a program inside finds.
func TestWhyTellsTheTruth(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	files := []string{
		"project/README.md", "project/.env", "project/.envrc", "project/sub/.env.local",
		"data/file", "data/deep/file", "single", "music/file", ".ssh/id", ".aws/credentials", ".bashrc", ".cache/mine", ".claude/settings.json",
		"beside/project/file",
	}
	for _, name := range files {
		if name != "project/README.md" {
			w.write(t, name, `{"`+canary+`":"`+name+`"}`+"\n")
		}
	}
	w.link(t, "../data", "project/linked")
	w.env["SECRET_TOKEN"], w.env["PLAIN"], w.env["GH_TOKEN"] = canary, "x", "y"
	flags := []string{"--profile", w.profile(t, "extra_env_passthrough: [GH_TOKEN]", "mounts: [{host: ~/single, sandbox: /mnt/single}]"), "--mount-ro", "~/data"}
	for _, name := range files {
		path := w.path(name)
		want := strings.TrimSpace(w.inside(t, fmt.Sprintf(`if grep -rqs -F %[1]q / --include=%[2]q --exclude-dir=proc --exclude-dir=nix --exclude-dir=sys; then echo yes; else echo no; fi`,
			content(t, w, name), base(name)), flags...))
		got := succeed(t, w.claudebox(append(append([]string{"why"}, flags...), path)...))
		if !strings.HasPrefix(got, want+":") {
			t.Errorf("%s: inside %s, but\n%s", name, want, got)
		}
	}
	for _, name := range []string{"SECRET_TOKEN", "PLAIN", "GH_TOKEN", "HOME", "PATH", "ANTHROPIC_API_KEY", "EDITOR", "CLAUDEBOX"} {
		want := strings.TrimSpace(w.inside(t, fmt.Sprintf(`if test -n "${%s+x}"; then echo yes; else echo no; fi`, name), flags...))
		got := succeed(t, w.claudebox(append(append([]string{"why"}, flags...), name)...))
		if !strings.HasPrefix(got, want+":") || strings.Contains(got, canary) {
			t.Errorf("%s: inside %s, but\n%s", name, want, got)
		}
	}
	for tier, want := range map[string]string{"full": "yes:", "none": "no:"} {
		if got := succeed(t, w.claudebox("why", "--network", tier, "192.0.2.1:80")); !strings.HasPrefix(got, want) {
			t.Errorf("tier %s: %s", tier, got)
		}
	}
	wantRefused(t, run(t, w.claudebox("why")), "takes one word")
	wantRefused(t, run(t, w.claudebox("why", "a:b:c")), "it is no path, no variable, and no host with a port")
}

// content is a line by which a file is known.
func content(t *testing.T, w *world, name string) string {
	t.Helper()
	first, _, _ := strings.Cut(w.read(t, name), "\n")
	return first
}

func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
