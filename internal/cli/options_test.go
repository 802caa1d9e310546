package cli

import (
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/session/planning"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestSplit(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		want options
	}{
		"no words": {"", options{}},
		"an unknown flag and its value are the agent's": {"--model opus", options{Options: planning.Options{Words: []string{"--model", "opus"}}}},
		"own flags stand before the agent's words": {
			"--profile work --network none fix it",
			options{Options: planning.Options{Profile: "work", Network: "none", Words: []string{"fix", "it"}}},
		},
		"a value may follow an equals sign": {"--profile=work -c", options{Options: planning.Options{Profile: "work", Words: []string{"-c"}}}},
		"a short flag takes the next word":  {"-P work", options{Options: planning.Options{Profile: "work"}}},
		"-p is the agent's, unlike -P":      {"-p hello", options{Options: planning.Options{Words: []string{"-p", "hello"}}}},
		"--yes is claimed behind the agent's words": {
			"-p fix --model opus -y", options{Options: planning.Options{Yes: true, Words: []string{"-p", "fix", "--model", "opus"}}},
		},
		"--dry-run and --check are claimed anywhere": {
			"-c --dry-run --check", options{Options: planning.Options{Words: []string{"-c"}}, DryRun: true, Check: true},
		},
		"behind -- nothing is claimed":           {"-y -- -y --network none --", options{Options: planning.Options{Yes: true, Words: []string{"-y", "--network", "none", "--"}}}},
		"-- behind the agent's words is its own": {"-p fix -- -y", options{Options: planning.Options{Words: []string{"-p", "fix", "--", "-y"}}}},
		"mounts add up":                          {"--mount-ro a --mount-ro=b --mount-rw c", options{Options: planning.Options{MountRO: []string{"a", "b"}, MountRW: []string{"c"}}}},
		"-h alone is claudebox's":                {"-h", options{Help: true}},
		"--version alone is claudebox's":         {"--version", options{Version: true}},
		"so is it behind claudebox's own flags":  {"-y --version", options{Options: planning.Options{Yes: true}, Version: true}},
		"-v is --version":                        {"-P work -v", options{Options: planning.Options{Profile: "work"}, Version: true}},
		"-v behind -- is the agent's":            {"-- -v", options{Options: planning.Options{Words: []string{"-v"}}}},
		"-v behind its words is the agent's":     {"-p x -v", options{Options: planning.Options{Words: []string{"-p", "x", "-v"}}}},
		"-verbose is the agent's":                {"-verbose", options{Options: planning.Options{Words: []string{"-verbose"}}}},
		"--help among words is the agent's":      {"mcp --help", options{Options: planning.Options{Words: []string{"mcp", "--help"}}}},
		"a lone dash is the agent's":             {"-", options{Options: planning.Options{Words: []string{"-"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := split(strings.Fields(tc.args))
			must.Do(t, err)
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
		"one with two faults":                               {"--newtrok none", "say --network"},
		"one that is shortened":                             {"--prof tight", "say --profile"},
		"one in capitals":                                   {"--NETWORK=none", "say --network"},
		"one with a dash of a text":                         {"—network none", "say --network"},
		"one with its value in the same word":               {"--network:none", "say --network"},
		"a long flag with one dash, which is no -P":         {"-Profile tight", "say --profile"},
		"a switch with one dash":                            {"-yes", "say --yes"},
		"a value in the same word, behind the first word":   {"go -Ptight", "-Ptight must stand before the agent's first word (go)"},
		"the same behind a switch":                          {"-p go -yPtight", "-yPtight must stand before"},
		"the same behind a flag of the agent's":             {"-p go -vPtight", "-vPtight must stand before"},
		"a flag of the agent's joined to one":               {"-yc", "-yc joins claudebox's -y with a flag that is not claudebox's"},
		"one joined to a flag of the agent's":               {"-cP tight", "-cP joins claudebox's -P with a flag that is not claudebox's"},
		"one joined to two, behind the first word":          {"-p -cpy x", "-cpy joins claudebox's -y"},
		"nothing behind the equals sign of a short flag":    {"-P= fix", "-P needs a value"},
		"a switch in short with a value":                    {"-y=no", "-y takes no value"},
		"two profiles":                                      {"-P tight -P open", `--profile is given twice, as "tight" and as "open"`},
		"two tiers, by two spellings":                       {"--network none --network=full", `--network is given twice`},
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

// R9: `claudebox -Ptight -y go` launched the default profile, and gave -Ptight to the agent.
func TestEverySpellingOfAFlagIsOne(t *testing.T) {
	for _, spelling := range [][]string{
		{"-P", "tight", "-y"},
		{"-Ptight", "-y"},
		{"-P=tight", "-y"},
		{"-yP", "tight"},
		{"-yPtight"},
		{"-yP=tight"},
		{"-yyP", "tight"},
		{"--profile", "tight", "-y"},
		{"--profile=tight", "--yes"},
		{"-P", "tight", "-Ptight", "-yP=tight", "--profile=tight"},
	} {
		want := planning.Options{Profile: "tight", Yes: true}
		o, err := split(append(spelling, "go"))
		if err != nil || !slices.Equal(o.Words, []string{"go"}) {
			t.Errorf("claudebox %q go: words %q, %v", spelling, o.Words, err)
		}
		o.Words = nil
		if diff := cmp.Diff(want, o.Options); diff != "" {
			t.Errorf("claudebox %q go: -want +got\n%s", spelling, diff)
		}
		if words, _ := findCommand(append(spelling, "shell", "go")); len(words) < 4 || words[0] != "shell" {
			t.Errorf("claudebox %q shell go: command %q", spelling, words)
		}
		flags := pflag.NewFlagSet("a command", pflag.ContinueOnError)
		behind := addLaunchFlags(flags, shellFlags...)
		if err := flags.Parse(append(spelling, "go")); err != nil {
			t.Errorf("claudebox shell %q go: %v", spelling, err)
		}
		if diff := cmp.Diff(want, behind.Options); diff != "" {
			t.Errorf("claudebox shell %q go: -want +got\n%s", spelling, diff)
		}
	}
}

// `claudebox report` went to the agent in silence, as if claudebox had done something.
func TestAWordAloneCouldBeMeantForClaudebox(t *testing.T) {
	for line, want := range map[string]bool{
		"report": true, "-y report": true, "-P x run": true, "fix it": false, "-- report": false, "--continue": false, "-p report": false, "/init": false, "Report": false, "": false,
	} {
		args := strings.Fields(line)
		o, err := split(args)
		if got := isLone(args, o.Words); err != nil || got != want {
			t.Errorf("%s: %t, %v", line, got, err)
		}
	}
	if isLone([]string{"fix the bug"}, []string{"fix the bug"}) {
		t.Error("a sentence is no command")
	}
}
