package session

import (
	"encoding/json"
	"io"
	"path/filepath"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/network/helper"
	"claudebox/internal/workspace/aftermath"
)

// report is the file of --report-json. The zero value has none.
type report struct {
	folder *beneath.Folder // opened before the session, so that no link made inside can lead it elsewhere
	name   string          // of the file in it
}

// openReport ends the sessions that did not finish their reports, prints those, and opens the folder of --report-json.
func openReport(c call) (to report, err error) {
	near := []string{c.Facts.Cwd}
	for _, word := range c.options.MountRW {
		outside, _ := sides(word)
		if real, err := beneath.Canonical(c.absolute(outside)); err == nil {
			near = append(near, real)
		}
	}
	for _, r := range aftermath.Sweep(c.folders.Home, near...) {
		r.Told(c.show(r)) // with --no-report a later launch tells: this one may be `claudebox check`'s
	}
	if c.options.ReportJSON == "" {
		return to, nil
	}
	file := c.absolute(c.options.ReportJSON)
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err == nil {
		to.folder, err = beneath.Open(dir)
	}
	if err != nil {
		op := "write " + c.options.ReportJSON + " (--report-json)"
		return report{}, diag.Wrap(op, err, "name a file in a folder that exists")
	}
	to.name = filepath.Base(file)
	return to, nil
}

// show prints a report, with --no-report only one of failures, and reports whether it did: where the terminal is closed
// it did not.
func (c call) show(r aftermath.Report) bool {
	if len(r.Failures) == 0 && (c.options.NoReport || r.Silent()) {
		return false
	}
	_, err := io.WriteString(c.caller.Stderr, r.Text(c.Facts.Home, c.caller.Columns()))
	return err == nil
}

// announce prints what the session left in the project and in the folders beside it, and writes --report-json. What
// could be neither printed nor written is left to the next launch, unless nobody wants it: --no-report.
func (r *running) announce() {
	shown := make([]bool, len(r.reports))
	for i, one := range r.reports {
		shown[i] = r.show(one)
	}
	written := r.writeReport()
	for i, one := range r.reports {
		one.Told(shown[i] || written || r.options.NoReport)
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
	if r.network.helper != nil {
		told.Network = &r.network.summary
	}
	content, err := json.MarshalIndent(told, "", "  ")
	if err == nil {
		err = r.report.folder.Replace(r.report.name, append(content, '\n'), 0o644)
	}
	if err != nil {
		diag.Print(r.caller.Stderr, &diag.Error{Op: "write the report", Err: err})
	}
	return err == nil
}
