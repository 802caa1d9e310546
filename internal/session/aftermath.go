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

// report is what is to be said when the session has ended, and where to.
type report struct {
	folder *beneath.Folder // open since before the session: inside, nobody can lead it elsewhere
	name   string          // of the file in it
}

// openReport finds the folder of --report-json.
func (s *Session) openReport() error {
	if s.options.ReportJSON == "" {
		return nil
	}
	file := s.absolute(s.options.ReportJSON)
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err == nil {
		s.report.folder, err = beneath.Open(dir)
	}
	if err != nil {
		return &diag.Error{
			Op: "write " + s.options.ReportJSON + " (--report-json)", Err: diag.Cause(err),
			Remedy: "name a file in a folder that exists",
		}
	}
	s.report.name = filepath.Base(file)
	return nil
}

// sweep ends sessions that were killed before they could do it themselves.
func (c call) sweep() {
	for _, r := range aftermath.Sweep(c.folders.Home, c.Facts.Cwd) {
		if !c.options.NoReport || len(r.Failures) > 0 {
			io.WriteString(c.caller.Stderr, r.Text(c.Facts.Home, c.caller.Columns()))
		}
	}
}

// announce says what the session left in the project, and beside it.
func (s *Session) announce(reports []aftermath.Report) {
	var told struct {
		aftermath.Report
		Beside  []aftermath.Report `json:"beside,omitempty"`  // of folders that were given beside the project
		Network *helper.Report     `json:"network,omitempty"` // what was reached and refused
	}
	for i, r := range reports {
		if !s.options.NoReport && !r.Silent() || len(r.Failures) > 0 {
			io.WriteString(s.caller.Stderr, r.Text(s.Facts.Home, s.caller.Columns()))
		}
		if i == 0 {
			told.Report = r
		} else {
			told.Beside = append(told.Beside, r)
		}
	}
	if s.report.folder == nil {
		return
	}
	defer s.report.folder.Close()
	if len(reports) == 0 {
		return // nothing has run
	}
	if s.network.served {
		told.Network = &s.network.summary.Report
	}
	content, err := json.MarshalIndent(told, "", "  ")
	if err == nil {
		err = s.report.folder.Replace(s.report.name, append(content, '\n'), 0o644)
	}
	if err != nil {
		diag.Print(s.caller.Stderr, &diag.Error{Op: "write the report", Err: err})
	}
}
