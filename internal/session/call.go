package session

import (
	"path/filepath"
	"strings"

	"claudebox/internal/host"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/profile/profiledir"
)

// call is who calls for a session, for what, and where: all that it is made of
// besides files. It is complete when it is made, and never changes.
type call struct {
	Facts   host.Facts
	caller  Caller
	options Options
	why     Purpose
	folders profiledir.Folders
	ignored []string // signals that the caller ignores
	build   string   // state of the running program, which every cache depends on; empty: it is not known
}

func newCall(c Caller, o Options, why Purpose, facts host.Facts) call {
	made := call{
		Facts: facts, caller: c, options: o, why: why,
		folders: profiledir.FoldersOf(facts, c.Manifest), ignored: ignoredSignals(),
	}
	if state := cachefile.State("/proc/self/exe"); cachefile.Known(state) {
		made.build = state
	}
	return made
}

// profileRef is the profile that was asked for.
func (c call) profileRef() string { return profileRef(c.Facts, c.options) }

// absolute is a path of the command line: from the current folder, from the
// user's home when it begins with "~", or absolute.
func (c call) absolute(path string) string {
	switch rest, tilde := strings.CutPrefix(path, "~"); {
	case tilde && (rest == "" || rest[0] == '/'):
		return filepath.Join(c.Facts.Home, rest)
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(c.Facts.Cwd, path)
}
