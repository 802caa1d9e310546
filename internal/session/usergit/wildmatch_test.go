package usergit_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/realgit"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/gitconfig"
)

// patterns and texts are matched each with each, by git and by us.
var patterns = []string{
	"main", "m*", "*", "**", "*/*", "**/x", "x/**", "x/**/y", "x**y", "x/**y", "a?c", "a/?/c", "?", "feature/", "feature/*",
	"[a-c]bc", "[!a-c]bc", "[^a-c]bc", "[]a]bc", "[a-]bc", "[[:alpha:]]bc", "[[:digit:][:upper:]]bc", "[[:nothing:]]bc", "[abc",
	"[[:alpha:]-z]bc", "a\\bc", "abc\\", "*bc", "a*b*c", "**/**", "/**", "a/**/b/**/c", "***", "a***c", "[a/b]bc", "x/*/y",
	"[z-a]bc", "[\\a]bc", "[[-a]bc", "**x", "é", "[é]", "x/", "**/", "x/**/",
}

var texts = []string{
	"main", "x", "y", "x/y", "x/a/y", "x/a/b/y", "xy", "xay", "abc", "bbc", "zbc", "-bc", "Abc", "1bc", "a/b/c", "a/c", "a/x/c",
	"a/q/b/q/q/c", "feature/x", "feature/x/y", "é", "]bc", "feature",
}

func TestWildmatchIsGits(t *testing.T) {
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			matched := gitMatches(t, text)
			for i, pattern := range patterns {
				whole := pattern
				if strings.HasSuffix(pattern, "/") {
					whole += "**" // as conditions are read
				}
				if got, want := usergit.Wildmatch(whole, text, false), matched[i]; got != want {
					t.Errorf("%q: got %v, git says %v", pattern, got, want)
				}
			}
		})
	}
}

// gitMatches has git judge all patterns, as conditions on a branch.
func gitMatches(t *testing.T, branch string) map[int]bool {
	w := world{branch: branch, files: map[string]string{}}
	var conditions []gitconfig.Entry
	for i, pattern := range patterns {
		file := fmt.Sprintf("i%d", i)
		w.files[file] = fmt.Sprintf("[hit]\nn%d\n", i)
		conditions = append(conditions, gitconfig.Entry{Section: "includeIf", Subsection: "onbranch:" + pattern, Sub: true, Name: "path", Value: file})
	}
	w.files[".gitconfig"] = string(gitconfig.Render(conditions))
	home, repo := w.build(t)
	out, ok := realgit.Run(t, repo, []string{"HOME=" + home}, "config", "--list")
	if !ok {
		t.Fatal("git refuses the file")
	}
	matched := map[int]bool{}
	for line := range strings.Lines(out) {
		var n int
		if _, err := fmt.Sscanf(line, "hit.n%d", &n); err == nil {
			matched[n] = true
		}
	}
	return matched
}

func TestWildmatchEndsOnHostilePatterns(t *testing.T) {
	if usergit.Wildmatch(strings.Repeat("*a", 50), strings.Repeat("a", 200), false) {
		t.Log("matched within the budget")
	}
	if usergit.Wildmatch(strings.Repeat("**/a*", 50)+"b", strings.Repeat("a/", 2000), false) {
		t.Error("matched what ends in something else")
	}
}

// What a branch cannot be called, or git asks of folders only: bytes, and capitals.
func TestWildmatchComparesBytes(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		fold, want    bool
	}{
		{"A/[b-d]*", "a/Cx", true, true},
		{"A", "a", false, false},
		{"[[:upper:]]", "a", true, true},
		{"[[:upper:]]", "\xe9", true, false},
		{"\xc9", "\xe9", true, false},
		{"[\xc0-\xff]", "\xe9", false, true},
		{"[^a]", "/", false, false},
		{"[+-9]", "/", false, false},
		{"[/]", "/", false, false},
		{"[a-\xff]", "/", false, false},
		{"a\\/**", "a/b/c", false, true},
		{"[[:word:]]", "a", false, false},
		{strings.Repeat("*", 5000), "a", false, false},
	} {
		if got := usergit.Wildmatch(tc.pattern, tc.text, tc.fold); got != tc.want {
			t.Errorf("%q, %q, %t: got %t", tc.pattern, tc.text, tc.fold, got)
		}
	}
}

// people are users and what they have set; the made file must make git inside
// sign as git outside does.
var people = map[string]struct {
	config string
	env    []string
}{
	"name and e-mail":           {"[user]\nname = A\nemail = a@x\n", nil},
	"an author of its own":      {"[user]\nname = A\nemail = a@x\n[author]\nname = B\n[committer]\nemail = c@x\n", nil},
	"an author by variable":     {"[user]\nname = A\nemail = a@x\n", []string{"GIT_AUTHOR_NAME=E", "GIT_COMMITTER_EMAIL=e@x"}},
	"variables alone":           {"", []string{"GIT_AUTHOR_NAME=E", "GIT_AUTHOR_EMAIL=e@x", "GIT_COMMITTER_NAME=F", "GIT_COMMITTER_EMAIL=f@x"}},
	"EMAIL stands in":           {"[user]\nname = A\n", []string{"EMAIL=m@x"}},
	"EMAIL gives way":           {"[user]\nname = A\nemail = a@x\n", []string{"EMAIL=m@x"}},
	"signs that must be kept":   {"[user]\nname = \"Ann \\\"Q\\\" # ; Ünïcode\"\nemail = a+b@x\n", nil},
	"a name with blanks around": {"[user]\nname = \"  A  \"\nemail = a@x\n", nil},
	"no e-mail at all":          {"[user]\nname = A\nuseConfigOnly = true\n", nil},
}

func TestGitInsideSignsAsGitOutside(t *testing.T) {
	for name, p := range people {
		t.Run(name, func(t *testing.T) {
			outside := world{files: map[string]string{".gitconfig": p.config}, env: p.env}
			home, repo := outside.build(t)
			id, err := usergit.Pick(outside.sources(t, home, repo), lookup(p.env))
			must.Do(t, err)
			must.Do(t, os.WriteFile(home+"/made", usergit.Make(id, usergit.Own{}, nil, usergit.Access{}), 0o600))
			for _, who := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
				want, _ := realgit.Run(t, repo, append([]string{"HOME=" + home}, p.env...), "var", who)
				got, _ := realgit.Run(t, repo, []string{"HOME=/nonexistent", "GIT_CONFIG_GLOBAL=" + home + "/made"}, "var", who)
				if cutTime(got) != cutTime(want) {
					t.Errorf("%s: inside %q, outside %q", who, got, want)
				}
			}
		})
	}
}

// cutTime leaves "NAME <EMAIL>".
func cutTime(ident string) string {
	before, _, _ := strings.Cut(ident, ">")
	return before
}
