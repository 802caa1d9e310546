package gitconfig

import (
	"slices"
	"strings"
)

// Identity is what the user's own configuration says about who commits here.
// Values are empty when nothing says so.
type Identity struct {
	Name, Email                   string // user.name, user.email
	AuthorName, AuthorEmail       string // author.*: outrank user.* for the author
	CommitterName, CommitterEmail string
	DefaultBranch                 string // init.defaultBranch
	Excludes                      string // core.excludesFile
	Signs                         string // commit.gpgSign
	SignsBy                       string // gpg.format
	SigningKey                    string // user.signingKey
	Others                        string // what else is set and felt, by name: "alias.*, pull.rebase"
}

// Pick reads the identity from the user's own files, conditional includes
// honoured, then from the variables that outrank them (GIT_AUTHOR_NAME and
// its like, as direnv sets them) or stand in for them (EMAIL). It fails where
// git would, see [Read].
func Pick(src Sources, env func(string) (string, bool)) (Identity, error) {
	entries, err := Read(src)
	if err != nil {
		return Identity{}, err
	}
	var id Identity
	places := id.places()
	for _, e := range entries {
		if place := places[e.Key()]; place != nil && !e.Bare {
			*place = e.Value
		}
	}
	id.Others = strings.Join(others(entries, places), ", ")
	for _, v := range identityVariables {
		if value, _ := env(v.name); value != "" && !(v.fallback && *places[v.key] != "") {
			*places[v.key] = value
		}
	}
	return id, nil
}

// Missing is the first key that git would ask for before it commits; empty: none.
func (id Identity) Missing() string {
	switch {
	case id.Name == "" && (id.AuthorName == "" || id.CommitterName == ""):
		return "user.name"
	case id.Email == "" && (id.AuthorEmail == "" || id.CommitterEmail == ""):
		return "user.email"
	}
	return ""
}

// unfelt are sections that change nothing for an agent: other programs', and
// those of logins and keys, which are spoken of elsewhere.
var unfelt = []string{
	"author", "color", "column", "committer", "credential", "difftool", "gpg", "gui", "include", "includeif",
	"maintenance", "mergetool", "safe", "sendemail", "user",
}

// others names what is set besides places, in order, without subsections: a URL
// there may hold a password.
func others(entries []Entry, places map[string]*string) []string {
	var names []string
	for _, e := range entries {
		section := e.top()
		name := section + "." + e.Name
		switch {
		case slices.Contains(unfelt, section) || places[e.Key()] != nil:
			continue
		case section == "alias":
			name = "alias.*"
		case e.Sub:
			name = section + ".*." + e.Name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (id *Identity) places() map[string]*string {
	return map[string]*string{
		"user.name":          &id.Name,
		"user.email":         &id.Email,
		"author.name":        &id.AuthorName,
		"author.email":       &id.AuthorEmail,
		"committer.name":     &id.CommitterName,
		"committer.email":    &id.CommitterEmail,
		"init.defaultbranch": &id.DefaultBranch,
		"core.excludesfile":  &id.Excludes,
		"commit.gpgsign":     &id.Signs,
		"gpg.format":         &id.SignsBy,
		"user.signingkey":    &id.SigningKey,
	}
}

// identityVariables are the host's variables that git would obey; none of
// them enters the sandbox, their meaning does.
var identityVariables = []struct {
	name, key string
	fallback  bool // only when the files say nothing
}{
	{"GIT_AUTHOR_NAME", "author.name", false},
	{"GIT_AUTHOR_EMAIL", "author.email", false},
	{"GIT_COMMITTER_NAME", "committer.name", false},
	{"GIT_COMMITTER_EMAIL", "committer.email", false},
	{"EMAIL", "user.email", true},
}

// Make writes the sandbox's ~/.gitconfig: the identity, the folders that git
// may trust, where it may log in, and what lets switch and push run while the
// project's own configuration is read-only. Where no identity is known git is told not to
// invent one.
func Make(id Identity, safe []string, access Access) []byte {
	entries := slices.Concat(
		of("user", "name", id.Name, "email", id.Email, "useConfigOnly", "true"),
		of("author", "name", id.AuthorName, "email", id.AuthorEmail),
		of("committer", "name", id.CommitterName, "email", id.CommitterEmail),
		of("init", "defaultBranch", id.DefaultBranch), of("branch", "autoSetupMerge", "false"),
		of("push", "default", "current"))
	for _, dir := range safe {
		entries = append(entries, of("safe", "directory", dir)...)
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Value == "" })
	return Render(append(entries, access.entries()...))
}
