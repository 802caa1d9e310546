package aftermath

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
)

// TestReviewIsAFunctionOfValues compares two looks at a folder that is nowhere.
func TestReviewIsAFunctionOfValues(t *testing.T) {
	t.Parallel()
	saw := func(files ...survey.File) seen {
		return seen{Seen: project.Seen{Survey: &survey.Survey{Found: survey.Found{Files: files}}}}
	}
	file := func(rel string, inode uint64) survey.File {
		return survey.File{Rel: rel, Kind: beneath.Regular, Stamp: beneath.Stamp{Ino: inode}}
	}
	before := saw(file(".envrc", 1), file("Makefile", 2), file("justfile", 3))
	after := saw(file(".envrc", 4), file("Makefile", 5), file("package.json", 6))
	after.equal = map[string]bool{"Makefile": true}
	after.links = []link{{"out", "/home/u/rc", "a link"}, {"theirs", "/home/u/.claudebox/x", ""}}
	after.pipes = []string{"pipe", "shared/pipe"}
	p := place{
		was:    record{Noted: at("/p"), beside: []record{{Noted: at("/p/shared")}}},
		before: &before, after: after, agents: "/home/u/.claudebox",
	}
	told, repairs := review(p)
	var got []string
	for _, c := range told {
		got = append(got, c.Change+" "+c.Path)
	}
	for _, r := range repairs {
		got = append(got, r.Rel+" goes")
	}
	want := []string{"new out", "changed .envrc", "new package.json", "removed justfile", "theirs goes", "pipe goes"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Each of what an agent made was compared with all that was told of before: 30,000 repositories took two minutes.
func TestManyRepositoriesAreJudgedInTimeThatGrowsWithTheirNumber(t *testing.T) {
	t.Parallel()
	expect.Linear(t, 60_000, func(many int) {
		var after survey.Found
		for n := range many {
			dir := fmt.Sprintf("r/%06d", n)
			after.Git = append(after.Git, dir+"/.git")
			after.Files = append(after.Files, survey.File{Rel: dir + "/Makefile", Kind: beneath.Regular, Stamp: beneath.Stamp{Ino: 1}})
		}
		p := place{
			was:    record{Noted: at("/p")},
			before: &seen{Seen: project.Seen{Survey: &survey.Survey{}}}, after: seen{Seen: project.Seen{Survey: &survey.Survey{Found: after}}},
		}
		if told, _ := review(p); len(told) != many {
			t.Errorf("%d of %d are told", len(told), many)
		}
	})
}

// The next launch with --yes refused, and the report of the session that was why had been empty.
func TestMoreEntriesThanALaunchLooksAtAreTold(t *testing.T) {
	t.Parallel()
	for entries, want := range map[int]string{200_000: "", 200_001: "has 200001 entries now"} {
		now := project.Seen{Survey: survey.Of([]survey.Folder{{Rel: ".", Entries: entries}})}
		r := Report{Beyond: now.Beyond()}
		if got := r.Text("/home/u", 0); r.Silent() != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%d: %q", entries, got)
		}
	}
}

// at is what is noted of a session in a folder.
func at(dir string) Noted { return Noted{Scope: project.Scope{Path: dir}} }
