package aftermath_test

import (
	"fmt"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/internal/workspace/aftermath"
)

func TestReportKeepsItsColumnsAtANarrowTerminal(t *testing.T) {
	t.Parallel()
	r := aftermath.Report{Changes: []aftermath.Change{
		{Path: ".envrc", Change: aftermath.New, Means: "direnv runs it when you enter the folder, once you allow it"},
		{Path: "Makefile", Change: aftermath.Changed, Means: "make runs it"},
	}}
	const head = "claudebox: what your own tools run was changed while the session ran:\n"
	for width, want := range map[int]string{
		0: head + "  new      .envrc    direnv runs it when you enter the folder, once you allow it\n  changed  Makefile  make runs it\n",
		60: head + "  new      .envrc    direnv runs it when you enter the\n" +
			"                     folder, once you allow it\n  changed  Makefile  make runs it\n",
	} {
		if got := r.Text("/home/u", width); got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
	}
}

func TestOrdinaryEditsAreOneLineAndWhatMattersIsNeverCut(t *testing.T) {
	t.Parallel()
	var r aftermath.Report
	for n := range 60 {
		at := fmt.Sprintf("m%02d/", n)
		r.Changes = append(r.Changes,
			aftermath.Change{Path: at + "Makefile", Change: aftermath.Changed, Means: "your build runs it", Ordinary: true},
			aftermath.Change{Path: at + ".envrc", Change: aftermath.New, Means: "direnv runs it"},
			aftermath.Change{Path: at + "x", Change: aftermath.New, Means: "a link to /home/u/.bashrc, outside the project: your tools"})
	}
	got := r.Text("/home/u", 0)
	if n := strings.Count(got, ".bashrc"); n != 60 {
		t.Errorf("%d of 60 links are told of", n)
	}
	r.Changes = r.Changes[:9]
	got = r.Text("/home/u", 0)
	if strings.Count(got, "\n") != 1+3+3+1 || !strings.Contains(got, "m00/Makefile, m01/Makefile, m02/Makefile") {
		t.Errorf("got\n%s", got)
	}
}

func TestManyRepositoriesThatAreHeldBackAreOneLine(t *testing.T) {
	t.Parallel()
	var r aftermath.Report
	for n := range 150 {
		at := fmt.Sprintf("m%03d/.git", n)
		r.Changes = append(r.Changes, aftermath.Change{Path: at, Change: aftermath.HeldBack, Means: "not yours yet", Back: "mv " + at})
	}
	got := r.Text("/home/u", 0)
	if strings.Count(got, "\n") != 3 || !strings.Contains(got, "  held back  m000/.git, m001/.git, m002/.git and 147 more  repositories that") {
		t.Errorf("got\n%s", got)
	}
	r.Changes = r.Changes[:5]
	if got = r.Text("/home/u", 0); strings.Count(got, "back: `mv m00") != 5 {
		t.Errorf("got\n%s", got)
	}
}

// TestAFloodOfMakefilesHidesWhatRunsUnasked: a person is shown so many lines and no more.
func TestAFloodOfMakefilesHidesWhatRunsUnasked(t *testing.T) {
	w := newWorld(t)
	r := w.session(`for i in $(seq 100 145); do mkdir -p a/$i; echo x >a/$i/Makefile; done; mkdir -p z/.vscode z/.hg
		echo x >z/.envrc; echo x >z/.vscode/tasks.json; echo x >z/.hg/hgrc; echo x >z/package.json`)
	text := r.Text(w.home, 0)
	expect.Contains(t, text, "z/.envrc", "z/.vscode/tasks.json", "z/.hg", "a/100/Makefile", " more  ", "--report-json FILE lists all")
	if at := strings.Index(text, "z/.envrc"); at > strings.Index(text, "a/100/Makefile") {
		t.Error("what runs unasked is not first")
	}
}

// TestAFloodOfOneKindHidesAnother: all of them run unasked.
func TestAFloodOfOneKindHidesAnother(t *testing.T) {
	t.Parallel()
	var r aftermath.Report
	for n := range 60 {
		r.Changes = append(r.Changes, aftermath.Change{Path: fmt.Sprintf("a%02d/.envrc", n), Change: aftermath.New, Means: "direnv runs it"})
	}
	r.Changes = append(r.Changes, aftermath.Change{Path: "z/.vscode/tasks.json", Change: aftermath.New, Means: "your editor runs it"})
	if got := r.Text("/home/u", 0); !strings.Contains(got, "z/.vscode") || strings.Index(got, "a00/") > strings.Index(got, "z/") {
		t.Errorf("got\n%s", got)
	}
}

// TestManyOfOneKindAreALine: 40 repositories were 40 lines.
func TestManyOfOneKindAreALine(t *testing.T) {
	t.Parallel()
	var r aftermath.Report
	for n := range 40 {
		r.Changes = append(r.Changes, aftermath.Change{Path: fmt.Sprintf("r%02d", n), Change: aftermath.New, Means: "a checkout"})
	}
	r.Changes = append(r.Changes, aftermath.Change{Path: "x", Change: aftermath.TakenOut, Means: "a checkout", Back: "mv a x"})
	const want = "  taken out  x                                                 a checkout; back: `mv a x`\n" +
		"  new        r00, r01, r02, r03, r04, r05, r06, r07, r08, r09, r10, r11 and 28 more  a checkout\n  --report-json FILE lists all\n"
	if got := r.Text("/home/u", 80); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestAnEditIsCommittedInside: `git diff` alone shows nothing then.
func TestAnEditIsCommittedInside(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; echo a >Makefile; git add .; git commit -qm x")
	text := w.session("echo b >Makefile; git commit -qam y").Text(w.home, 0)
	if !strings.Contains(text, "see `git diff HEAD`, or `git log -p` if committed") {
		t.Error(text)
	}
}

func TestALongPathIsNoPageOfDanger(t *testing.T) {
	t.Parallel()
	r := aftermath.Report{Unfinished: true, Failures: []string{"look at " + strings.Repeat("a/", 4000) + "b"}}
	got := r.Text("/home/u", 0)
	if len(got) > 1000 || !strings.Contains(got, "do not run git there") || strings.Contains(got, "what it left") {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
}
