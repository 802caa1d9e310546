package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// leastFollowed is how many remedies tests follow at least: a new remedy is followed, too, or this is said here.
const leastFollowed = 193

var quoted = regexp.MustCompile("`([^`]+)`")

// TestRemediesCanBeFollowed follows what can be followed without a sandbox: the commands and flags that remedies name
// exist, and the lines of a profile that they quote are valid. The table and the stories say which tests follow others.
func TestRemediesCanBeFollowed(t *testing.T) {
	list, err := remedies("../../internal")
	if err != nil || len(list) < 200 {
		t.Fatalf("%d remedies, %v", len(list), err)
	}
	program := filepath.Join(t.TempDir(), "claudebox")
	if out, err := exec.Command("go", "build", "-o", program, "claudebox/cmd/claudebox").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	manual, err := os.ReadFile("../../docs/man/claudebox.1")
	if err != nil {
		t.Fatal(err)
	}
	flags := strings.ReplaceAll(string(manual), `\-`, "-")
	count, tests := 0, follow()
	for _, r := range list {
		by := testOf(r, tests) != ""
		for _, flag := range regexp.MustCompile(`(?:^|[ (])(--[a-z]{2,}[a-z-]*)`).FindAllStringSubmatch(quoted.ReplaceAllString(r.text, ""), -1) {
			if by = true; flag[1] != "--help" && !strings.Contains(flags, flag[1]) {
				t.Errorf("%s: there is no flag %s", r.place, flag[1])
			}
		}
		for _, match := range quoted.FindAllStringSubmatch(r.text, -1) {
			if command, is := strings.CutPrefix(match[1], "claudebox "); is {
				by = true
				followCommand(t, r, program, strings.Fields(command))
			}
			if key, _, is := strings.Cut(match[1], ": "); is && regexp.MustCompile(`^[a-z_]+$`).MatchString(key) && !strings.Contains(match[1], "…") {
				by = true
				followLine(t, r, program, match[1])
			}
		}
		if by {
			count++
		}
	}
	for _, f := range tests { // that a remedy of a story is said, the story proves
		used := f.test == "TestStoriesOfRemedies"
		for _, r := range list {
			used = used || f.isOf(r)
		}
		if !used {
			t.Errorf("followed.txt: no remedy says %q", f.text)
		}
		if out, _ := exec.Command("grep", "-rlE", "--include=*_test.go", "^func "+f.test+"\\(", "..", "../../internal").Output(); len(out) == 0 {
			t.Errorf("followed.txt: there is no test %s", f.test)
		}
	}
	t.Logf("%d remedies, %d followed", len(list), count)
	if count < leastFollowed {
		t.Errorf("%d remedies are followed; want %d", count, leastFollowed)
	}
}

// followCommand asks a command for its help: it exists, and has the flags.
func followCommand(t *testing.T, r remedy, program string, words []string) {
	t.Helper()
	var command, flags []string
	for _, word := range words {
		switch {
		case strings.HasPrefix(word, "-"):
			flags = append(flags, word)
		case len(flags) == 0 && regexp.MustCompile(`^[a-z-]+$`).MatchString(word):
			command = append(command, word)
		}
	}
	out, err := exec.Command(program, append(command, "--help")...).Output()
	if err != nil {
		t.Errorf("%s: `claudebox %s`: %v", r.place, strings.Join(words, " "), err)
	}
	help := string(out)
	if name := strings.Join(append([]string{"claudebox"}, command...), " "); !strings.Contains(help, name) {
		t.Errorf("%s: there is no `%s`", r.place, name)
	}
	for _, flag := range flags {
		if name, _, _ := strings.Cut(flag, "="); name != "--" && name != "--help" && !strings.Contains(help, name) {
			t.Errorf("%s: `claudebox %s` has no flag %s", r.place, strings.Join(command, " "), name)
		}
	}
}

// followLine has claudebox read a line of a profile.
func followLine(t *testing.T, r remedy, program, line string) {
	t.Helper()
	dir := t.TempDir()
	if strings.HasPrefix(line, "optional:") || strings.HasPrefix(line, "secret:") { // it is said of a mount
		line = "mounts: [{host: ~/x, mode: ro, " + line + "}]"
	}
	if err := os.WriteFile(dir+"/p.yaml", []byte("name: p\n"+line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "profile", "validate", "./p.yaml")
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: `%s`: %v: %s", r.place, line, err, out)
	}
}
