package session

import (
	"encoding/json"
	"io"
	"path/filepath"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/network/helper"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/aftermath"
)

// report is the file of --report-json. The zero value has none.
type report struct {
	folder *beneath.Folder // opened before the session, so that no link made inside can lead it elsewhere
	name   string          // of the file in it
}

// openReport ends the sessions that did not finish their reports, prints those, and opens the folder of --report-json.
func openReport(c planning.Call) (to report, err error) {
	near := []string{c.Facts.Cwd}
	for _, word := range c.Options.MountRW {
		outside, _ := pathname.Sides(word)
		if real, err := beneath.Canonical(c.Facts.Absolute(outside)); err == nil {
			near = append(near, real)
		}
	}
	for _, r := range aftermath.Sweep(c.Folders.Home, near...) {
		r.Told(show(c, r)) // with --no-report a later launch tells: this one may be `claudebox check`'s
	}
	if c.Options.ReportJSON == "" {
		return to, nil
	}
	file := c.Facts.Absolute(c.Options.ReportJSON)
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err == nil {
		to.folder, err = beneath.Open(dir)
	}
	if err != nil {
		op := "write " + c.Options.ReportJSON + " (--report-json)"
		return report{}, diag.Wrap(op, err, "name a file in a folder that exists")
	}
	to.name = filepath.Base(file)
	return to, nil
}

// show prints a report, with --no-report only one of failures, and reports whether it did: where the terminal is closed
// it did not.
func show(c planning.Call, r aftermath.Report) bool {
	if len(r.Failures) == 0 && (c.Options.NoReport || r.Silent()) {
		return false
	}
	_, err := io.WriteString(c.Caller.Stderr, r.Text(c.Facts.Home, c.Caller.Columns()))
	return err == nil
}

// announce prints what the session left in the project and in the folders beside it, and writes --report-json. What
// could be neither printed nor written is left to the next launch, unless nobody wants it: --no-report.
func (r *running) announce() {
	shown := make([]bool, len(r.reports))
	for i, one := range r.reports {
		shown[i] = show(r.Call, one)
	}
	written := r.writeReport()
	for i, one := range r.reports {
		one.Told(shown[i] || written || r.Options.NoReport)
	}
}

// writeReport writes --report-json, and reports whether it did.
func (r *running) writeReport() bool {
	if r.report.folder == nil || len(r.reports) == 0 {
		return false // nobody asks, or nothing has run
	}
	var told struct {
		aftermath.Report
		Beside  []aftermath.Report `json:"beside,omitempty"`  // of folders that were given beside the project
		Network *helper.Summary    `json:"network,omitempty"` // what was reached and refused
	}
	told.Report, told.Beside = r.reports[0], r.reports[1:]
	if r.network.Helper != nil {
		told.Network = &r.network.Summary
	}
	content, err := json.MarshalIndent(told, "", "  ")
	if err == nil {
		err = r.report.folder.Replace(r.report.name, append(content, '\n'), 0o644)
	}
	if err != nil {
		diag.Print(r.Caller.Stderr, &diag.Error{Op: "write the report", Err: err})
	}
	return err == nil
}
