package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/profile"
)

// TestRemediesCanBeFollowed follows what can be followed without a sandbox: the commands and flags that remedies name
// exist, and the lines of a profile that they quote are valid.
func TestRemediesCanBeFollowed(t *testing.T) {
	list, err := remedies("../../../internal")
	if err != nil || len(list) < 200 {
		t.Fatalf("%d remedies, %v", len(list), err)
	}
	program := filepath.Join(t.TempDir(), "claudebox")
	if out, err := exec.Command("go", "build", "-o", program, "claudebox/cmd/claudebox").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	manual := must.Read(t, "../../../docs/man/claudebox.1")
	flags := strings.ReplaceAll(manual, `\-`, "-")
	for _, r := range list {
		for _, flag := range r.flags() {
			if flag != "--help" && !strings.Contains(flags, flag) {
				t.Errorf("%s: there is no flag %s", r.place, flag)
			}
		}
		for _, command := range r.commands() {
			followCommand(t, r, program, strings.Fields(command))
		}
		for _, line := range r.lines() {
			followLine(t, r, program, line)
		}
	}
}

// TestEveryRemedyIsFollowed fails for a remedy that no test follows, and for a line of the tables that is of none.
func TestEveryRemedyIsFollowed(t *testing.T) {
	list, err := remedies("../../../internal")
	must.Do(t, err)
	tests, faults := testsOf(list)
	for _, fault := range faults {
		t.Error(fault)
	}
	seen := map[string]bool{}
	for _, f := range follow() {
		if seen[f.test] {
			continue
		}
		seen[f.test] = true
		if out, _ := exec.Command("grep", "-rlE", "--include=*_test.go", "^func "+f.test+"\\(", "..", "../../../internal").Output(); len(out) == 0 {
			t.Errorf("there is no test %s", f.test)
		}
	}
	reasons := exceptions()
	if most := 11; len(reasons) > most {
		t.Errorf("%d exceptions; want %d at most", len(reasons), most)
	}
	for _, r := range list {
		_, excepted := reasons[r.text]
		delete(reasons, r.text)
		if followed := tests[r.text] != ""; !followed && !excepted {
			t.Errorf("%s: no test follows %q", r.place, r.text)
		} else if followed && excepted {
			t.Errorf("exceptions.txt: %s follows %q", tests[r.text], r.text)
		}
	}
	for text := range reasons {
		t.Errorf("exceptions.txt: there is no remedy %q", text)
	}
	t.Logf("%d of %d remedies are followed", len(tests), len(list))
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
	if line == "secret: inside" { // it is said of a variable
		line = "secrets: [{env: T, hosts: [h.example], " + line + "}]"
	} else if strings.HasPrefix(line, "optional:") || strings.HasPrefix(line, "secret:") { // it is said of a mount
		line = "mounts: [{host: ~/x, mode: ro, " + line + "}]"
	}
	must.Write(t, dir+"/p.yaml", "name: p\n"+line+"\n")
	cmd := exec.Command(program, "profile", "validate", "./p.yaml")
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: `%s`: %v: %s", r.place, line, err, out)
	}
}

// profiles are the profiles that can be read, by their names.
type profiles map[string]string

func (p profiles) Open(ref string, _ diag.Position) (name, file string, src []byte, err error) {
	if src, is := p[ref]; is {
		return ref, ref, []byte(src), nil
	}
	return "", "", nil, fmt.Errorf("there is no %s", ref)
}

// TestEditsOfProfiles makes each edit of edits.txt: the remedy is said before, and not after.
func TestEditsOfProfiles(t *testing.T) {
	lines := strings.NewReplacer("¶", "\n", `\xe9`, "\xe9")
	said := func(text string) (remedies []string, err error) {
		_, warnings, err := profile.Load("x", profiles{"x": "name: x\n" + lines.Replace(text)})
		var problems diag.Problems
		errors.As(err, &problems)
		for _, p := range slices.Concat(problems, warnings) {
			remedies = append(remedies, p.Remedy)
		}
		return remedies, err
	}
	for _, e := range edits() {
		says := func(r string) bool { return pattern(e.says[0]).MatchString(r) }
		if before, err := said(e.given); !slices.ContainsFunc(before, says) {
			t.Errorf("%s\n%q, %v: says %q, not %q", e.given, before, err, before, e.says[0])
		}
		if after, err := said(e.then); err != nil || slices.ContainsFunc(after, says) {
			t.Errorf("%s\n%v, %q", e.then, err, after)
		}
	}
}
