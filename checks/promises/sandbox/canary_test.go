//go:build lab

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/profile"
)

// canary is a secret of the host's. It has the shape of a token, so that who
// judges tokens takes it for one.
const canary = "ghp_CanaryCanaryCanaryCanaryCanary012345"

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// search looks for the canary everywhere in a sandbox.
func (w *world) search(flags ...string) *exec.Cmd {
	return w.withProbe([]string{"search", reversed(canary)}, flags...)
}

// findings are what a search printed but for its last line, which must say
// that it looked around at all.
func findings(t *testing.T, output string) []string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(output), "\n")
	last := len(lines) - 1
	var files, processes int
	if n, _ := fmt.Sscanf(lines[last], "searched %d files, %d processes", &files, &processes); n != 2 || files < 10 || processes < 2 {
		t.Fatalf("the search saw too little: %q", lines[last])
	}
	return lines[:last]
}

// wantNothing runs a search that must find nothing.
func (w *world) wantNothing(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	for _, line := range findings(t, succeed(t, cmd)) {
		t.Error(line)
	}
}

// tiers that can be launched.
var tiers = []string{"full", "none"}

// Promise: no variable of yours inside, unless named.
func TestASecretOfTheCallersEnvironmentIsNowhereInside(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range []string{
				"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD_NOT", "BASH_ENV", "IFS_", "PS1", "XDG_CONFIG_HOME_",
				"BASH_FUNC_x%%", "CLAUDE_CODE_OAUTH_TOKEN", "NIX_CONFIG", "NIX_PATH", "npm_config__auth", "MAIL", "OLDPWD", "HTTPS_PROXY",
			} {
				w.env[name] = canary
			}
			w.wantNothing(t, w.search("--network", tier))
		})
	}
}

// In tier none, where nothing leads to a broker, none of the secrets that others use
// enters, and in others placeholders of them do.
//
// Promise: no login, no API key, no token of git's.
func TestASecretThatIsUsedIsNowhereInside(t *testing.T) {
	for _, tier := range []string{"none", "full"} {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range []string{"GIT_TOKEN", "MY_TOKEN", "ANTHROPIC_API_KEY"} {
				w.env[name] = canary
			}
			w.write(t, ".config/foo/token", canary+"\n")
			profile := w.profile(t, "git: {hosts: {git.example.org: GIT_TOKEN}}", "secrets:",
				"  - {env: MY_TOKEN, hosts: [my.example.org]}",
				`  - {file: ~/.config/foo/token, env: FOO_TOKEN, hosts: ["foo.example:8443"], header: X-Foo-Token}`)
			w.wantNothing(t, w.search("--network", tier, "--profile", profile))
			got := w.inside(t, `for n in GIT_TOKEN MY_TOKEN FOO_TOKEN ANTHROPIC_API_KEY; do v=${!n-none}; echo $n ${v/*cbx*/placeholder}; done`,
				"--network", tier, "--profile", profile)
			want := "GIT_TOKEN V\nMY_TOKEN V\nFOO_TOKEN V\nANTHROPIC_API_KEY V\n"
			value := map[string]string{"none": "none", "full": "placeholder"}[tier]
			wantEqual(t, got, strings.ReplaceAll(want, "V", value))
		})
	}
}

// A file that is not there stops the launch; what enters as it is, is said to be
// readable, with the lines that would keep it outside.
func TestHowASecretIsUsedIsSaid(t *testing.T) {
	w := newWorld(t)
	profile := w.profile(t, "secrets: [{file: ~/.config/foo/token, env: FOO_TOKEN, hosts: [foo.example]}]")
	status, _, stderr := trial.Run(t, w.session("true", "--profile", profile))
	if status != 125 || !strings.Contains(stderr, "read the secret "+w.path(".config/foo/token")) || !strings.Contains(stderr, "remedy: make it") {
		t.Errorf("status %d: %s", status, stderr)
	}
	for _, tc := range [][2]string{
		{"secrets: [{env: GH_TOKEN, hosts: [github.com], secret: inside}]", "GH_TOKEN"},
		{"extra_env_passthrough: [GH_TOKEN]", "`secrets: [{env: GH_TOKEN, hosts: [github.com, api.github.com]}]` keeps it outside"},
	} {
		w.env["GH_TOKEN"] = canary
		profile = w.profile(t, tc[0])
		said := oneLine(w.audit(t, "--profile", profile))
		if !strings.Contains(said, tc[1]) || strings.Contains(said, canary) {
			t.Errorf("%s: the audit says\n%s", tc[0], said)
		}
		told := readable + "GH_TOKEN\n"
		wantEqual(t, succeedWarned(t, w.session("echo $GH_TOKEN", "--profile", profile), told), canary+"\n")
	}
}

// One name is brokered, and the same token passes by another, or in another's text.
func TestASecretUnderTwoNamesIsNowhereInside(t *testing.T) {
	w := newWorld(t)
	w.env["GH_TOKEN"], w.env["GITHUB_TOKEN"], w.env["CLONE_FROM"] = canary, canary, "https://x:"+canary+"@github.com/a/b"
	profile := w.profile(t, "secrets: [{env: GH_TOKEN, hosts: [github.com]}]", "extra_env_passthrough: [GITHUB_TOKEN, CLONE_FROM]")
	w.wantNothing(t, w.search("--profile", profile))
	wantEqual(t, w.inside(t, "[[ $GITHUB_TOKEN == \"$GH_TOKEN\" && $CLONE_FROM == https://x:$GH_TOKEN@github.com/a/b ]] && echo same",
		"--profile", profile), "same\n")
}

// A project's own profile, which nobody allowed, takes away what keeps a secret outside: its entry, the tier with a
// broker, or the name by which it would enter as a placeholder.
func TestAProfileThatNarrowsLetsNoSecretIn(t *testing.T) {
	for _, narrowed := range []string{
		"secrets: !replace []", "git: !replace {}", "network: none", "extra_env_passthrough: !replace [GITHUB_TOKEN, GIT_COPY, CLAUDE_COPY]",
	} {
		t.Run(narrowed, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range []string{"GH_TOKEN", "GITHUB_TOKEN"} {
				w.env[name] = canary + "-of-github"
			}
			for _, name := range []string{"GIT_TOKEN", "GIT_COPY"} {
				w.env[name] = canary + "-of-git"
			}
			for _, name := range []string{"CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_COPY"} {
				w.env[name] = canary + "-of-claude"
			}
			w.write(t, "project/.claudebox.yaml", narrowed+"\n")
			profile := w.profile(t, "secrets: [{env: GH_TOKEN, hosts: [github.com]}]", "git: {hosts: {git.example.org: GIT_TOKEN}}",
				"extra_env_passthrough: [GITHUB_TOKEN, GIT_COPY, CLAUDE_COPY, CLAUDE_CODE_OAUTH_TOKEN]")
			status, found, stderr := trial.Run(t, w.search("--profile", profile))
			if list := findings(t, found); status != 0 || len(list) > 0 {
				t.Errorf("status %d, %q: %s", status, list, stderr)
			}
		})
	}
}

// Its file lies where the agent reads, by the project or a mount, in a tier with a broker or without.
func TestASecretWhoseFileIsInsideIsRefused(t *testing.T) {
	w := newWorld(t)
	w.write(t, "tokens/mine", "of no usual form") // such a file is hidden by itself
	w.write(t, "project/mine", "of no usual form")
	w.write(t, "project/hidden", canary)
	const secret = "secrets: [{file: ~/%s, env: FOO_TOKEN, hosts: [foo.example]}]"
	for _, lines := range [][]string{
		{fmt.Sprintf(secret, "project/mine")},
		{fmt.Sprintf(secret, "project/mine"), "network: none"},
		{fmt.Sprintf(secret, "tokens/mine"), "mounts: [{host: ~/tokens, mode: ro}]"},
		{fmt.Sprintf(secret, "tokens/mine"), "mounts: [{host: ~/tokens/mine, mode: ro}]"},
	} {
		status, _, stderr := trial.Run(t, w.session("true", "--profile", w.profile(t, lines...)))
		if status != 125 || !strings.Contains(stderr, "the agent can read it") || !strings.Contains(stderr, "remedy: move it") {
			t.Errorf("%q: status %d: %s", lines, status, stderr)
		}
	}
	must.Do(t, os.Remove(w.path("project/mine")))
	w.wantNothing(t, w.search("--profile", w.profile(t, fmt.Sprintf(secret, "project/hidden"), "hide: [hidden]")))
}

// What cannot be sent, or would not be found in an answer, stops the launch, and
// its text is not said.
func TestWhatCannotBeASecretIsRefused(t *testing.T) {
	w := newWorld(t)
	for value, want := range map[string]string{
		"": "less than 6 bytes", "short": "less than 6 bytes", "two-lines\nof-text": "a line break", "\x7fELF\x01\xff\xfe": "a line break",
		strings.Repeat("long", 5000): "more than 16384 bytes",
	} {
		w.write(t, "token", value+"\n")
		profile := w.profile(t, "secrets: [{file: ~/token, env: FOO_TOKEN, hosts: [foo.example]}]")
		status, _, stderr := trial.Run(t, w.session("true", "--profile", profile))
		if status != 125 || !strings.Contains(stderr, "use the secret "+w.path("token")) || !strings.Contains(stderr, want) ||
			!strings.Contains(stderr, "(profile test:3)") || !strings.Contains(stderr, "remedy: ") || value != "" && strings.Contains(stderr, value) {
			t.Errorf("%.20q: status %d: %s", value, status, stderr)
		}
	}
}

// audit is what a dry run shows.
func (w *world) audit(t *testing.T, flags ...string) string {
	t.Helper()
	status, _, stderr := trial.Run(t, w.claudebox(append([]string{"--dry-run"}, flags...)...))
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	return stderr
}

// Every path of [profile.SecretPaths] below the home holds the canary, and so do the user's
// own configuration files that claudebox reads.
//
// Promise: no secret place.
func TestASecretFileOfTheHomeIsNowhereInside(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			w.hideCanaries(t)
			w.wantNothing(t, w.search("--network", tier))
		})
	}
}

// readByClaudebox are files of the home that claudebox reads, with a secret
// where programs keep one.
var readByClaudebox = map[string]string{
	".gitconfig": "[user]\n name = N\n email = e@example.org\n signingkey = CANARY\n[credential]\n helper = store CANARY\n" +
		"[http]\n extraHeader = Authorization: CANARY\n[url \"https://x:CANARY@example.org/\"]\n insteadOf = gh:\n[alias]\n x = !CANARY\n",
	".config/git/config":      "[core]\n sshCommand = ssh -i CANARY\n pager = CANARY\n",
	".config/git/credentials": "https://u:CANARY@example.org\n",
	".config/nix/nix.conf":    "access-tokens = github.com=CANARY\nnetrc-file = CANARY\n",
	".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"lent","refreshToken":"lent-too","expiresAt":4102444800000,"scopes":["user:inference"]},` +
		`"mcpOAuth":{"x":{"accessToken":"CANARY"}}}`,
	".claude/history.jsonl": `{"display":"CANARY"}` + "\n",
	".claude/settings.json": `{"model":"opus","env":{"GITHUB_TOKEN":"CANARY"},"apiKeyHelper":"echo CANARY",` +
		`"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"CANARY"}]}]}}`,
	".claude/projects/-home-other/session.jsonl":                  `{"message":"CANARY"}` + "\n",
	".claude/todos/1.json":                                        `["CANARY"]`,
	".claude/shell-snapshots/s.sh":                                "export TOKEN=CANARY\n",
	".claude/file-history/x/1":                                    "CANARY\n",
	".claude/paste-cache/1":                                       "CANARY\n",
	".claude.json":                                                `{"hasCompletedOnboarding":true,"mcpServers":{"x":{"env":{"TOKEN":"CANARY"}}},"projects":{"/x":{"history":["CANARY"]}}}`,
	".claudebox/instances/0123456789abcdef/.claude/history.jsonl": `{"display":"CANARY"}` + "\n",
	"project/.git/config": "[core]\n repositoryformatversion = 0\n[remote \"origin\"]\n url = https://u:CANARY@example.org/x\n" +
		"[credential]\n helper = CANARY\n[http]\n extraheader = CANARY\n",
	"project/.git/HEAD": "ref: refs/heads/main\n",
}

func (w *world) hideCanaries(t *testing.T) {
	t.Helper()
	w.inside(t, "true") // makes ~/.claudebox as it should be
	for name, content := range readByClaudebox {
		w.write(t, name, strings.ReplaceAll(content, "CANARY", canary))
	}
	w.folder(t, "project/.git/objects")
	w.folder(t, "project/.git/refs")
	for _, secret := range profile.SecretPaths {
		rest, below := strings.CutPrefix(secret.Path, "~/")
		if !below {
			continue
		}
		rest = strings.ReplaceAll(rest, "*", canary)
		if info, err := os.Stat(w.path(rest)); err == nil && !info.IsDir() {
			continue // one of the files above
		}
		w.write(t, filepath.Join(rest, "secret-"+canary), canary)
	}
	for _, name := range []string{"other/project/.env", "../other-user/.ssh/id_ed25519", "Documents/tax.txt", "notes-" + canary} {
		w.write(t, filepath.Join(w.home, name), canary)
	}
}

// What of [profile.SecretPaths] lies outside the home an unprivileged test cannot write, but
// for the folders of temporary files: the names themselves must be absent.
func TestASecretPathOfTheSystemIsAbsentInside(t *testing.T) {
	w := newWorld(t)
	made := map[string]string{ // of these there is one of the sandbox's own
		"/tmp": "/tmp", "/run/user/*": fmt.Sprintf("/run/user/%d", os.Getuid()), "/etc/nix/nix.conf": "/etc/nix/nix.conf",
	}
	var patterns, want []string
	for _, secret := range profile.SecretPaths {
		if !strings.HasPrefix(secret.Path, "~/") {
			patterns = append(patterns, secret.Path)
			if own := made[secret.Path]; own != "" {
				want = append(want, own)
			}
		}
	}
	slices.Sort(want)
	got := strings.Fields(w.inside(t, "shopt -s nullglob; for p in "+strings.Join(patterns, " ")+`; do [ -e "$p" ] && echo "$p"; done; true`))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("inside are %q; want %q", got, want)
	}
}

func TestTheHostsTemporaryFilesAreNowhereInside(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		f, err := os.CreateTemp(dir, "cb-"+canary)
		must.Do(t, err)
		t.Cleanup(func() { os.Remove(f.Name()) })
		if _, err := f.WriteString(canary); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	w.wantNothing(t, w.search())
}

// An agent keeps what it likes in its home, caches, /tmp and the project. An
// agent in another project must not find it.
func TestWhatAnotherProjectsAgentKeptIsNowhereInside(t *testing.T) {
	w := newWorld(t)
	other := *w
	other.project = w.folder(t, "other")
	other.inside(t, "for d in ~/.claude ~/.cache ~/.npm ~/.cargo ~ /tmp $XDG_RUNTIME_DIR .; do echo "+canary+" >$d/kept; done")
	if held := findings(t, succeed(t, other.search())); len(held) < 4 {
		t.Fatalf("the other project itself finds only %q", held)
	}
	w.wantNothing(t, w.search())
}

// bwrap hands every descriptor that it inherits to the agent: an open
// /etc/shadow was readable.
//
// Promise: no open file of yours.
func TestAnInheritedDescriptorIsNotThereInside(t *testing.T) {
	w := newWorld(t)
	secret := w.write(t, "secret", canary)
	for _, flags := range []int{unix.O_RDONLY, unix.O_RDWR, unix.O_PATH} {
		for _, name := range []string{secret, w.home} {
			if name == w.home && flags == unix.O_RDWR {
				continue
			}
			fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0)
			must.Do(t, err)
			file := os.NewFile(uintptr(fd), name)
			cmd := w.search()
			for number := 3; number <= 200; number++ {
				if number == 3 || number == 9 || number == 200 {
					cmd.ExtraFiles = append(cmd.ExtraFiles, file)
				} else {
					cmd.ExtraFiles = append(cmd.ExtraFiles, nil)
				}
			}
			w.wantNothing(t, cmd)
			file.Close()
		}
	}
}

// The searches above prove nothing if the probe is blind: each place that it
// looks at is shown to it once with the canary in it.
func TestTheSearchFindsACanaryThatWasLetIn(t *testing.T) {
	w := newWorld(t)
	large := strings.Repeat("x", 1<<20-7) + canary // small files are looked into, and covered
	w.write(t, "shown/"+canary+"/file", large)
	w.write(t, "project/file", large)
	w.link(t, "/"+canary, "project/link")
	w.env["TOKEN"], w.env["CLAUDEBOX_EXTRA_ENV"] = canary, "TOKEN"
	input, err := os.Open(w.write(t, "input", canary))
	must.Do(t, err)
	defer input.Close()
	cmd := w.search("--mount-ro", w.home+"/shown")
	cmd.Stdin = input
	got := findings(t, succeedWarned(t, cmd, readable+"TOKEN\n"))
	for _, want := range []string{
		"name HOME/shown/CANARY", "content of HOME/shown/CANARY/file", "content of HOME/project/file", "link HOME/project/link",
		"content of /proc/2/environ", "content of /proc/2/fd/0", "memory of /proc/1",
	} {
		want = "found: " + strings.ReplaceAll(want, "HOME", w.home)
		if !slices.Contains(got, want) {
			t.Errorf("not %q, but:\n%s", want, strings.Join(got, "\n"))
		}
	}
}
