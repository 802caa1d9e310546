// Package reporting tells what sessions left in the folders that an agent may change: what this one did, and earlier
// ones that did not finish their reports.
package reporting

import (
	"encoding/json"
	"io"
	"path/filepath"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/network/helper"
	"claudebox/internal/session/live"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/aftermath"
)

// To says where reports go: to the user, and to the file of --report-json.
type To struct {
	call   planning.Call
	folder *beneath.Folder // of the file; opened before the session, so that no link made inside can lead it elsewhere
	name   string          // of the file in it
}

// Open ends the sessions that did not finish their reports, prints those, and opens the folder of --report-json.
func Open(c planning.Call) (to To, err error) {
	to.call = c
	near := []string{c.Facts.Cwd}
	for _, word := range c.Options.MountRW {
		outside, _ := c.Facts.Sides(word)
		if real, err := beneath.Canonical(outside); err == nil {
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
		return To{}, diag.Wrap(op, err, "name a file in a folder that exists")
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

// Tell prints what the session left in the project and in the folders beside it, and writes --report-json, with what
// the network reached, nil: there was none. What could be neither printed nor written is left to the next launch,
// unless nobody wants it: --no-report.
func (to To) Tell(reports []aftermath.Report, network *helper.Summary) {
	shown := make([]bool, len(reports))
	for i, one := range reports {
		shown[i] = show(to.call, one)
	}
	written := to.write(reports, network)
	for i, one := range reports {
		one.Told(shown[i] || written || to.call.Options.NoReport)
	}
}

// write writes --report-json, and reports whether it did.
func (to To) write(reports []aftermath.Report, network *helper.Summary) bool {
	if to.folder == nil || len(reports) == 0 {
		return false // nobody asks, or nothing has run
	}
	content, err := json.MarshalIndent(struct {
		aftermath.Report
		Beside  []aftermath.Report `json:"beside,omitempty"` // of folders that were given beside the project
		Network *helper.Summary    `json:"network,omitempty"`
	}{reports[0], reports[1:], network}, "", "  ")
	if err == nil {
		err = to.folder.Replace(to.name, append(live.ASCII(content), '\n'), 0o644)
	}
	if err != nil {
		diag.Print(to.call.Caller.Stderr, &diag.Error{Op: "write the report", Err: err})
	}
	return err == nil
}

// Close lets go of the folder.
func (to To) Close() {
	if to.folder != nil {
		to.folder.Close()
	}
}
