package aftermath

import (
	"os"
	"path"
	"slices"
	"time"

	"claudebox/internal/workspace/git"
)

const (
	reportsFolder = "reports"
	reportForm    = "claudebox report 2\n" // before the report; another form, another number
	untoldLimit   = 16                     // how many reports are kept; each costs a launch some 50 µs
)

// kept is a report as it is kept until somebody was told.
type kept struct {
	Began  int64 // the session, in nanoseconds since 1970
	Report Report
}

// keep writes the report into a file, locked as a record is, until [Report.Told]: the terminal may be gone, or
// claudebox killed, before it is printed. What was kept of it before is replaced. What failed is left out: the
// session's record stays for that, and the next launch tries it, and tells of it, again. It reports no errors: a report
// that cannot be kept can still be printed.
func (r *Report) keep(home string, began moment) {
	earlier := *r
	later := Report{Project: r.Project, Unfinished: true, Changes: r.Changes, Cut: r.Cut, Beyond: r.Beyond}
	if later.Silent() {
		earlier.Told(true)
		r.file = nil
		return
	}
	f, err := store(path.Join(home, reportsFolder), reportForm, kept{began.Wall, later})
	if err != nil {
		return
	}
	r.file = f
	earlier.Told(true)
}

// plan keeps the report as far as it goes, with what is going to be repaired in a folder: if claudebox is killed amid
// that, the next launch finds only what was not repaired yet, and no other changes.
func (r *Report) plan(home string, began moment, repairs []git.Repair, at func(rel string) string) {
	planned := *r
	planned.Changes = slices.Clone(r.Changes)
	for _, repair := range repairs {
		const aside = "; claudebox was killed when it took that out: look for claudebox-aside, there or beside it"
		planned.Changes = append(planned.Changes,
			Change{Path: at(repair.Rel), Change: TakenOut, Means: repair.Why + aside})
	}
	planned.keep(home, began)
	r.file = planned.file
}

// Told ends the keeping of a report. done means that the user was told, by a text that was printed or a file that was
// written; otherwise the next launch tells. It is called once, for each report of [Session.End] and [Sweep]; where
// claudebox is killed before, the user was not told.
func (r Report) Told(done bool) {
	if r.file == nil {
		return
	}
	if done {
		os.Remove(r.file.Name())
	}
	release(r.file)
}

// untold returns the reports that nobody was told, the oldest first, as those of sessions that did not finish them. If
// they are too many, the oldest are returned this once. One that was not written to its end does not count: the record
// of its session is still there.
func untold(home string) (reports []Report) {
	list, _ := load[kept](path.Join(home, reportsFolder), reportForm)
	for _, s := range list {
		if s.other != nil {
			if !s.live { // it tells nothing, and never will; what is dangerous stands in the session's record
				os.Remove(s.file.Name())
			}
			s.file.Close()
			continue
		}
		if s.live { // its own process is about to tell it
			s.file.Close()
			continue
		}
		r := s.value.Report
		r.Began, r.file = time.Unix(0, s.value.Began).UTC().Truncate(time.Second), s.file
		reports = append(reports, r)
	}
	slices.SortFunc(reports, func(a, b Report) int { return a.Began.Compare(b.Began) })
	for _, r := range reports[:max(0, len(reports)-untoldLimit)] {
		os.Remove(r.file.Name())
	}
	return reports
}
