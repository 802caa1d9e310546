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
var harmlessNames = []struct {
	section string
	names   []string
}{
	{"core", []string{
		"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks",
		"protecthfs", "protectntfs", "autocrlf", "eol", "safecrlf", "quotepath", "abbrev", "compression", "loosecompression",
		"sparsecheckout", "sparsecheckoutcone", "untrackedcache", "trustctime", "checkstat", "commitgraph", "multipackindex",
		"commentchar", "whitespace", "longpaths",
	}},
	{"extensions", []string{"objectformat", "compatobjectformat", "refstorage", "worktreeconfig", "noop", "relativeworktrees"}},
	{"user", []string{"name", "email", "useconfigonly"}},
	{"author", []string{"name", "email"}},
	{"committer", []string{"name", "email"}},
	{"init", []string{"defaultbranch"}},
	{"pull", []string{"rebase", "ff"}},
	{"push", []string{"default", "autosetupremote", "followtags"}},
	{"fetch", []string{"prune", "prunetags", "writecommitgraph"}},
	{"merge", []string{"ff", "conflictstyle", "renames", "stat", "autostash"}},
	{"rebase", []string{"autosquash", "autostash", "updaterefs", "stat"}},
	{"rerere", []string{"enabled", "autoupdate"}},
	{"diff", []string{"renames", "algorithm", "colormoved", "mnemonicprefix", "noprefix", "renamelimit"}},
	{"log", []string{"date", "decorate", "abbrevcommit"}},
	{"status", []string{"short", "branch", "showuntrackedfiles", "submodulesummary"}},
	{"index", []string{"version", "threads", "sparse"}},
	{"feature", []string{"manyfiles", "experimental"}},
	{"gc", []string{"auto", "autopacklimit", "pruneexpire", "worktreepruneexpire"}},
	{"pack", []string{"threads", "writebitmaps", "window", "depth"}},
	{"maintenance", []string{"auto", "strategy"}},
	{"submodule", []string{"active", "branch", "ignore", "recurse"}},
	{"branch", []string{"rebase", "description", "sort", "autosetuprebase", "autosetupmerge"}},
	{"remote", []string{"tagopt", "prune", "prunetags", "pushdefault"}},
	{"commit", []string{"verbose", "cleanup", "status"}},
	{"lfs", []string{"repositoryformatversion"}},
	{"color", []string{"ui", "status", "diff", "branch"}},
	{"advice", []string{"detachedhead"}},
}

// harmlessValue judges variables that may stay by what they say.
func harmlessValue(variable, value string) bool {
	switch variable {
	case "remote.url", "remote.pushurl", "submodule.url",
		"branch.remote": // a remote's name, as a rule
		return isURL(value)
	case "remote.fetch", "branch.merge":
		return isRefspec(value)
	}
	return false
}

func harmless(e Entry, inside func(string) bool) bool {
	for _, of := range harmlessNames {
		if of.section == e.Section && slices.Contains(of.names, e.Name) {
			return true
		}
	}
	if e.Section == "core" && e.Name == "worktree" && !e.Sub {
		return inside(e.Value)
	}
	return harmlessValue(e.Section+"."+e.Name, e.Value)
}

// isURL refuses what makes git run a helper of another name
// ("ext::sh -c …", gitremote-helpers(7)) and what a program would take for an
// option.
func isURL(value string) bool {
	return value != "" && value[0] != '-' && !strings.Contains(value, "::") && !strings.ContainsAny(value, "\n\x00")
}

func isRefspec(value string) bool { return value != "" && value[0] != '-' }
