//go:build lab

package words_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// section is an option in docs/options.md; example its example, in a block or
// within the line.
var (
	section = regexp.MustCompile("(?ms)^## `(programs\\.claudebox[^`]*)`$(.*?)(?:^## |\\z)")
	example = regexp.MustCompile("(?ms)^\\*Example:\\*\\s+(?:`([^`]+)`$|```nix\n(.*?)^```$)")
)

// modules writes each piece of Nix in the documents to a file, as a function of
// our flake to a module.
func modules(t *testing.T) (files []string) {
	t.Helper()
	dir := trial.Home(t, "cb-nix-")
	add := func(text string) {
		file := filepath.Join(dir, fmt.Sprintf("shown-%d.nix", len(files)))
		must.Write(t, file, "{ claudebox }: { pkgs, ... }: {\n"+text+"\n}\n")
		files = append(files, file)
	}
	for _, b := range blocks(t) {
		if b.language == "nix" && b.file != "options.md" {
			add(b.text)
		}
	}
	options := must.Read(t, "../../../docs/options.md")
	text := options
	for {
		at := section.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		name, body := text[at[2]:at[3]], text[at[4]:at[5]]
		text = text[at[5]:]
		if shown := example.FindStringSubmatch(body); shown != nil {
			option := strings.ReplaceAll(name, "<name>", "shown")
			add("imports = [ { programs.claudebox = { enable = true; profiles.work = { }; }; } ];\n" + option + " = " + shown[1] + shown[2] + ";")
		}
	}
	if len(files) < 8 {
		t.Fatalf("%d pieces of Nix were found", len(files))
	}
	return files
}

// evaluate has the modules evaluated by an expression's homes: together, as they
// have most in common, and else one by one.
func evaluate(t *testing.T, expression string, more ...string) {
	t.Helper()
	shown := func(files ...string) (status int, stderr string) {
		words := expression + ".shown [ " + strings.Join(files, " ") + " ]"
		args := append([]string{"--eval", "--strict", "--expr", words}, more...)
		status, _, stderr = trial.Run(t, exec.CommandContext(t.Context(), "nix-instantiate", args...))
		return status, stderr
	}
	files := modules(t)
	if status, _ := shown(files...); status == 0 {
		return
	}
	for _, file := range files {
		if status, stderr := shown(file); status != 0 {
			text, _ := os.ReadFile(file)
			t.Errorf("%s\n%s", text, stderr)
		}
	}
}

// TestEveryLineOfNixIsAModule of the lab's home-manager. The lab's packages are
// imported from the store, so they may have to be written there.
func TestEveryLineOfNixIsAModule(t *testing.T) {
	root, lab := "../../..", os.Getenv("CLAUDEBOX_NIXPKGS")
	if _, err := os.Stat(lab); err != nil {
		t.Skip("NOT RUN: there is no lab here")
	}
	evaluate(t, fmt.Sprintf("(import %s/checks/promises/flake/testdata/odd-lab.nix { lab = %s; root = %[1]s; })", root, lab), "--read-write-mode")
}

// TestEveryLineOfNixIsAModuleOfTheRealHomeManager, where the checkouts are.
func TestEveryLineOfNixIsAModuleOfTheRealHomeManager(t *testing.T) {
	inputs := os.Getenv("CLAUDEBOX_REAL_INPUTS")
	if inputs == "" {
		t.Skip("NOT RUN: CLAUDEBOX_REAL_INPUTS names no folder with the real inputs")
	}
	dir, root := trial.Home(t, "cb-real-"), "../../.."
	if out, err := exec.CommandContext(t.Context(), root+"/checks/real/prepare", inputs, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	evaluate(t, fmt.Sprintf(`(import %s/checks/real/odd.nix { folder = "%s"; root = %[1]s; system = "x86_64-linux"; })`, root, dir))
}
