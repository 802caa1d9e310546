package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/project"
)

// searchPlaces are the places that say what the next sandbox may do: where
// profiles, plans and approvals are looked for, the entries there, the
// manifest. They count whether anything is there or not.
func searchPlaces(folders profiledir.Folders, manifest string) []string {
	places := []string{filepath.Join(folders.Home, "trusted"), filepath.Join(folders.Home, "plan-cache")}
	if manifest != "" {
		places = append(places, manifest)
	}
	for _, dir := range folders.Search() {
		places = append(places, dir)
		for _, name := range []string{"profiles", "plans"} {
			dir := filepath.Join(dir, name)
			places = append(places, dir)
			entries, _ := os.ReadDir(dir) // one that cannot be read is nothing to a launch either
			for _, entry := range entries {
				places = append(places, filepath.Join(dir, entry.Name()))
			}
		}
	}
	return places
}

// ledElsewhere are those of the search places, and of the user's files of
// git's configuration, that a link leads to another place.
func (c call) ledElsewhere() (list []string) {
	places := append(searchPlaces(c.folders, c.caller.Manifest), usergit.Files(c.Facts.Home, c.Facts.Env.Get)...)
	for _, place := range places {
		if real, err := beneath.Leads(place); err == nil && real != place {
			list = append(list, place)
		}
	}
	return list
}

// ownFolders are claudebox's own folders, and where they lead.
func (c call) ownFolders() []string {
	list := c.folders.Own()
	for _, dir := range slices.Clone(list) {
		if real, err := beneath.Leads(dir); err == nil && real != dir {
			list = append(list, real)
		}
	}
	return list
}

// judgeSearchPlaces refuses a link to where an agent could make what claudebox
// or git would obey. What is there already is read-only inside.
func (s *Session) judgeSearchPlaces() error {
	for _, place := range s.led {
		real, err := beneath.Leads(place)
		if err != nil {
			continue
		}
		if _, err := os.Lstat(real); err == nil {
			continue
		}
		for _, given := range s.all() {
			if pathname.Below(real, given.Path) {
				return diag.Errorf("protect "+place, "remove that link, or make the file or folder that it leads to",
					"it is a link to %s, which is not there: the agent could make it, and claudebox or git "+
						"would obey it", real)
			}
		}
	}
	return nil
}

// judgeWritable refuses a read-write mount that a user named and through which
// an agent would reach what git or claudebox obeys on the host.
func (s *Session) judgeWritable(m launch.Mount) error {
	if m.Kind != plan.Bind || !userNamed(m) {
		return nil
	}
	op, remedy := "mount "+m.Source+" ("+m.Why+")",
		"mount it read-only, or mount the working tree: what git obeys in there is protected"
	if git := gitFolderAround(m.Source); git != "" {
		return diag.Errorf(op, remedy, "it lies in %s, where this host's git obeys what an agent writes", git)
	}
	for _, dir := range append(s.ownFolders(), searchPlaces(s.folders, s.caller.Manifest)...) {
		real, err := beneath.Leads(dir)
		if err == nil && (pathname.Below(m.Source, real) ||
			slices.Contains(s.folders.Own(), dir) && pathname.Below(real, m.Source)) {
			return diag.Errorf(op, "mount it read-only, or what is needed of it",
				"it would open %s: what is there says what a sandbox may do", dir)
		}
	}
	for _, name := range s.git.obeys() {
		if real, err := beneath.Leads(name); err == nil && pathname.Below(m.Source, real) {
			return diag.Errorf(op, "mount it read-only",
				"it would open %s, which your git's configuration names: this host's git obeys what is there", name)
		}
	}
	return nil
}

// judgeWritables is [Session.judgeWritable] for all mounts.
func (s *Session) judgeWritables(list []launch.Mount) error {
	for _, m := range list {
		if err := s.judgeWritable(m); err != nil {
			return err
		}
	}
	return nil
}

// gitFolderAround is the git folder that a path lies in, or the .git that it
// is; empty when there is none. A bare repository as a whole may be given.
func gitFolderAround(name string) string {
	for at := name; at != "/"; at = filepath.Dir(at) {
		if strings.EqualFold(filepath.Base(at), ".git") || at != name && project.IsGitFolder(at) {
			return at
		}
	}
	return ""
}
