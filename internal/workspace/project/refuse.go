package project

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
)

// These functions compare the clean paths of a project and of a forbidden place. Each reports true also if the project
// is that very place.
func itself(project, place string) bool { return project == place }

func inside(project, place string) bool { return pathname.Below(project, place) }

func around(project, place string) bool { return pathname.Below(place, project) }

func overlaps(project, place string) bool { return inside(project, place) || around(project, place) }

// rule is about one place: a folder is no project if forbids(folder, place) is true.
type rule struct {
	place   string // "~" at the beginning stands for the user's home
	forbids func(project, place string) bool
	why     string
	link    string // the secret place that is a link to this one; empty: none
}

// fixedRules are the same for everybody. [Request.Own] and [Request.Never] hold further places.
var fixedRules = []rule{
	{place: "/", forbids: itself, why: "is the whole machine"},
	{place: "/nix", forbids: inside, why: "belongs to Nix"},
	{place: "/proc", forbids: inside, why: "belongs to the kernel"},
	{place: "/home", forbids: itself, why: "is not a project but what holds projects"},
	{place: "/tmp", forbids: itself, why: "is not a project but what holds projects"},
	{place: "/var/tmp", forbids: itself, why: "is not a project but what holds projects"},
	{place: "/run", forbids: itself, why: "holds the sockets of running services"},
	{place: "/var", forbids: itself, why: "belongs to the system"},
	{place: "/usr", forbids: itself, why: "belongs to the system"},
	{place: "/dev", forbids: itself, why: "holds devices"},
	{place: "/sys", forbids: itself, why: "belongs to the kernel"},
	{place: "/boot", forbids: itself, why: "belongs to the system"},
	{place: "/etc", forbids: inside, why: "belongs to the system"},
	{place: "~", forbids: itself, why: "is your home folder, with every secret in it"},
	{place: "~", forbids: around, why: "holds your home folder, with every secret in it"},
	{place: "~/.config", forbids: itself, why: "holds the configuration of everything you run"},
	{place: "~/.local", forbids: itself, why: "holds programs and data of everything you run"},
	{place: "~/.local/share", forbids: itself, why: "holds the data of everything you run"},
	{place: "~/.cache", forbids: itself, why: "holds what everything you run has fetched"},
	{place: "~/.claude", forbids: overlaps, why: "holds your own Claude Code's configuration and history"},
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

// judgePlace returns an error if the folder must not be a project. That is so for a folder of another user, too, even
// for root: its owner would run what the agent writes there, or may have put traps into it. Beside the project any
// folder may be.
func (s surroundings) judgePlace() (told notes, err error) {
	dir := s.path
	why, wayOut := whyForbidden(s.rules, dir)
	executed := slices.IndexFunc(executedPlaces, func(place string) bool { return inside(dir, s.expand(place)) })
	switch {
	case s.Beside:
	case why != "":
		return nil, refusal(dir, wayOut, "%s", why)
	case s.link != "":
		return nil, refusal(s.link, "if you mean that folder: cd "+cmp.Or(diag.Word(s.Dir), "FOLDER"),
			"it is a link that leads out of its repository, to %s, as an agent could make it", diag.Name(s.Dir))
	case slices.Contains(strings.Split(dir, "/"), ".git"):
		return nil, refusal(dir, "start claudebox in the working tree",
			"it lies in a .git folder, where the host's git executes hooks")
	case s.unseen != nil:
		return nil, &diag.Error{Op: "look at " + diag.Name(dir), Err: s.unseen, Remedy: usualRemedy}
	case !s.isDir:
		return nil, refusal(dir, usualRemedy, "it is not a folder")
	case s.owner != s.UID:
		return nil, refusal(dir, "work on a copy of your own", "it belongs to user %d, you are user %d", s.owner, s.UID)
	case executed >= 0:
		told.note(true, "the host executes what is in %s: read every change before you use it",
			s.expand(executedPlaces[executed]))
	}
	return told, nil
}

// whyForbidden says by which of the rules a folder must not be given to a sandbox, and what to do then: to take out
// what a link of the user's leads to in it, or to choose another. why is empty when it may be given.
func whyForbidden(rules []rule, dir string) (why, remedy string) {
	for _, r := range rules {
		exempt := r.place == "/etc" && inside(dir, nixosConfig)
		if exempt || !r.forbids(dir, r.place) {
			continue
		}
		if remedy = usualRemedy; r.link != "" && around(dir, r.place) {
			remedy = "move " + diag.Name(r.place) + " out of it, and lead " + diag.Name(r.link) + " there"
		}
		return cmp.Or(r.link, r.place) + " " + r.why, remedy
	}
	return "", ""
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
