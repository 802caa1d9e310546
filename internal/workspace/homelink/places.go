package homelink

import (
	"slices"
	"strings"
)

// place is a folder of the home whose links are looked for.
type place struct {
	rel  string // to the home
	deep int    // levels of folders, 1: the folder alone
	file bool   // its files may have other names elsewhere (hard links), and are looked at for that, too
	all  bool   // ordinary names count, not only those that begin with a dot
}

// places are the folders in which tools look for what they obey, or keep secrets. What is named for itself stands
// before the folder that it lies in, which is looked at less closely.
var places = []place{
	{".config/systemd/user", 2, true, true},
	{".config/autostart", 1, true, true},
	{".config/git", 2, true, true},
	{".config/fish", 3, true, true},
	{".config/nvim", 4, true, true},
	{".config/environment.d", 1, true, true},
	{".config/zsh", 2, true, true},
	{".config/direnv", 2, true, true},
	{".config/mise", 2, true, true},
	{config, 2, true, true},
	{".claude/skills", 3, true, true},
	{".claude/hooks", 2, true, true},
	{".claude/agents", 2, true, true},
	{".claude/commands", 3, true, true},
	{".claude/plugins", 2, false, true},
	{".claude/output-styles", 1, true, true},
	{".claude/rules", 2, true, true},
	{".claude", 1, true, true},
	{".local/bin", 1, true, true},
	{".local/share/applications", 1, true, true},
	{".local/share/systemd/user", 2, true, true},
	{".local/share/dbus-1/services", 1, true, true},
	{".local/share/nvim/site", 3, false, true},
	{".local/share/zsh/site-functions", 1, true, true},
	{".local/share/fish", 2, false, true},
	{".local/share/bash-completion/completions", 1, true, true},
	{".local/share", 1, false, true},
	{".local", 1, false, true},
	{"bin", 2, true, true},
	{".vim", 3, true, true},
	{".emacs.d", 2, true, true},
	{".ssh", 2, true, true},
	{".gnupg", 2, true, true},
	{".aws", 2, true, true},
	{".kube", 2, true, true},
	{".docker", 2, true, true},
	{"", 2, true, false},
}

// config is the place with the most folders.
const config = ".config"

// plainNames are names at the top of a home that count, though they begin with no dot.
var plainNames = []string{"bin", "snap"}

// passedOver are folders of what programs fetched or made: many entries, and nothing that a link would put there.
var passedOver = []string{
	".cache", ".config", ".local", ".claude", ".npm", ".rustup", ".gradle", ".m2", ".Trash", ".git", ".claudebox",
	".var", ".steam", "snap",
}

// counts reports whether a name in a place is looked at.
func (p place) counts(name string) bool {
	return p.all || strings.HasPrefix(name, ".") || slices.Contains(plainNames, name)
}

// enters reports whether a folder of that name in a place is looked into as a part of it. Some are places of their own.
func (p place) enters(name string) bool { return p.rel != "" || !slices.Contains(passedOver, name) }
