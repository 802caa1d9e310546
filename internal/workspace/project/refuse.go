package project

import (
	"os"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"golang.org/x/sys/unix"
)

// These functions compare the clean paths of a project and of a forbidden place. Each reports true also if the project
// is that very place.
func itself(project, place string) bool { return project == place }

func inside(project, place string) bool { return pathname.Below(project, place) }

func around(project, place string) bool { return pathname.Below(place, project) }

func overlaps(project, place string) bool { return inside(project, place) || around(project, place) }

// forbidden is one rule of SAND-05: no project may lie to the place as one of the functions above says.
type forbidden struct {
	path    string // "~" at the beginning stands for the user's home
	forbids func(project, place string) bool
	why     string
}

// forbiddenPlaces are the fixed rules. Claudebox's own folders and the paths of SAND-09 are in the request.
var forbiddenPlaces = []forbidden{
	{"/", itself, "is the whole machine"},
	{"/nix", inside, "belongs to Nix"},
	{"/proc", inside, "belongs to the kernel"},
	{"/home", itself, "is not a project but what holds projects"},
	{"/tmp", itself, "is not a project but what holds projects"},
	{"/var/tmp", itself, "is not a project but what holds projects"},
	{"/run", itself, "holds the sockets of running services"},
	{"/var", itself, "belongs to the system"},
	{"/usr", itself, "belongs to the system"},
	{"/dev", itself, "holds devices"},
	{"/sys", itself, "belongs to the kernel"},
	{"/boot", itself, "belongs to the system"},
	{"/etc", inside, "belongs to the system"},
	{"~", itself, "is your home folder, with every secret in it"},
	{"~", around, "holds your home folder, with every secret in it"},
	{"~/.config", itself, "holds the configuration of everything you run"},
	{"~/.local", itself, "holds programs and data of everything you run"},
	{"~/.local/share", itself, "holds the data of everything you run"},
	{"~/.cache", itself, "holds what everything you run has fetched"},
	{"~/.claude", overlaps, "holds your own Claude Code's configuration and history"},
}

// nixosConfig is a folder that may be a project, whatever it lies in.
const nixosConfig = "/etc/nixos"

// executedPlaces are folders that may be projects, with a warning: the host executes what is written there.
var executedPlaces = []string{
	nixosConfig, "~/.config", "~/.local/bin", "~/.local/share", "~/bin", "~/.nixpkgs", "~/.dotfiles", "~/dotfiles",
	"~/.emacs.d", "~/.vim",
}

const usualRemedy = "start claudebox in the folder of one project"

// refusal says why a folder is no project.
func refusal(dir, remedy, format string, args ...any) error {
	return diag.Errorf("take "+dir+" as the project", remedy, format, args...)
}

// checkPlace refuses a project by its path (SAND-05), and the folder of another user, who would execute what is written
// there, or has put it there. Root must log in as the owner.
func (loc location) checkPlace() error {
	dir := loc.path
	if why := loc.whyForbidden(dir); why != "" {
		return refusal(dir, usualRemedy, "%s", why)
	}
	if slices.Contains(strings.Split(dir, "/"), ".git") {
		return refusal(dir, "start claudebox in the working tree",
			"it lies in a .git folder, where the host's git executes hooks")
	}
	for _, place := range executedPlaces {
		if place = loc.expand(place); pathname.Below(dir, place) {
			loc.note(true, "the host executes what is in %s: read every change before you use it", place)
			break
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &diag.Error{Op: "look at " + dir, Err: err, Remedy: usualRemedy}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return refusal(dir, usualRemedy, "it is not a folder")
	case int(st.Uid) != loc.UID:
		return refusal(dir, "work on a copy of your own", "it belongs to user %d, you are user %d", st.Uid, loc.UID)
	}
	return nil
}

// whyForbidden says why a folder must not be given to a sandbox; empty when it may.
func (req Request) whyForbidden(dir string) string {
	for _, rule := range forbiddenPlaces {
		place := req.expand(rule.path)
		if rule.forbids(dir, place) && !(place == path.Dir(nixosConfig) && pathname.Below(dir, nixosConfig)) {
			return place + " " + rule.why
		}
	}
	for _, own := range req.Own {
		if own = canonicalOrClean(own); overlaps(dir, own) {
			return own + " is claudebox's own"
		}
	}
	for _, never := range req.Never {
		if req.exposes(dir, never) {
			return req.expand(never) + " holds secrets (no sandbox may see it)"
		}
	}
	return ""
}

// exposes reports whether a folder is, holds or lies in a path of SAND-09, or in what that leads to if it is a link. A
// path that has a rule of its own above is judged by that alone: /tmp must never be seen, but may hold a project.
func (req Request) exposes(dir, never string) bool {
	if slices.ContainsFunc(forbiddenPlaces, func(f forbidden) bool { return f.path == never }) {
		return false
	}
	if strings.ContainsAny(never, "*?[") {
		return overlapsPattern(dir, never, req.Home)
	}
	at := req.expand(never)
	if overlaps(dir, at) {
		return true
	}
	if !strings.HasPrefix(never, "~/") {
		return false // only root can make a link there
	}
	_, err := os.Readlink(at)
	return err == nil && overlaps(dir, canonicalOrClean(at))
}

func (req Request) expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		return req.Home + rest
	}
	return path
}

// overlapsPattern is [overlaps] for a pattern ("~/.age*"), which it compares component by component.
func overlapsPattern(dir, pattern, home string) bool {
	if rest, ok := strings.CutPrefix(pattern, "~"); ok {
		below, ok := strings.CutPrefix(dir, home)
		if !ok {
			return pathname.Below(home, dir)
		}
		dir, pattern = below, rest
	}
	theirs, ours := strings.Split(pattern, "/"), strings.Split(dir, "/")
	for i := range min(len(theirs), len(ours)) {
		if matched, err := path.Match(theirs[i], ours[i]); err != nil || !matched {
			return err != nil
		}
	}
	return true
}
