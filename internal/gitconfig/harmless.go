package gitconfig

import (
	"slices"
	"strings"
)

// Harmless copies the configuration of a repository that an agent made, with
// nothing in it that makes the host's git run or read what it names: variables
// that are known to be harmless stay, all others go. dropped are the full
// names of those that went, each once. inside tells whether a core.worktree
// lies where the agent may write anyway: git writes files there.
//
// What stands in before as well, the user's own, stays. A bad line, and all
// behind it, goes.
func Harmless(src, before []byte, inside func(worktree string) bool) (clean []byte, dropped []string) {
	entries, err := Parse(src)
	own, _ := Parse(before)
	same := func(e Entry) func(Entry) bool {
		return func(o Entry) bool { return o.Key() == e.Key() && o.Value == e.Value && o.Bare == e.Bare }
	}
	var kept []Entry
	for _, e := range entries {
		switch {
		case harmless(e, inside) || slices.ContainsFunc(own, same(e)):
			kept = append(kept, e)
		case !slices.Contains(dropped, e.Key()):
			dropped = append(dropped, e.Key())
		}
	}
	if err != nil {
		dropped = append(dropped, err.Error())
	}
	return Render(kept), dropped
}

// harmlessNames are variables that name no program, no file and no other
// variable. Whatever their value is, git runs nothing by it (git-config(1)).
var harmlessNames = map[string][]string{
	"core": {
		"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks",
		"protecthfs", "protectntfs", "autocrlf", "eol", "safecrlf", "quotepath", "abbrev", "compression", "loosecompression",
		"sparsecheckout", "sparsecheckoutcone", "untrackedcache", "trustctime", "checkstat", "commitgraph", "multipackindex",
		"commentchar", "whitespace", "longpaths",
	},
	"extensions":  {"objectformat", "compatobjectformat", "refstorage", "worktreeconfig", "noop", "relativeworktrees"},
	"user":        {"name", "email", "useconfigonly"},
	"author":      {"name", "email"},
	"committer":   {"name", "email"},
	"init":        {"defaultbranch"},
	"pull":        {"rebase", "ff"},
	"push":        {"default", "autosetupremote", "followtags"},
	"fetch":       {"prune", "prunetags", "writecommitgraph"},
	"merge":       {"ff", "conflictstyle", "renames", "stat", "autostash"},
	"rebase":      {"autosquash", "autostash", "updaterefs", "stat"},
	"rerere":      {"enabled", "autoupdate"},
	"diff":        {"renames", "algorithm", "colormoved", "mnemonicprefix", "noprefix", "renamelimit"},
	"log":         {"date", "decorate", "abbrevcommit"},
	"status":      {"short", "branch", "showuntrackedfiles", "submodulesummary"},
	"index":       {"version", "threads", "sparse"},
	"feature":     {"manyfiles", "experimental"},
	"gc":          {"auto", "autopacklimit", "pruneexpire", "worktreepruneexpire"},
	"pack":        {"threads", "writebitmaps", "window", "depth"},
	"maintenance": {"auto", "strategy"},
	"submodule":   {"active", "branch", "ignore", "recurse"},
	"branch":      {"rebase", "description", "sort", "autosetuprebase", "autosetupmerge"},
	"remote":      {"tagopt", "prune", "prunetags", "pushdefault"},
	"commit":      {"verbose", "cleanup", "status"},
	"lfs":         {"repositoryformatversion"},
	"color":       {"ui", "status", "diff", "branch"},
	"advice":      {"detachedhead"},
}

// harmlessValues are variables that may stay by what they say.
var harmlessValues = map[string]func(string) bool{
	"remote.url":     isURL,
	"remote.pushurl": isURL,
	"remote.fetch":   isRefspec,
	"branch.remote":  isURL, // a remote's name, as a rule
	"branch.merge":   isRefspec,
	"submodule.url":  isURL,
}

func harmless(e Entry, inside func(string) bool) bool {
	if slices.Contains(harmlessNames[e.Section], e.Name) {
		return true
	}
	if e.Section == "core" && e.Name == "worktree" && !e.Sub {
		return inside(e.Value)
	}
	fits := harmlessValues[e.Section+"."+e.Name]
	return fits != nil && fits(e.Value)
}

// isURL refuses what makes git run a helper of another name
// ("ext::sh -c …", gitremote-helpers(7)) and what a program would take for an
// option.
func isURL(value string) bool {
	return value != "" && value[0] != '-' && !strings.Contains(value, "::") && !strings.ContainsAny(value, "\n\x00")
}

func isRefspec(value string) bool { return value != "" && value[0] != '-' }
