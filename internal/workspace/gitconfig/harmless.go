package gitconfig

import (
	"slices"
	"strings"
	"unicode"
)

// Judge decides what the text of a setting does not tell.
type Judge struct {
	// Own reports whether a setting is the user's: it was there before the session.
	Own func(Entry) bool
	// Worktree reports whether a core.worktree is the checkout of this very repository: git writes files there.
	Worktree func(path string) bool
	// Local reports whether a path leads to a repository in which git may run hooks: the user's, or one that was
	// judged.
	Local func(path string) bool
}

// Harmless copies the configuration of a repository that an agent made, without what makes the host's git run or read
// what the agent chose: variables that are known to be harmless stay, and the user's own; all others go. dropped are
// the full names of those that went, each once. A bad line goes, with everything after it; what is wrong with it comes
// last in dropped.
func Harmless(src []byte, judge Judge) (clean []byte, dropped []string) {
	entries, err := Parse(src)
	var kept []Entry
	said := map[string]bool{}
	for _, e := range entries {
		if judge.harmless(e) || judge.Own(e) {
			kept = append(kept, e)
			continue
		}
		if key := e.Key(); !said[key] {
			said[key] = true
			dropped = append(dropped, key)
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
		commitgraph multipackindex commentchar whitespace longpaths`,
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

// harmless reports whether a setting is harmless by its name or, for some names, by its value.
func (j Judge) harmless(e Entry) bool {
	// Git hands a remote's name to another git as a word of its command line.
	if strings.HasPrefix(e.Subsection, "-") || strings.ContainsFunc(e.Subsection+e.Value, unicode.IsControl) {
		return false
	}
	if slices.Contains(strings.Fields(harmlessNames[e.Section]), e.Name) {
		return true
	}
	switch e.Section + "." + e.Name {
	case "core.worktree":
		return !e.Sub && j.Worktree(e.Value)
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

// isURL reports whether a value leads to another machine, by a protocol that git itself brings, so that the value
// cannot name another helper (gitremote-helpers(7)), or to a repository for which Local is true.
func (j Judge) isURL(value string) bool {
	if value == "" || value[0] == '-' || strings.Contains(value, "::") {
		return false
	}
	if scheme, rest, ok := strings.Cut(value, "://"); ok {
		if scheme == "file" {
			return j.Local(rest)
		}
		return slices.Contains([]string{"https", "http", "ssh", "git", "git+ssh", "ssh+git"}, scheme) && rest != "" &&
			rest[0] != '-'
	}
	host, _, colon := strings.Cut(value, ":")
	isSCP := colon && !strings.Contains(host, "/") && host != ""
	return isSCP || j.Local(value)
}

// isName reports whether a value is "." for this repository, or may be the name of a remote. If there is no remote of
// that name, git takes the value for a path.
func isName(value string) bool {
	return value == "." || value != "" && value != ".." && value[0] != '-' && !strings.ContainsAny(value, "/:\n\x00")
}
