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

// places are the folders in which tools look for what they obey, or keep secrets, the more important ones first: of
// each at most [mostFolders] are looked into, level by level.
var places = []place{
	{".claude", 6, 4, true},
	{".config", 7, 3, true},
	{".local/bin", 3, 1, true},
	{".local/share", 5, 3, true},
	{".local", 2, 0, true},
	{"bin", 4, 2, true},
	{"", 6, 3, false},
}

// named is the place of what a variable names, and of a folder of PATH.
var (
	named  = place{deep: 5, files: 2, all: true}
	ofPath = place{deep: 1, files: 1, all: true}
)

// plainNames are names at the top of a home that count, though they begin with no dot.
var plainNames = []string{"bin", "snap"}

// passedOver are folders of what programs fetched or made: many entries, and nothing that a link would put there. Those
// with a slash are of the home, the others are anywhere.
var passedOver = []string{
	"/.config", "/.local", "/.claude", "/.claudebox", "/.npm", "/.rustup", "/.gradle", "/.m2", "/.var", "/.steam", "/snap",
	"/.claude/projects", "/.claude/todos", "/.claude/file-history", "/.local/share/containers", "/.local/share/flatpak",
	".Trash", "Trash", ".git", "node_modules", "registry", "storage", "workspaceStorage", "site-packages",
}

// counts reports whether a name in a place is looked at.
func (p place) counts(dir, name string) bool {
	return p.all || dir != p.rel || strings.HasPrefix(name, ".") || slices.Contains(plainNames, name)
}

// enters reports whether a folder of that name, in a folder of the home, is looked into.
func enters(rel, name string) bool {
	return !strings.Contains(strings.ToLower(name), "cache") && !slices.Contains(passedOver, name) &&
		!slices.Contains(passedOver, path.Join("/", rel, name))
}
