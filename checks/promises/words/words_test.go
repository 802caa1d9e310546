//go:build lab

package words_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/realgit"
	"claudebox/checks/kit/trial"
)

// block is a piece of code in a document.
type block struct {
	file, language, text string
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func blocks(t *testing.T) []block {
	t.Helper()
	var list []block
	for _, file := range documents(t) {
		text := must.Read(t, file)
		for _, match := range fence.FindAllStringSubmatch(text, -1) {
			list = append(list, block{filepath.Base(file), match[1], match[2]})
		}
	}
	return list
}

// user is a home with an agent that says its words, and a project in it.
func user(t *testing.T) (home string, env []string) {
	t.Helper()
	home = trial.Home(t, "cb-words-")
	for name, content := range map[string]string{
		".local/bin/claude": "#!/bin/sh\necho agent \"$@\"\n", "project/README.md": "A project\n", "datasets/a": "1\n",
	} {
		must.Program(t, filepath.Join(home, name), content)
	}
	for _, words := range []string{"init -q -b main", "add .", "commit -q --allow-empty -m first"} {
		realgit.Do(t, filepath.Join(home, "project"), nil, strings.Fields(words)...)
	}
	return home, []string{"HOME=" + home, "USER=u", "TERM=xterm", "LANG=C.UTF-8", "PATH=" + home + "/.local/bin:/usr/bin:/bin", "GH_TOKEN=ghp_x", "CLAUDEBOX_BIN=" + os.Getenv("CLAUDEBOX_BIN")}
}

// install writes a profile of the documents where its first line says.
func install(t *testing.T, home string, b block) {
	t.Helper()
	first, _, _ := strings.Cut(b.text, "\n")
	if name, is := strings.CutPrefix(first, "# ~/"); is {
		file := filepath.Join(home, name)
		must.Write(t, file, b.text)
	}
}

// elsewhere are lines that need what this machine may not have: a network, a
// real nixpkgs, somebody to ask. Those of root, and of the user whom root becomes, are
// run by checks/fresh.
var elsewhere = []string{"nix run ", "nix profile ", "nix copy ", "git add ", "claudebox --plan ", "# ", "cd project "}

// packages that the lab's nixpkgs lacks are left out of profiles here.
var lacking = regexp.MustCompile(`(?m)^packages: .*$`)

// ofSession matches the words of commands that are for a session which runs; besideSession begins one that ends soon.
var ofSession = regexp.MustCompile(`^ (?:watch|allow-host --session)\b`)

const besideSession = `"$CLAUDEBOX_BIN" -y --network allow shell -- sleep 3 & until ls ~/.claudebox/live 2>/dev/null | grep -q .; do sleep 0.1; done
`

func TestEveryLineForAShellRuns(t *testing.T) {
	home, env := user(t)
	all := blocks(t)
	for _, b := range all {
		if b.language == "yaml" {
			b.text = lacking.ReplaceAllString(b.text, "packages: [hello]")
			install(t, home, b)
		}
	}
	ran := 0
	for _, b := range all {
		if b.language != "console" && b.language != "bash" {
			continue
		}
		for line := range strings.Lines(b.text) {
			line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "  #")
			switch {
			case line == "":
				continue
			case slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(line, prefix) }), strings.Contains(line, "--pinned -P"):
				t.Logf("not run here: %s: %s", b.file, line)
				continue
			}
			words, is := strings.CutPrefix(line, "claudebox")
			if !is {
				t.Errorf("%s: nobody knows how to run %q", b.file, line)
				continue
			}
			// -y: nobody is there to be asked. A shell takes the line apart.
			script := os.Getenv("CLAUDEBOX_BIN") + " -y" + words
			if ofSession.MatchString(words) {
				script = besideSession + script + " && wait"
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
			cmd.Dir, cmd.Env = filepath.Join(home, "project"), env
			status, stdout, stderr := trial.Run(t, cmd)
			if strings.HasPrefix(line, "claudebox why ") && status == 1 {
				status = 0 // it says no
			}
			if status != 0 {
				t.Errorf("%s: %s: status %d\n%s%s", b.file, line, status, stdout, stderr)
			}
			ran++
		}
	}
	if ran < 8 {
		t.Errorf("%d lines were found", ran)
	}
}

func TestEveryProfileIsValid(t *testing.T) {
	home, env := user(t)
	for _, b := range blocks(t) {
		if b.language != "yaml" {
			continue
		}
		text := lacking.ReplaceAllString(b.text, "packages: [hello]")
		for _, line := range []string{"network: inet\n", "extends: default\n", "name: x\n"} { // what a piece of one leaves out
			if key, _, _ := strings.Cut(line, " "); !regexp.MustCompile(`(?m)^` + key).MatchString(text) {
				text = line + text
			}
		}
		file := filepath.Join(home, "x.yaml")
		must.Write(t, file, text)
		cmd := exec.CommandContext(t.Context(), os.Getenv("CLAUDEBOX_BIN"), "profile", "validate", file)
		cmd.Dir, cmd.Env = home, env
		if status, stdout, stderr := trial.Run(t, cmd); status != 0 {
			t.Errorf("%s: status %d\n%s\n%s%s", b.file, status, text, stdout, stderr)
		}
	}
}

func TestEveryPieceOfJSONIsOne(t *testing.T) {
	for _, b := range blocks(t) {
		if b.language == "json" && !json.Valid([]byte(b.text)) {
			t.Errorf("%s:\n%s", b.file, b.text)
		}
	}
}

// A link within the documents leads to a file, and to a heading that is there.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, file := range documents(t) {
		text := must.Read(t, file)
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			to := file
			if match[1] != "" {
				to = filepath.Join(filepath.Dir(file), match[1])
			}
			page, err := os.ReadFile(to)
			if err != nil || match[2] != "" && !slices.Contains(anchors(string(page)), match[2]) {
				t.Errorf("%s: %s leads nowhere: %v", filepath.Base(file), match[0], err)
			}
		}
	}
}

// anchors are the headings of a page, as links name them.
func anchors(page string) (list []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		list = append(list, strings.ReplaceAll(text, " ", "-"))
	}
	return list
}

// The README is read in a minute.
func TestTheReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("../../../README.md")
	if lines := strings.Count(string(text), "\n"); err != nil || lines > 120 {
		t.Errorf("%d lines, %v", lines, err)
	}
}

// named is a test by its name, in a row of a table.
var named = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")

// What checks/findings.md says is tested has a test of that name.
func TestEveryNamedTestIsThere(t *testing.T) {
	known := map[string]bool{}
	for _, pattern := range []string{"../../../internal/*/*_test.go", "../../../internal/*/*/*_test.go", "../*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			text := must.Read(t, file)
			for _, match := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)`).FindAllStringSubmatch(text, -1) {
				known[match[1]] = true
			}
		}
	}
	text := must.Read(t, "../../findings.md")
	rows := 0
	for line := range strings.Lines(text) {
		matches := named.FindAllStringSubmatch(line, -1)
		if len(matches) > 0 {
			rows++
		}
		for _, match := range matches {
			if !known[match[1]] {
				t.Errorf("there is no %s", match[1])
			}
		}
	}
	if rows < 21 {
		t.Errorf("%d rows name a test, not 21", rows)
	}
}
