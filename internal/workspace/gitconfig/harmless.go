package gitconfig

import (
	"slices"
	"strings"
)

// Judge decides what the text of a configuration does not tell. Nil functions
// report false.
type Judge struct {
	// Own reports whether a setting is the user's: it stood there before.
	Own func(Entry) bool
	// Worktree reports whether a core.worktree is the checkout of this very
	// repository: git writes files there.
	Worktree func(path string) bool
	// Local reports whether git may run in the repository at a path.
	Local func(path string) bool
}

// Harmless copies the configuration of a repository that an agent made, with
// nothing in it that makes the host's git run or read what it names: variables
// that are known to be harmless stay, and the user's own; all others go. dropped
// are the full names of those that went, each once. A bad line, and all behind
// it, goes.
func Harmless(src []byte, judge Judge) (clean []byte, dropped []string) {
	entries, err := Parse(src)
	var kept []Entry
	for _, e := range entries {
		switch {
		case judge.harmless(e) || judge.Own != nil && judge.Own(e):
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
var harmlessNames = map[string]string{
	"core": `repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol
		safecrlf quotepath abbrev compression loosecompression sparsecheckout sparsecheckoutcone untrackedcache
		trustctime checkstat commitgraph multipackindex commentchar whitespace longpaths`,
	"extensions":  "objectformat compatobjectformat worktreeconfig noop relativeworktrees",
	"user":        "name email useconfigonly",
	"author":      "name email",
	"committer":   "name email",
	"init":        "defaultbranch",
	"pull":        "rebase ff",
	"push":        "default autosetupremote followtags",
	"fetch":       "prune prunetags writecommitgraph",
	"merge":       "ff conflictstyle renames stat autostash",
	"rebase":      "autosquash autostash updaterefs stat",
	"rerere":      "enabled autoupdate",
	"diff":        "renames algorithm colormoved mnemonicprefix noprefix renamelimit",
	"log":         "date decorate abbrevcommit",
	"status":      "short branch showuntrackedfiles submodulesummary",
	"index":       "version threads sparse",
	"feature":     "manyfiles experimental",
	"gc":          "auto autopacklimit pruneexpire worktreepruneexpire",
	"pack":        "threads writebitmaps window depth",
	"maintenance": "auto strategy",
	"submodule":   "active branch ignore recurse",
	"branch":      "rebase description sort autosetuprebase autosetupmerge",
	"remote":      "tagopt prune prunetags",
	"commit":      "verbose cleanup status",
	"lfs":         "repositoryformatversion",
	"color":       "ui status diff branch",
	"advice":      "detachedhead",
}

// harmless judges a setting by its name, and some by what they say.
func (j Judge) harmless(e Entry) bool {
	if slices.Contains(strings.Fields(harmlessNames[e.Section]), e.Name) {
		return true
	}
	switch e.Section + "." + e.Name {
	case "core.worktree":
		return !e.Sub && j.Worktree != nil && j.Worktree(e.Value)
	case "extensions.refstorage":
		return e.Value == "files" || e.Value == "reftable"
	case "core.protecthfs", "core.protectntfs":
		return e.Value != "" && IsTrue(e.Value)
	case "branch.remote", "remote.pushdefault": // a remote's name, as a rule
		return isName(e.Value) || j.isURL(e.Value)
	case "remote.url", "remote.pushurl", "submodule.url":
		return j.isURL(e.Value)
	case "remote.fetch", "branch.merge":
		return e.Value != "" && e.Value[0] != '-'
	}
	return false
}

// isURL takes what leads to another machine, by a protocol that runs no helper
// of another name (gitremote-helpers(7)), and what leads to a repository that
// was judged.
func (j Judge) isURL(value string) bool {
	if value == "" || value[0] == '-' || strings.Contains(value, "::") || strings.ContainsAny(value, "\n\x00") {
		return false
	}
	if scheme, rest, is := strings.Cut(value, "://"); is {
		if scheme == "file" {
			return j.Local != nil && j.Local(rest)
		}
		return slices.Contains([]string{"https", "http", "ssh", "git", "git+ssh", "ssh+git"}, scheme) && rest != "" &&
			rest[0] != '-'
	}
	host, _, colon := strings.Cut(value, ":")
	if colon && !strings.Contains(host, "/") && host != "" { // scp's form
		return true
	}
	return j.Local != nil && j.Local(value)
}

// isName takes the name of a remote: git takes one for a path if there is no
// remote of that name, and "." for this repository.
func isName(value string) bool {
	return value == "." || value != "" && value != ".." && value[0] != '-' && !strings.ContainsAny(value, "/:\n\x00")
}
