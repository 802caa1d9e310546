package handover

import (
	"fmt"
	"strings"

	"claudebox/internal/diag"
)

// Remark is something that did not cross as it stands, or only under another name.
type Remark struct {
	About string // what: a reference, a path, HEAD
	Text  string
	Once  bool   // it has happened, and is told whatever comes after
	In    string // the folder of the repository; empty: it is the project's own, or About is a path
}

// line is a remark as a line for people; more says that it is one of several of the same text.
func (r Remark) line(more string) string {
	about := strings.TrimPrefix(strings.TrimPrefix(r.About, "refs/"), "heads/")
	if more != "" {
		about += more
	} else if r.In != "" {
		about += " in " + r.In
	}
	return fmt.Sprintf("git, %s: %s", diag.Visible(about), diag.Visible(r.Text))
}

// in says in which repository something is, in remarks that do not.
func in(folder string, list []Remark) []Remark {
	for i, r := range list {
		if r.In == "" && !strings.HasPrefix(r.About, "/") {
			list[i].In = folder
		}
	}
	return list
}

// Lines returns remarks as lines for people. Of many that say the same only the first are told, and counted: an agent
// can make any number of branches.
func Lines(list []Remark) (lines []string) {
	const most = 5
	same := map[string]int{}
	for _, r := range list {
		same[r.Text]++
	}
	told := map[string]int{}
	for _, r := range list {
		switch told[r.Text]++; {
		case told[r.Text] < most || same[r.Text] == most && told[r.Text] == most:
			lines = append(lines, r.line(""))
		case told[r.Text] == most:
			lines = append(lines, r.line(fmt.Sprintf(" and %d more", same[r.Text]-most)))
		}
	}
	return lines
}
