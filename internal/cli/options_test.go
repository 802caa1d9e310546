package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"claudebox/internal/session"
)

func TestSplit(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		want options
	}{
		"no words": {"", options{}},
		"an unknown flag and its value are the agent's": {"--model opus", options{Options: session.Options{Words: []string{"--model", "opus"}}}},
		"own flags stand before the agent's words": {
			"--profile work --network none fix it",
			options{Options: session.Options{Profile: "work", Network: "none", Words: []string{"fix", "it"}}},
		},
		"a value may follow an equals sign": {"--profile=work -c", options{Options: session.Options{Profile: "work", Words: []string{"-c"}}}},
		"a short flag takes the next word":  {"-P work", options{Options: session.Options{Profile: "work"}}},
		"-p is the agent's, unlike -P":      {"-p hello", options{Options: session.Options{Words: []string{"-p", "hello"}}}},
		"--yes is claimed behind the agent's words": {
			"-p fix --model opus -y", options{Options: session.Options{Yes: true, Words: []string{"-p", "fix", "--model", "opus"}}},
		},
		"--dry-run and --check are claimed anywhere": {
			"-c --dry-run --check", options{Options: session.Options{Words: []string{"-c"}}, DryRun: true, Check: true},
		},
		"behind -- nothing is claimed":           {"-y -- -y --network none --", options{Options: session.Options{Yes: true, Words: []string{"-y", "--network", "none", "--"}}}},
		"-- behind the agent's words is its own": {"-p fix -- -y", options{Options: session.Options{Words: []string{"-p", "fix", "--", "-y"}}}},
		"mounts add up":                          {"--mount-ro a --mount-ro=b --mount-rw c", options{Options: session.Options{MountRO: []string{"a", "b"}, MountRW: []string{"c"}}}},
		"-h alone is claudebox's":                {"-h", options{Help: true}},
		"--version alone is claudebox's":         {"--version", options{Version: true}},
		"--help among words is the agent's":      {"mcp --help", options{Options: session.Options{Words: []string{"mcp", "--help"}}}},
		"a lone dash is the agent's":             {"-", options{Options: session.Options{Words: []string{"-"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := split(strings.Fields(tc.args))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Split(%q): -want +got\n%s", tc.args, diff)
			}
		})
	}
}

func TestSplitRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ args, want string }{
		"a flag that widens, behind the agent's first word": {"-p hello --network full", "--network must stand before the agent's first word (-p)"},
		"a mount behind the agent's first word":             {"fix --mount-rw /", "--mount-rw must stand before"},
		"a profile behind the agent's first word":           {"fix -P wide", "-P must stand before"},
		"a flag without its value":                          {"--profile", "--profile needs a value: NAME|FILE"},
		"an empty value, by a variable that is not set":     {`-P "" fix`, "-P needs a value: NAME|FILE"},
		"an empty value behind an equals sign":              {"--network= fix", "--network needs a value: TIER"},
		"a switch with a value":                             {"--yes=no", "--yes takes no value"},
		"a mistyped flag, which would leave all open":       {"--netwrk none", "there is no --netwrk: say --network, or put `--` before it"},
		"a mistyped flag with its value":                    {"--nework=none -p x", "there is no --nework: say --network"},
		"a flag with one dash":                              {"-network none", "say --network"},
		"a mistyped flag behind the agent's words":          {"-p x --dryrun", "say --dry-run"},
	} {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(tc.args)
			for i := range args {
				args[i] = strings.Trim(args[i], `"`)
			}
			_, err := split(args)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Split(%q) = %v; want %q in it", tc.args, err, tc.want)
			}
		})
	}
}

// A session is resumed in the same sandbox, not in a wider one.
func TestResumingTakesTheSameSandbox(t *testing.T) {
	o, err := split([]string{"-P", "work", "-y", "--network", "none", "--mount-ro", "a b", "-p", "x"})
	if got, want := o.sandboxWords(), "--profile work --network none --mount-ro 'a b' "; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestATerminalThatOnlyPrintsGetsNoColour(t *testing.T) {
	for term, want := range map[string]bool{"": false, "dumb": false, "xterm-256color": true} {
		t.Setenv("TERM", term)
		if got := isCapable(); got != want {
			t.Errorf("TERM=%q: %v", term, got)
		}
	}
}
