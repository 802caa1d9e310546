package usergit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/plan"
	"claudebox/internal/workspace/gitconfig"
)

// Identity is what the user's own configuration says about who commits here.
// Values are empty when nothing says so.
type Identity struct {
	Name, Email                   string // user.name, user.email
	AuthorName, AuthorEmail       string // author.*: outrank user.* for the author
	CommitterName, CommitterEmail string
	DefaultBranch                 string // init.defaultBranch
	Signs                         string // commit.gpgSign
	SignsBy                       string // gpg.format
	SigningKey                    string // user.signingKey

	Settings []gitconfig.Entry // all that the user's files say, in git's order
}

// Pick reads the identity from the user's own files, with their conditional includes, then from the variables that
// outrank them (GIT_AUTHOR_NAME and the like, which direnv may set) or are used in their absence (EMAIL). It fails
// where git would.
func Pick(src Sources, env func(string) (string, bool)) (Identity, error) {
	entries, err := read(src)
	if err != nil {
		return Identity{}, err
	}
	var id Identity
	places := id.places()
	set(places, entries)
	id.Settings = entries
	for _, v := range identityVariables {
		if value, _ := env(v.name); value != "" && !(v.fallback && *places[v.key] != "") {
			*places[v.key] = value
		}
	}
	return id, nil
}

// set takes over what settings say in places.
func set(places map[string]*string, entries []gitconfig.Entry) {
	for _, e := range entries {
		switch place := places[e.Key()]; {
		case place == nil:
		case e.Bare && e.Key() == "commit.gpgsign":
			*place = "true"
		case !e.Bare:
			*place = e.Value
		}
	}
}

// SignAs takes over what a repository's own settings say of signing: they count more.
func (id *Identity) SignAs(repository []gitconfig.Entry) {
	places := id.places()
	maps.DeleteFunc(places, func(key string, _ *string) bool {
		return !slices.Contains([]string{"commit.gpgsign", "gpg.format", "user.signingkey"}, key)
	})
	set(places, repository)
}

// Missing are the keys that git would ask for before it commits.
func (id Identity) Missing() (keys []string) {
	if id.Name == "" && (id.AuthorName == "" || id.CommitterName == "") {
		keys = append(keys, "user.name")
	}
	if id.Email == "" && (id.AuthorEmail == "" || id.CommitterEmail == "") {
		keys = append(keys, "user.email")
	}
	return keys
}

// unnoticed are sections whose settings an agent would not notice: those of other programs,
// and of logins and keys, on which there are other notes.
var unnoticed = []string{
	"author", "color", "column", "committer", "credential", "difftool", "gpg", "gui", "include", "includeif",
	"maintenance", "mergetool", "safe", "sendemail", "user",
}

// others names the settings that are neither in places, in [Named] nor unnoticed, in order, without
// subsections: a URL there may hold a password.
func others(entries []gitconfig.Entry, places map[string]*string) []string {
	var names []string
	for _, e := range entries {
		section := e.Top()
		name := section + "." + e.Name
		switch {
		case slices.Contains(unnoticed, section) || places[e.Key()] != nil || isNamed(e):
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

// Named are the settings that name a file, or a folder, of the user's which git obeys, and what is so without it.
// Default is where git looks in its own folder of the user's configuration if there is no setting.
var Named = []struct {
	Key, Consequence, Default string
	Folder, Content           bool // Content: what a commit holds depends on it
}{
	{Key: "core.excludesfile", Consequence: "git adds inside what it says to ignore", Default: "ignore", Content: true},
	{
		Key: "core.attributesfile", Consequence: "git commits inside as if it were not there",
		Default: "attributes", Content: true,
	},
	{Key: "core.hookspath", Consequence: "commits inside are made without its hooks", Folder: true, Content: true},
	{Key: "init.templatedir", Consequence: "a repository made inside begins without it", Folder: true},
	{Key: "commit.template", Consequence: "messages inside begin without it"},
	{Key: "gpg.ssh.allowedsignersfile", Consequence: "git inside knows no signer of a commit"},
	{Key: "gpg.ssh.revocationfile", Consequence: "git inside takes revoked keys for good ones"},
	{Key: "mailmap.file", Consequence: "git inside shows people by their other names"},
	{Key: "blame.ignorerevsfile", Consequence: "git blame inside does not skip what it lists"},
	{Key: "diff.orderfile", Consequence: "git diff inside has another order"},
}

func isNamed(e gitconfig.Entry) bool {
	for _, named := range Named {
		if named.Key == e.Key() {
			return true
		}
	}
	return false
}

// Value is what counts of a setting; empty: it is not set.
func (id Identity) Value(key string) string { return gitconfig.Last(id.Settings, key) }

func (id *Identity) places() map[string]*string {
	return map[string]*string{
		"user.name":          &id.Name,
		"user.email":         &id.Email,
		"author.name":        &id.AuthorName,
		"author.email":       &id.AuthorEmail,
		"committer.name":     &id.CommitterName,
		"committer.email":    &id.CommitterEmail,
		"init.defaultbranch": &id.DefaultBranch,
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

// Make writes the sandbox's ~/.gitconfig: what enters of the user's, the identity, the folders that git may trust, and
// where it may log in. Where no identity is known git is told not to invent one.
func Make(id Identity, own Own, safe []string, access Access) []byte {
	entries := slices.Concat(
		of("user", "name", id.Name, "email", id.Email, "useConfigOnly", "true"),
		of("author", "name", id.AuthorName, "email", id.AuthorEmail),
		of("committer", "name", id.CommitterName, "email", id.CommitterEmail),
		of("init", "defaultBranch", id.DefaultBranch))
	for _, dir := range safe {
		entries = append(entries, of("safe", "directory", dir)...)
	}
	entries = slices.DeleteFunc(entries, func(e gitconfig.Entry) bool { return e.Value == "" })
	return gitconfig.Render(slices.Concat(own.Entries, entries, access.entries()))
}

// Access says where git may log in, and how it gets there.
type Access struct {
	Hosts      []plan.GitHost // that git may log in to over HTTPS, maybe with a port
	SSHToHTTPS bool           // remotes that are written for SSH are reached over HTTPS
	NoSSH      bool           // there is no ssh inside: git says what to do instead
	SSH        []string       // hosts that ssh logs in to: their remotes stay what they are
	SigningKey string         // public; empty: nothing is signed
	Signs      bool           // commits are signed without being asked for
}

// noSSH is run instead of ssh: by a shell, with git's arguments after it.
const noSSH = "printf '%s\\n' 'claudebox: there is no ssh inside. In the profile, `git: {hosts: {HOST: VARIABLE}, " +
	"ssh_to_https: true}` " +
	"reaches such a remote over HTTPS.' >&2; exit 128; :"

// helper answers git's question for a password (gitcredentials(7)) with the
// token, which thus stands neither in the configuration nor on a command line:
// printf is the shell's own. git asks it for the one URL below which it is
// configured, scheme and port included, and for nothing else. It keeps nothing.
const helper = `!f() { test "$1" = get && test -n "$VARIABLE" && printf 'password=%s\n' "$VARIABLE"; }; f`

// tokenUsers are the user names that go with a token; most hosts take any.
var tokenUsers = map[string]string{"bitbucket.org": "x-token-auth", "gitlab.com": "oauth2"}

func login(h plan.GitHost) []gitconfig.Entry {
	return below("https://"+h.Host, of("credential",
		"username", cmp.Or(tokenUsers[h.Host], "x-access-token"),
		"helper", "", // forget those of other files
		"helper", strings.ReplaceAll(helper, "VARIABLE", h.Variable)))
}

// of makes settings of one section from pairs of names and values.
func of(section string, words ...string) (entries []gitconfig.Entry) {
	for i := 0; i < len(words); i += 2 {
		entries = append(entries, gitconfig.Entry{Section: section, Name: words[i], Value: words[i+1]})
	}
	return entries
}

// below gives settings a subsection.
func below(subsection string, entries []gitconfig.Entry) []gitconfig.Entry {
	for i := range entries {
		entries[i].Sub, entries[i].Subsection = true, subsection
	}
	return entries
}

// forges are hosts whose SSH remotes have the same path over HTTPS, without
// being named: what is public there can be fetched by everybody.
var forges = []string{"bitbucket.org", "codeberg.org", "github.com", "gitlab.com"}

// rewrites makes the url.insteadOf settings for all ways to write an SSH remote on a host, before the path
// (git-clone(1), "GIT URLS").
func rewrites(host string) []gitconfig.Entry {
	name, _, _ := strings.Cut(host, ":")
	ways := []string{"git@" + name + ":", "ssh://git@" + name + "/", "ssh://git@" + name + ":22/"}
	if name == "github.com" { // for networks that close port 22
		ways = append(ways, "ssh://git@ssh.github.com:443/")
	}
	var entries []gitconfig.Entry
	for _, way := range ways {
		entries = append(entries, of("url", "insteadOf", way)...)
	}
	return below("https://"+host+"/", entries)
}

// entries returns the settings by which git logs in and signs; none, if a asks for nothing.
func (a Access) entries() []gitconfig.Entry {
	var entries []gitconfig.Entry
	var hosts []string
	for _, h := range a.Hosts {
		entries, hosts = append(entries, login(h)...), append(hosts, h.Host)
	}
	if a.NoSSH {
		entries = append(entries, of("core", "sshCommand", noSSH)...)
	}
	if a.SigningKey != "" {
		entries = append(entries, of("gpg", "format", "ssh")...)
		entries = append(entries, of("user", "signingKey", "key::"+a.SigningKey)...)
	}
	if a.Signs {
		entries = append(entries, of("commit", "gpgSign", "true")...)
	}
	if !a.SSHToHTTPS {
		return entries
	}
	named := slices.Clone(a.SSH)
	for _, host := range append(hosts, forges...) {
		if name, _, _ := strings.Cut(host, ":"); !slices.Contains(named, name) {
			entries, named = append(entries, rewrites(host)...), append(named, name)
		}
	}
	return entries
}
