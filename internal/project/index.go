package project

import (
	"path"
	"strings"

	"claudebox/internal/beneath"
	"claudebox/internal/gitconfig"
	"claudebox/internal/gitindex"
)

// tracked tells which of the project's places git's index holds, or has
// something below. It is judged as far as the index can be read: what is not
// known to be tracked is protected.
func (o *opener) tracked(places []string) map[string]bool {
	if o.Repo.Dir == "" {
		return nil
	}
	base := o.tree
	if !o.contains(o.Repo.Dir) {
		at, err := beneath.Open(o.Repo.Dir)
		if err != nil {
			return nil
		}
		defer at.Close()
		base = at
	}
	file, err := base.File(path.Join(relative(base.Path(), o.Repo.Dir), "index"))
	if err != nil {
		return nil
	}
	defer file.Close()
	prefix := ""
	if below := relative(o.Repo.Worktree, o.Path); below != "." {
		prefix = below + "/"
	}
	found, _ := gitindex.Tracked(file, o.hashSize, prefix, places)
	return found
}

// hashSize is how long object names are, in bytes.
func hashSize(entries []gitconfig.Entry) int {
	if strings.EqualFold(gitconfig.Last(entries, "extensions.objectformat"), "sha256") {
		return 32
	}
	return 20
}
