package usergit

import (
	"maps"
	"slices"
	"strings"

	"claudebox/internal/agent/shellline"
	"claudebox/internal/diag"
	"claudebox/internal/diag/pattern"
	"claudebox/internal/workspace/gitconfig"
)

// carried are the sections of git's configuration that decide what commits, checkouts and merges hold, or how git
// speaks, and the names in them that do not enter: they name files or programs of this machine, keys, or what claudebox
// gives in another way.
var carried = map[string]string{
	"advice": "", "alias": "", "am": "", "apply": "", "blame": "", "branch": "", "checkout": "",
	"clean": "", "clone": "", "color": "", "column": "", "commit": "gpgsign", "core": `alternaterefscommand askpass bare
		editor fsmonitor gitproxy pager repositoryformatversion sshcommand worktree`,
	"diff": "external guitool tool", "feature": "", "fetch": "", "filter": "", "format": "signaturefile",
	"grep": "", "help": "browser format htmlpath", "i18n": "", "index": "", "lfs": "standalonetransferagent",
	"log": "", "mailmap": "", "merge": "guitool tool verifysignatures", "notes": "", "pull": "", "push": "gpgsign",
	"rebase": "", "receive": "", "rerere": "", "revert": "", "stash": "", "status": "", "submodule": "",
	"tag": "forcesignannotated gpgsign", "trailer": "", "transfer": "", "versionsort": "", "worktree": "",
}

// commands are the settings that git runs, by section and name. A command whose program is missing inside enters where
// git refuses the operation then; the others do not enter.
var commands = map[string]struct{ refuses string }{
	"filter.clean": {"exit 1"}, "filter.smudge": {"exit 1"}, "filter.process": {"exit 1"},
	"merge.driver":  {"exit 129"}, // more than 128: an error, and no conflict
	"diff.textconv": {}, "diff.command": {}, "trailer.command": {}, "trailer.cmd": {},
}

// Own is what of the user's own configuration enters.
type Own struct {
	Entries []gitconfig.Entry
	Left    []string // names of settings that do not enter
	Refuses []Refusal
}

// Refusal is a filter or a merge driver that cannot run inside, so that git refuses what needs it.
type Refusal struct {
	Attribute string // that names it: "filter=lfs"
	Why       string // "filter.lfs of your git configuration: git-lfs is not inside …"
}

// Carry chooses what of the user's settings enters. missing says why a command cannot be run inside; empty: it can.
// local are the settings of the project's repositories, which git inside has: of filters there is made sure that git
// refuses to go on without them, as it is for those of the user.
func Carry(id Identity, local []gitconfig.Entry, missing func(command string) string) (own Own) {
	var left []gitconfig.Entry
	for _, e := range id.Settings {
		name := e.Section + "." + e.Name
		command, isCommand := commands[name]
		reason := ""
		if isCommand || strings.HasPrefix(e.Value, "!") && e.Section == "alias" {
			reason = missing(strings.TrimPrefix(e.Value, "!"))
		}
		switch {
		case !carries(e), reason != "" && command.refuses == "":
			left = append(left, e)
			continue
		case reason != "":
			text := diag.Visible(e.Section + "." + e.Subsection + "." + e.Name)
			own.refuse(e, "your git configuration", reason)
			e.Value = guarded(e.Value, text, reason, command.refuses)
		}
		e.Value, e.Subsection = gitconfig.StripUserinfo(e.Value), gitconfig.StripUserinfo(e.Subsection)
		own.Entries = append(own.Entries, e)
	}
	for _, e := range local { // which git inside has as they are
		if commands[e.Section+"."+e.Name].refuses == "" {
			continue
		}
		if reason := missing(e.Value); reason != "" {
			if e.Section == "merge" {
				reason += "; until then there is a conflict"
			}
			own.refuse(e, "the repository", reason)
		}
	}
	own.Entries = append(own.Entries, required(slices.Concat(own.Entries, local))...)
	own.Left = others(left, id.places())
	return own
}

// refuse notes that git refuses what needs the filter or driver of a setting, each once.
func (own *Own) refuse(e gitconfig.Entry, whose, reason string) {
	attribute := e.Section + "=" + e.Subsection
	if !slices.ContainsFunc(own.Refuses, func(r Refusal) bool { return r.Attribute == attribute }) {
		name := diag.Visible(e.Section + "." + e.Subsection)
		own.Refuses = append(own.Refuses, Refusal{attribute, name + " of " + whose + ": " + reason})
	}
}

// carries reports whether a setting may enter: it is of a known section, and neither a secret nor what names one.
func carries(e gitconfig.Entry) bool {
	except, known := carried[e.Top()]
	return known && !isNamed(e) && !gitconfig.IsSecret(e) && !slices.Contains(strings.Fields(except), e.Name) &&
		!(e.Section == "lfs" && (strings.HasPrefix(e.Subsection, "customtransfer") ||
			strings.HasPrefix(e.Subsection, "extension")))
}

// guarded is a command that tells why it does not run, and fails, until its program is there.
func guarded(command, name, reason, refuses string) string {
	told := "claudebox: " + name + ": " + strings.NewReplacer("%", "", `\`, "").Replace(reason)
	test := "false"
	if programs := shellline.Programs(command); len(programs) > 0 && isPlain(programs) {
		const quiet = " >/dev/null 2>&1"
		test = "command -v " + strings.Join(programs, quiet+" && command -v ") + quiet
	}
	return test + " || { echo " + diag.Quote(told) + " >&2; " + refuses + "; }; " + command
}

// plain are words that a shell takes as they are.
const plain pattern.Expr = `^[A-Za-z0-9/._+~-]+$`

func isPlain(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !plain.Matches(word) })
}

// required makes each filter one that git does not go on without. Git before the commit of what a filter could not make
// would take it as it is. A direction that a filter does not have passes the content on.
func required(entries []gitconfig.Entry) (made []gitconfig.Entry) {
	has := map[string]map[string]bool{}
	for _, e := range entries {
		if e.Section == "filter" && e.Sub {
			if has[e.Subsection] == nil {
				has[e.Subsection] = map[string]bool{}
			}
			has[e.Subsection][e.Name] = e.Value != ""
		}
	}
	for _, filter := range slices.Sorted(maps.Keys(has)) {
		names := has[filter]
		if !names["process"] && !names["clean"] && !names["smudge"] {
			continue
		}
		words := []string{"required", "true"}
		for _, way := range []string{"clean", "smudge"} {
			if !names["process"] && !names[way] {
				words = append(words, way, "cat")
			}
		}
		made = append(made, below(filter, of("filter", words...))...)
	}
	return made
}
