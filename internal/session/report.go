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
	for _, r := range aftermath.Sweep(c.folders.Home, c.Facts.Cwd) {
		if !c.options.NoReport || len(r.Failures) > 0 {
			io.WriteString(c.caller.Stderr, r.Text(c.Facts.Home, c.caller.Columns()))
		}
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

// announce prints what the session left in the project and in the folders beside it, and writes --report-json.
func (r *running) announce() {
	var told struct {
		aftermath.Report
		Beside  []aftermath.Report `json:"beside,omitempty"`  // of folders that were given beside the project
		Network *helper.Summary    `json:"network,omitempty"` // what was reached and refused
	}
	for i, one := range r.reports {
		if !r.options.NoReport && !one.Silent() || len(one.Failures) > 0 {
			io.WriteString(r.caller.Stderr, one.Text(r.Facts.Home, r.caller.Columns()))
		}
		if i == 0 {
			told.Report = one
		} else {
			told.Beside = append(told.Beside, one)
		}
	}
	if r.report.folder == nil || len(r.reports) == 0 {
		return // nobody asks, or nothing has run
	}
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
}
