package homelink

import (
	"path"
	"slices"
	"strings"
)

// place is a folder of the home whose links are looked for.
type place struct {
	rel   string // to the home
	deep  int    // levels of folders, 1: the folder alone
	files int    // levels whose files may have other names elsewhere (hard links), and are looked at for that, too
	all   bool   // ordinary names count, not only those that begin with a dot
}

// places are the folders in which tools look for what they obey, or keep secrets. What is named for itself stands
// before the folder that it lies in, which is looked at less closely. Of each at most [mostFolders] are looked into,
// level by level.
var places = []place{
	{".claude", 5, 4, true},
	{".codex", 5, 4, true},
	{".agents", 5, 4, true},
	{".config/nvim", 4, 4, true},
	{".config/Code/User", 3, 3, true},
	{".config/opencode", 4, 4, true},
	{".config", 3, 2, true},
	{".local/bin", 2, 1, true},
	{".local/share/nvim/site", 4, 0, true},
	{".local/share", 2, 1, true},
	{".local", 1, 0, true},
	{"bin", 2, 2, true},
	{".vim", 4, 3, true},
	{".emacs.d", 3, 2, true},
	{"", 3, 2, false},
}

// further is how many levels more a look goes that no launch waits for.
const further = 4

// named is the place of what a variable names, ofPath that of a folder of PATH.
var (
	named  = place{deep: 4, files: 2, all: true}
	ofPath = place{deep: 1, files: 1, all: true}
)

// plainNames are names at the top of a home that count, though they begin with no dot.
var plainNames = []string{"bin", "snap"}

// passedOver are folders of what programs fetched or made: many entries, and nothing that a link would put there. Those
// with a slash are of the home, the others are anywhere.
var passedOver = []string{
	"/.config", "/.local", "/.claude", "/.claudebox", "/.npm", "/.rustup", "/.gradle", "/.m2", "/.var", "/.steam",
	"/snap", "/.claude/projects", "/.claude/todos", "/.claude/file-history", "/.local/share/containers",
	"/.local/share/flatpak",
	".Trash", "Trash", ".git", "node_modules", "registry", "storage", "workspaceStorage", "site-packages",
}

// counts reports whether a name at the top of a home is looked at.
func counts(name string) bool {
	return strings.HasPrefix(name, ".") || slices.Contains(plainNames, name)
}

// enters reports whether a folder of that name, in a folder of the home, is looked into.
func enters(rel, name string) bool {
	return !strings.Contains(strings.ToLower(name), "cache") && !slices.Contains(passedOver, name) &&
		!slices.Contains(passedOver, path.Join("/", rel, name))
}
