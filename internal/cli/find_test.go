package cli

import (
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// U1: a command behind claudebox's own flags started the agent with it as the
// prompt, unasked, at full permissions.
func TestACommandIsFoundBehindOwnFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"plan":                           "plan",
		"-y plan":                        "plan",
		"-P work plan --all":             "plan --profile=work --all",
		"--network=none plan":            "plan --network=none",
		"-y shell -- make":               "shell --yes -- make",
		"-P work -y shell -- make":       "shell --profile=work --yes -- make",
		"--dry-run shell":                "shell --dry-run",
		"--dry-run plan":                 "plan",
		"--dry-run allow":                "allow --dry-run", // refused there, never dropped
		"-y --no-report why x":           "why x",
		"-y help":                        "help",
		"-P plan":                        "", // a profile of that name
		"-P plan plan":                   "plan --profile=plan",
		"-- plan":                        "",
		"-y -- plan":                     "",
		"-p plan":                        "", // -p is the agent's first word
		"-Pwork plan":                    "plan --profile=work",
		"-P=work plan":                   "plan --profile=work",
		"-yP work plan":                  "plan --profile=work",
		"-yPwork shell make":             "shell --yes --profile=work make",
		"-h plan":                        "plan --help",
		"-P":                             "",
		"-yc plan":                       "", // at fault, and refused
		"fix plan":                       "",
		"":                               "",
		"--model plan":                   "",
		"make a plan":                    "",
		"check -y":                       "check -y",
		"--mount-ro a --mount-rw b plan": "plan --mount-ro=a --mount-rw=b",
	} {
		words, near := findCommand(strings.Fields(args))
		if got := strings.Join(words, " "); got != want || near != "" {
			t.Errorf("claudebox %s: command %q (near %q), want %q", args, got, near, want)
		}
	}
}

func TestAMistypedCommandIsNoPrompt(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Write(t, "chek", "")
	for args, want := range map[string]string{
		"plann":                 "plan",
		"-y plann":              "plan",
		"pan":                   "plan",
		"lpan":                  "plan",
		"plam --format json":    "plan",
		"shel make":             "shell",
		"intsance list":         "instance",
		"-P w chck":             "check",
		"chek":                  "", // a file's name
		"plans for the weekend": "", // a sentence
		"plans, please":         "",
		"update":                "", // Claude Code's own
		"mcp list":              "",
		"doctor":                "",
		"-- plann":              "",
		"-p plann":              "",
	} {
		if words, near := findCommand(strings.Fields(args)); near != want || words != nil {
			t.Errorf("claudebox %s: near %q, words %q; want %q", args, near, words, want)
		}
	}
}

func TestOneEditIsOne(t *testing.T) {
	for _, word := range []string{"plann", "pla", "plaan", "pkan", "lpan", "plna", "xplan"} {
		if !oneEdit(word, "plan") {
			t.Errorf("%s is one edit from plan", word)
		}
	}
	for _, word := range []string{"plan", "plannn", "pl", "nalp", "lpna", "", "pkam"} {
		if oneEdit(word, "plan") {
			t.Errorf("%s is not one edit from plan", word)
		}
	}
}
