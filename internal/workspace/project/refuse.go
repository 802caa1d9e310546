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

// forbidden is one rule about a place: a folder is no project if forbids(folder, place) is true.
type forbidden struct {
	path    string // "~" at the beginning stands for the user's home
	forbids func(project, place string) bool
	why     string
}

// forbiddenPlaces are the fixed rules. [Request.Own] and [Request.Never] hold further places.
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

// nixosConfig, with all below it, is the only part of /etc that may be a project.
const nixosConfig = "/etc/nixos"

// executedPlaces are folders that may be projects, with a warning: the host executes what is written there.
var executedPlaces = []string{
	nixosConfig, "~/.config", "~/.local/bin", "~/.local/share", "~/bin", "~/.nixpkgs", "~/.dotfiles", "~/dotfiles",
	"~/.emacs.d", "~/.vim",
}

const usualRemedy = "start claudebox in the folder of one project"

// refusal says why a folder is no project.
func refusal(dir, remedy, format string, args ...any) error {
	return diag.Errorf("take "+diag.Name(dir)+" as the project", remedy, format, args...)
}

// checkPlace returns an error if the folder must not be a project. That is so for a folder of another user,
// too, even for root: its owner would run what the agent writes there, or may have put traps into it.
func (loc location) checkPlace() error {
	dir := loc.path
	if why := loc.whyForbidden(dir); why != "" {
		return refusal(dir, loc.wayOut(dir), "%s", why)
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
		return &diag.Error{Op: "look at " + diag.Name(dir), Err: err, Remedy: usualRemedy}
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
		exempt := place == "/etc" && pathname.Below(dir, nixosConfig)
		if rule.forbids(dir, place) && !exempt {
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

// wayOut is the remedy for a folder that must not be given away: to take out what a link of the home leads to in it,
// or to choose another.
func (req Request) wayOut(dir string) string {
	for _, never := range req.Never {
		link := req.expand(never)
		if _, err := os.Readlink(link); err != nil || overlaps(dir, link) {
			continue
		}
		if to := canonicalOrClean(link); pathname.Below(to, dir) {
			return "move " + diag.Name(to) + " out of it, and lead " + diag.Name(link) + " there"
		}
	}
	return usualRemedy
}

// exposes reports whether a folder overlaps a path of [Request.Never], or the target if that path is a link. A path
// with a rule in forbiddenPlaces is judged by that alone: no sandbox sees /tmp, but a project may lie in it.
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
	wanted, given := strings.Split(pattern, "/"), strings.Split(dir, "/")
	for i := range min(len(wanted), len(given)) {
		if matched, err := path.Match(wanted[i], given[i]); err != nil || !matched {
			return err != nil // a bad pattern counts as a match, so that the folder is refused
		}
	}
	return true
}
