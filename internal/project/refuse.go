package project

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
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

// forbidden is one rule of SAND-05. In path "~" stands for the user's home.
type forbidden struct {
	path     string
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
	{"~", around, "holds your home folder, with every secret in it", ""},
	{"~/.config", itself, "holds the configuration of everything you run", ""},
	{"~/.local", itself, "holds programs and data of everything you run", ""},
	{"~/.local/share", itself, "holds the data of everything you run", ""},
	{"~/.cache", itself, "holds what everything you run has fetched", ""},
	{"~/.claude", either, "holds your own Claude Code's configuration and history", ""},
}

// executedPlaces may be projects, with a red line: the host executes what is
// written there. A place that lies in a forbidden one is an exception to it.
var executedPlaces = []string{
	"/etc/nixos",
	"~/.config", "~/.local/bin", "~/.local/share", "~/bin", "~/.nixpkgs", "~/.dotfiles", "~/dotfiles",
	"~/.emacs.d", "~/.vim",
}

const elsewhere = "start claudebox in the folder of one project"

// judge holds the canonical path of the project against SAND-05.
func (o *opener) judge() error {
	for _, rule := range o.rules() {
		path := strings.Replace(rule.path, "~", o.Home, 1)
		if rule.relation.holds(o.Path, path) && (rule.except == "" || !inside.holds(o.Path, rule.except)) {
			return diag.Errorf("take "+o.Path+" as the project", elsewhere, "%s %s", path, rule.why)
		}
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

// rules are the fixed ones and those of the request. A path that has a fixed
// rule keeps it: /tmp must never be seen, but a project may lie in it.
func (o *opener) rules() []forbidden {
	rules := slices.Clone(forbiddenPlaces)
	for _, path := range o.Own {
		rules = append(rules, forbidden{canonicalOr(path), either, "is claudebox's own", ""})
	}
	for _, path := range o.Never {
		if slices.ContainsFunc(forbiddenPlaces, func(f forbidden) bool { return f.path == path }) {
			continue
		}
		rules = append(rules, forbidden{strings.Replace(path, "~", o.Home, 1), either, "holds secrets (no sandbox may see it)", ""})
	}
	return rules
}

func (o *opener) executedPlace() string {
	for _, place := range executedPlaces {
		if place = strings.Replace(place, "~", o.Home, 1); inside.holds(o.Path, place) {
			return place
		}
	}
	return ""
}

// holds compares clean paths; forbidden may be a pattern of path/filepath
// for its last component ("~/.age*").
func (r relation) holds(project, forbidden string) bool {
	if strings.ContainsAny(forbidden, "*?[") {
		return r.holdsPattern(project, forbidden)
	}
	switch r {
	case itself:
		return project == forbidden
	case inside:
		return isBelow(project, forbidden)
	case around:
		return isBelow(forbidden, project)
	}
	return isBelow(project, forbidden) || isBelow(forbidden, project)
}

// holdsPattern compares as many components as the pattern has.
func (r relation) holdsPattern(project, pattern string) bool {
	if r == either && isBelow(filepath.Dir(pattern), project) {
		return true
	}
	depth := strings.Count(pattern, "/")
	parts := strings.SplitAfterN(project, "/", depth+2)
	if len(parts) <= depth {
		return false
	}
	head := strings.TrimSuffix(strings.Join(parts[:depth+1], ""), "/")
	matched, err := filepath.Match(pattern, head)
	return matched || err != nil
}

// isBelow tells whether path is folder or lies in it.
func isBelow(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
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
