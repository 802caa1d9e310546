// Package logfile opens the logs of a session: files that the user names, and that the agent must not reach.
package logfile

import (
	"os"
	"path/filepath"
	"syscall"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// Path returns the path of the log, which is absolute, with the links of its folder resolved. It refuses a log
// in the project: there an agent could read it, or have put a link in its place.
func Path(what, file, project string) (string, error) {
	op := "write the " + what + " " + file
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return "", diag.Wrap(op, err, "name a file in a folder that exists")
	}
	if pathname.Below(dir, project) {
		return "", diag.Errorf(op, "write it to a place outside of the project",
			"the agent can change what is in the project")
	}
	return filepath.Join(dir, filepath.Base(file)), nil
}

// Open opens a log, whose path [Path] returned, to write more to it.
func Open(what, file string) (*os.File, error) {
	const refuse = syscall.O_NOFOLLOW | syscall.O_NONBLOCK // a link, and a pipe that nobody reads
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND|refuse, 0o600)
	if err != nil {
		return nil, diag.Wrap("write the "+what+" "+file, err, "name a file that you can write and that is no link")
	}
	return f, nil
}

// Judge refuses a log, if there is one, in what the agent may write to: it could write there, too.
func Judge(what, file string, mounts []launch.Mount) error {
	if file == "" {
		return nil
	}
	for _, m := range mounts {
		if m.Kind == plan.Bind && pathname.Below(beneath.Real(filepath.Dir(file)), beneath.Real(m.Source)) {
			return diag.Errorf("write the "+what+" "+file, "write it to a place that the agent cannot write to",
				"the agent can change what is in %s (%s)", diag.Name(m.Source), m.Why)
		}
	}
	return nil
}
