package project

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"golang.org/x/sys/unix"
)

// relation is how a forbidden path and a project may not lie to each other.
type relation int

const (
	itself relation = iota // the project is this very folder
	inside                 // the project is it or lies in it
	around                 // the project is it or holds it
	either                 // inside or around
)

// forbidden is one rule of SAND-05.
type forbidden struct {
	path     string // "~" at the beginning stands for the user's home
	relation relation
	why      string
	except   string // a folder in path that may be a project after all
}

// forbiddenPlaces are the fixed rules; what belongs to claudebox and the
// paths of SAND-09 come with the request.
var forbiddenPlaces = []forbidden{
	{"/", itself, "is the whole machine", ""},
	{"/nix", inside, "belongs to Nix", ""},
	{"/proc", inside, "belongs to the kernel", ""},
	{"/home", itself, "is not a project but what holds projects", ""},
	{"/tmp", itself, "is not a project but what holds projects", ""},
	{"/var/tmp", itself, "is not a project but what holds projects", ""},
	{"/run", itself, "holds the sockets of running services", ""},
	{"/var", itself, "belongs to the system", ""},
	{"/usr", itself, "belongs to the system", ""},
	{"/dev", itself, "holds devices", ""},
	{"/sys", itself, "belongs to the kernel", ""},
	{"/boot", itself, "belongs to the system", ""},
	{"/etc", inside, "belongs to the system", "/etc/nixos"},
	{"~", itself, "is your home folder, with every secret in it", ""},
	{"~", around, "holds your home folder, with every secret in it", ""},
	{"~/.config", itself, "holds the configuration of everything you run", ""},
	{"~/.local", itself, "holds programs and data of everything you run", ""},
	{"~/.local/share", itself, "holds the data of everything you run", ""},
	{"~/.cache", itself, "holds what everything you run has fetched", ""},
	{"~/.claude", either, "holds your own Claude Code's configuration and history", ""},
}

// executedPlaces may be projects, with a red line: the host executes what is
// written there.
var executedPlaces = []string{
	"/etc/nixos",
	"~/.config", "~/.local/bin", "~/.local/share", "~/bin", "~/.nixpkgs", "~/.dotfiles", "~/dotfiles",
	"~/.emacs.d", "~/.vim",
}

const elsewhere = "start claudebox in the folder of one project"

// judge holds the canonical path of the project against SAND-05.
func (o *opener) judge() error {
	if why := o.forbids(o.Path); why != "" {
		return diag.Errorf("take "+o.Path+" as the project", elsewhere, "%s", why)
	}
	if slices.Contains(strings.Split(o.Path, "/"), ".git") {
		return diag.Errorf("take "+o.Path+" as the project", "start claudebox in the working tree",
			"it lies in a .git folder, where the host's git executes hooks")
	}
	if place := o.executedPlace(); place != "" {
		o.note(true, fmt.Sprintf("the host executes what is in %s: read every change before you use it", place))
	}
	return o.judgeOwner()
}

// forbids says why a folder must not be given to a sandbox; empty when it may.
func (o *opener) forbids(dir string) string {
	for _, rule := range forbiddenPlaces {
		rule.path = o.expand(rule.path)
		if rule.relation.holds(dir, rule.path) && (rule.except == "" || !pathname.Below(dir, rule.except)) {
			return rule.path + " " + rule.why
		}
	}
	for _, path := range o.Own {
		if path = canonicalOr(path); either.holds(dir, path) {
			return path + " is claudebox's own"
		}
	}
	home, err := unix.Open(o.Home, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) // once for many looks
	if err == nil {
		defer unix.Close(home)
	}
	for _, path := range o.Never {
		if o.shows(dir, path, home) {
			return o.expand(path) + " holds secrets (no sandbox may see it)"
		}
	}
	return ""
}

// shows reports whether a folder is, holds or lies in a path of SAND-09, or what
// that leads to when it is a link. A path that has a rule of its own above
// keeps that: /tmp must never be seen, but a project may lie in it. home is the
// open home of the user; there is no link in one that cannot be opened.
func (o *opener) shows(dir, never string, home int) bool {
	if slices.ContainsFunc(forbiddenPlaces, func(f forbidden) bool { return f.path == never }) {
		return false
	}
	if strings.ContainsAny(never, "*?[") {
		return matchesEither(dir, never, o.Home)
	}
	path := o.expand(never)
	if either.holds(dir, path) {
		return true
	}
	var target [1]byte
	rel, users := strings.CutPrefix(never, "~/")
	if !users {
		return false // only root can make a link there
	}
	if _, err := unix.Readlinkat(home, rel, target[:]); err != nil {
		return false
	}
	return either.holds(dir, canonicalOr(path))
}

func (o *opener) expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		return o.Home + rest
	}
	return path
}

func (o *opener) executedPlace() string {
	for _, place := range executedPlaces {
		if place = o.expand(place); pathname.Below(o.Path, place) {
			return place
		}
	}
	return ""
}

// holds compares clean paths.
func (r relation) holds(project, forbidden string) bool {
	switch r {
	case itself:
		return project == forbidden
	case inside:
		return pathname.Below(project, forbidden)
	case around:
		return pathname.Below(forbidden, project)
	}
	return pathname.Below(project, forbidden) || pathname.Below(forbidden, project)
}

// matchesEither is [either] for a pattern ("~/.age*"), component by component.
func matchesEither(dir, pattern, home string) bool {
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

// judgeOwner refuses a folder of somebody else: what is written there would
// be executed by them, or was put there by them. Root must find an owner to
// become.
func (o *opener) judgeOwner() error {
	var st unix.Stat_t
	if err := unix.Lstat(o.Path, &st); err != nil {
		return &diag.Error{Op: "look at " + o.Path, Err: err, Remedy: elsewhere}
	}
	op := "take " + o.Path + " as the project"
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return &diag.Error{Op: op, Err: errors.New("it is not a folder"), Remedy: elsewhere}
	case int(st.Uid) != o.UID:
		return diag.Errorf(op, "work on a copy of your own", "it belongs to user %d, you are user %d", st.Uid, o.UID)
	}
	return nil
}
