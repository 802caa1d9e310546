//go:build lab

package sandbox_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/plan"
)

// report is what two sandboxes must have in common; the order in which mounts
// were made that lie at different places does not matter.
const report = `sort -s -k5,5 /proc/self/mountinfo; env; cat /proc/self/status | grep -E '^(Cap|NoNewPrivs|Seccomp:)'; 
	find / -path /proc -prune -o -path /nix/store -prune -o -printf '%M %U %s %p %l\n' | sort; cat /etc/passwd /etc/nix/nix.conf "$HOME/.gitconfig"; pwd; ls /proc/self/fd`

// ids are numbers that the kernel hands out anew for each mount, and names that
// bwrap makes up, and what the kernel notes on an overlay once it was used; resolver is a file that a launch follows the host's by, with
// a copy, where a script mounts the host's own.
var (
	ids      = regexp.MustCompile(`(?m)^\d+ \d+ \d+:\d+ |/bindfile[A-Za-z0-9]+|/proc/self/fd/\d+|uuid=on,`)
	resolver = regexp.MustCompile(`(?m)^.* /etc/resolv\.conf .*\n`)
)

// brokerProxy is the proxy of one launch.
var brokerProxy = regexp.MustCompile(`http://claudebox:[A-Z0-9]+@127\.0\.0\.1:(?:\d+|PORT)`) // a plan has no port yet

// ofALaunch is what each launch makes anew: placeholders of secrets, folders for
// what is held back, the socket for the agent's questions, and the certificates
// of its broker, which a script by hand does not have.
var ofALaunch = regexp.MustCompile(`cbx[a-z2-7]{30}|(?m)^d\S+ \d+ \d+ /run/claudebox/held/\S+ .*\n|^-r--r--r-- \d+ \d+ /etc/ssl/certs/(claudebox|ca-certificates)\.crt .*\n|` +
	`^.* /run/claudebox/why\b.*\n|^(d\S+ \d+) \d+ (?:/run/claudebox) .*\n`)

func comparable(text string) string {
	for _, of := range []*regexp.Regexp{ids, resolver, ofALaunch} {
		text = of.ReplaceAllString(text, "")
	}
	lines := strings.Split(brokerProxy.ReplaceAllString(text, "proxy"), "\n")
	return strings.Join(slices.Compact(lines), "\n") // what claudebox mounts takes along a mount that lies in it
}

// What is printed is what runs: a shell that follows the script has the same
// sandbox.
func TestThePrintedScriptMakesTheSandboxOfALaunch(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			w.everyVariable()
			w.env["LC_ALL"] = "C"
			delete(w.env, "SSL_CERT_FILE") // that there is no such file is told
			delete(w.env, "NIX_SSL_CERT_FILE")
			w.repository(t)
			w.write(t, ".gitconfig", "[user]\n\tname = Ada 'x' \"y\"\n\temail = ada@example.org\n")
			w.write(t, "data/it's", "")
			w.write(t, "project/.env", "SECRET=x\n")
			w.write(t, "project/.vscode/tasks.json", "{}\n")
			w.git(t, "project", "init", "-q", "inner")
			profile := w.profile(t, "env: {QUOTED: \"it's \\\"$HOME\\\" `id`\"}", "mounts: [{host: ~/data, sandbox: \"/mnt/a b'c\", mode: ro}]", "nix: {daemon: off}",
				"agent: {command: [bash, -euc, '"+strings.ReplaceAll(report, "'", "''")+"']}")
			flags := []string{"--profile", profile, "--network", tier} // by hand there is no store of its own
			launched := succeed(t, w.claudebox(append([]string{"--yes", "--no-report"}, flags...)...))
			script := succeed(t, w.claudebox(append([]string{"plan", "--format", "sh"}, flags...)...))
			hand := exec.Command("/bin/sh")
			hand.Dir, hand.Env, hand.Stdin = w.project, w.environment(), strings.NewReader(script)
			byHand := succeed(t, hand)
			wantEqual(t, comparable(byHand), comparable(launched))
			if exists(w.path("project/.git/commondir")) {
				t.Error("what stood in for a file stayed behind")
			}
			if strings.Contains(script, w.env["ANTHROPIC_API_KEY"]) {
				t.Error("the script holds the key")
			}
		})
	}
}

func TestThePrintedScriptNeedsTheAgentsHome(t *testing.T) {
	w := newWorld(t)
	hand := exec.Command("/bin/sh")
	hand.Dir, hand.Env = w.project, w.environment()
	hand.Stdin = strings.NewReader(succeed(t, w.claudebox("plan", "--format", "sh")))
	if got := run(t, hand); got.status != 125 || !strings.Contains(got.stderr, "never launched here") {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
}

// Nothing that prints a launch prints a secret, whoever brings it in.
func TestNoSecretIsPrinted(t *testing.T) {
	for name, words := range map[string][]string{
		"as a plan":               {"plan"},
		"as a plan in JSON":       {"plan", "--format", "json"},
		"as a plan in YAML":       {"plan", "--format", "yaml"},
		"as words":                {"plan", "--format", "argv"},
		"as a script":             {"plan", "--format", "sh"},
		"as a pinned plan":        {"plan", "--pinned"},
		"by a dry run":            {"--dry-run"},
		"by a dry run of a shell": {"shell", "--dry-run", "--", "true"},
		"by an audit":             {},
		"by a check":              {"check"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hideCanaries(t)
			for _, variable := range []string{"ANTHROPIC_API_KEY", "MY_TOKEN", "ADDED_TOKEN"} {
				w.env[variable] = canary + variable // one value by two names enters by none of them
			}
			w.env["CLAUDEBOX_EXTRA_ENV"] = "ADDED_TOKEN"
			w.env["CLAUDEBOX_PROFILE"] = w.profile(t, "extra_env_passthrough: [MY_TOKEN]",
				"mounts: [{host: ~/.aws, mode: ro, secret: true}]", "confirm: always")
			got := run(t, w.claudebox(words...))
			const part = "anary" // of a long one the middle is left out
			if strings.Contains(got.stdout+got.stderr, part) {
				t.Errorf("status %d\n%s\n%s", got.status, got.stdout, got.stderr)
			}
			if !strings.Contains(got.stdout+got.stderr, "MY_TOKEN") && name != "by a check" {
				t.Errorf("the variable is not named:\n%s\n%s", got.stdout, got.stderr)
			}
		})
	}
}

// files lists everything of the world, with times of change.
func (w *world) files(t *testing.T) []string {
	t.Helper()
	var list []string
	must.Do(t, filepath.WalkDir(w.home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		list = append(list, strings.TrimPrefix(path, w.home)+" "+info.Mode().String()+" "+info.ModTime().String())
		return err
	}))
	return list
}

func TestLookingChangesNothing(t *testing.T) {
	for name, words := range map[string][]string{
		"a dry run":            {"--dry-run"},
		"a dry run of a shell": {"shell", "--dry-run", "--", "touch", "made"},
		"a plan":               {"plan"},
		"a plan as a script":   {"plan", "--format", "sh"},
		"a check":              {"check"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".claude/settings.json", `{"model":"opus"}`)
			before := w.files(t)
			run(t, w.claudebox(words...))
			after := w.files(t)
			if name == "a check" { // it takes the steps of a launch in claudebox's cache
				own := func(line string) bool {
					at, _, _ := strings.Cut(line, " ")
					return slices.Contains([]string{"", "/.cache", "/.cache/claudebox"}, at)
				}
				before, after = slices.DeleteFunc(before, own), slices.DeleteFunc(after, own)
			}
			if !slices.Equal(before, after) {
				t.Error(difference(strings.Join(after, "\n"), strings.Join(before, "\n")))
			}
		})
	}
}

// What was evaluated may be remembered; nothing else is made, and nothing is
// fetched or built.
func TestADryRunOfAPackageThatIsNotThereMakesNoInstance(t *testing.T) {
	w := newWorld(t)
	file := w.profile(t, "packages: [unbuildableSample]")
	got := run(t, w.claudebox("--dry-run", "--profile", file))
	if got.status != 0 || !strings.Contains(oneLine(got.stderr), "to be fetched or built: unbuildableSample") {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
	for _, line := range w.files(t) {
		if strings.HasPrefix(line, "/.claudebox") {
			t.Errorf("made: %s", line)
		}
	}
}

func TestADryRunShowsTheWordsThatRun(t *testing.T) {
	w := newWorld(t)
	shown := succeed(t, w.claudebox("plan", "--format", "argv"))
	dry := run(t, w.claudebox("--dry-run"))
	wantEqual(t, dry.stdout, shown)
	expect.Contains(t, shown, "--unshare-user", "--disable-userns", "--cap-drop ALL", "--clearenv", "--remount-ro /\n")
}

// A plan that was kept gives the sandbox of the launch that it was made of.
func TestAKeptPlanLaunchesTheSameSandbox(t *testing.T) {
	w := newWorld(t)
	profile := w.profile(t, "packages: [hello]", "env: {A: b}")
	kept := w.write(t, "plan.json", succeed(t, w.claudebox("plan", "--pinned", "--profile", profile)))
	first := w.inside(t, report, "--profile", profile)
	wantEqual(t, comparable(w.inside(t, report, "--plan", kept)), comparable(first))
}

// Nothing of the user, the folder or the moment is in a plan.
func TestTwoUsersGetTheSamePlan(t *testing.T) {
	var lock sync.Mutex
	var plans []string
	t.Run("users", func(t *testing.T) {
		for _, user := range []string{"ada", "grace"} {
			t.Run(user, func(t *testing.T) {
				w := newWorld(t)
				w.env["USER"], w.env["LANG"], w.env["MY_TOKEN"] = user, "C."+user, user
				w.repository(t)
				profile := w.profile(t, "packages: [hello, jq]", "extra_env_passthrough: [MY_TOKEN]", "env: {A: b}", "mounts: [{host: ~/data, mode: ro, optional: true}]")
				text := succeed(t, w.claudebox("plan", "--pinned", "--profile", profile))
				lock.Lock()
				defer lock.Unlock()
				plans = append(plans, text)
			})
		}
	})
	if len(plans) != 2 || plans[0] != plans[1] {
		t.Errorf("%d plans; they differ in\n%s", len(plans), difference(plans[0], plans[1]))
	}
}

// A plan is made where there is neither a project to give away nor an agent: a
// build of Nix has none.
func TestAPlanNeedsNoAgentAndNoProject(t *testing.T) {
	w := newWorld(t)
	w.env["PATH"] = "/nonexistent"
	cmd := w.claudebox("plan", "--pinned", "--profile", w.profile(t, "packages: [hello]"))
	cmd.Dir = "/"
	if got := succeed(t, cmd); !strings.Contains(got, `"attr": "hello"`) {
		t.Errorf("the plan has no hello:\n%s", got)
	}
}

func TestADifferenceOfPlansNamesWhatChanged(t *testing.T) {
	w := newWorld(t)
	old := w.write(t, "old.json", succeed(t, w.claudebox("plan", "--pinned", "--profile", w.profile(t, "packages: [hello]"))))
	profile := w.profile(t, "packages: [hello, jq]", "extra_env_passthrough: [MY_TOKEN]", "mounts: [{host: ~/data, mode: rw}]", "network: none")
	got := succeed(t, w.claudebox("plan", "--diff", old, "--profile", profile))
	expect.Contains(t, got, "order on PATH", "+ MY_TOKEN", "from the host, secret  (wider)", "+ ~/data", "rw  (wider)", "full → none")
	if same := succeed(t, w.claudebox("plan", "--diff", old, "--plan", old)); !strings.Contains(same, "no change") {
		t.Errorf("got %s", same)
	}
}

func TestAPlanThatWasTamperedWithIsRefused(t *testing.T) {
	w := newWorld(t)
	kept := succeed(t, w.claudebox("plan", "--pinned", "--network", "none"))
	tampered := strings.Replace(kept, `"tier": "none"`, `"tier": "full"`, 1)
	if tampered == kept {
		t.Fatalf("no tier in\n%s", kept)
	}
	file := w.write(t, "plan.json", tampered)
	wantRefused(t, run(t, w.session("true", "--plan", file)), "plan")
	wantRefused(t, run(t, w.claudebox("plan", "--diff", file)), "plan")
}

// Anybody can write a plan with a digest that fits. One that says of keys that
// they belong to every sandbox would have them in no audit.
// TestAPlanChoosesWhatRunsOnTheHost: a file of the store, too, may be the agent's, who adds to it, or a flake's.
//
// Promise: no start unasked by what an agent wrote.
func TestAPlanChoosesWhatRunsOnTheHost(t *testing.T) {
	w := newWorld(t)
	made, err := plan.Decode("made", []byte(succeed(t, w.claudebox("plan", "--pinned"))))
	must.Do(t, err)
	for i, tool := range made.Pins.Tools {
		if tool.Name == "bwrap" { // whoever runs it does nothing, and says that all is well
			made.Pins.Tools[i].Path = filepath.Join(filepath.Dir(plan.ToolPath(made, "env")), "true")
		}
	}
	file := w.write(t, "forged.json", string(made.Encode()))
	wantEqual(t, succeed(t, w.session("echo inside", "--plan", file)), "inside\n")
}

// Promise: no start unasked by what an agent wrote.
func TestAForgedPlanIsRefused(t *testing.T) {
	for name, forge := range map[string]struct{ mount, tool string }{
		"that calls keys a part of the base":       {mount: `{"kind":"ro-bind","source":"${home}/.ssh","destination":"/mnt","why":"base"}`},
		"that brings a program for the host":       {tool: "evil"},
		"that mounts keys and says who asks":       {mount: `{"kind":"ro-bind","source":"${home}/.ssh","destination":"/mnt","why":"profile x:1"}`},
		"that mounts the project once more":        {mount: `{"kind":"bind","source":"${project}","destination":"/mnt","why":"base"}`},
		"that mounts it as a part of Nix":          {mount: `{"kind":"bind","source":"${project}","destination":"/mnt","why":"nix daemon"}`},
		"that mounts it as the user asks":          {mount: `{"kind":"bind","source":"${project}","destination":"/mnt","why":"profile x:1"}`},
		"that mounts history as the user's skills": {mount: `{"kind":"ro-bind","source":"${home}/.claude/projects","destination":"/mnt","why":"your ~/.claude"}`},
		"that mounts keys as the user's skills":    {mount: `{"kind":"ro-bind","source":"${home}/.ssh","destination":"/mnt","why":"your ~/.claude"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, ".ssh/id", canary)
			w.write(t, ".claude/projects/id", canary)
			made, err := plan.Decode("made", []byte(succeed(t, w.claudebox("plan", "--pinned"))))
			must.Do(t, err)
			if forge.mount != "" {
				var m plan.Mount
				must.Do(t, json.Unmarshal([]byte(forge.mount), &m))
				made.Mounts = append(made.Mounts, m)
				plan.SortMounts(made.Mounts)
			}
			for i := range made.Pins.Tools {
				if made.Pins.Tools[i].Name == "bwrap" && forge.tool != "" {
					made.Pins.Tools[i].Path = w.write(t, forge.tool, "#!/bin/sh\ntouch "+w.path("ran")+"\n")
					must.Do(t, os.Chmod(w.path(forge.tool), 0o755))
				}
			}
			file := w.write(t, "forged.json", string(made.Encode()))
			wantRefused(t, run(t, w.session("cat /mnt/id", "--plan", file)), "")
			if exists(w.path("ran")) {
				t.Error("the plan's program ran on the host")
			}
		})
	}
}

// U18: a profile with a package that there is none of was called valid.
func TestValidateLooksPackagesUp(t *testing.T) {
	w := newWorld(t)
	got := run(t, w.claudebox("profile", "validate", w.profile(t, "packages: [ripgrpe, jq]")))
	if got.status != 125 || !strings.Contains(got.stderr, "profile.yaml:3: ripgrpe is not in nixpkgs; did you mean ripgrep?") || got.stdout != "" {
		t.Errorf("status %d, %s%s", got.status, got.stdout, got.stderr)
	}
	right := w.profile(t, "packages: [jq]")
	wantEqual(t, succeed(t, w.claudebox("profile", "validate", right)), right+": valid\n")
	w = newWorldHere(t) // nothing is kept of an evaluation
	w.env["NIX_REMOTE"] = "unix:///nonexistent"
	got = run(t, w.claudebox("profile", "validate", w.profile(t, "packages: [ripgrpe]")))
	if got.status != 0 || !strings.Contains(got.stderr, "were not looked up") {
		t.Errorf("without an evaluator: status %d, %s%s", got.status, got.stdout, got.stderr)
	}
}
