package gitconfig

import (
	"cmp"
	"slices"
	"strings"
)

// Access says where git may log in, and how it gets there (SEC-03).
type Access struct {
	Hosts      []Host
	SSHToHTTPS bool     // remotes that are written for SSH are reached over HTTPS
	NoSSH      bool     // there is no ssh inside: git says what to do instead
	SSH        []string // hosts that ssh logs in to: their remotes stay what they are
	SigningKey string   // public; empty: nothing is signed
	Signs      bool     // commits are, unasked
}

// noSSH stands in for ssh. git has a shell run it, with more words behind it.
const noSSH = "printf '%s\\n' 'claudebox: there is no ssh inside. In the profile, `git: {hosts: {HOST: VARIABLE}, " +
	"ssh_to_https: true}` " +
	"reaches such a remote over HTTPS.' >&2; exit 128; :"

// Host is one that git may log in to over HTTPS.
type Host struct {
	Name     string // "github.com", or with a port: "git.example.org:8443"
	Variable string // of the environment, with the token
}

// helper answers git's question for a password (gitcredentials(7)) with the
// token, which thus stands neither in the configuration nor on a command line:
// printf is the shell's own. git asks it for the one URL below which it is
// configured, scheme and port included, and for nothing else. It keeps nothing.
const helper = `!f() { test "$1" = get && test -n "$VARIABLE" && printf 'password=%s\n' "$VARIABLE"; }; f`

// tokenUsers are the user names that go with a token; most hosts take any.
var tokenUsers = map[string]string{"bitbucket.org": "x-token-auth", "gitlab.com": "oauth2"}

func (h Host) entries() []Entry {
	return below("https://"+h.Name, of("credential",
		"username", cmp.Or(tokenUsers[h.Name], "x-access-token"),
		"helper", "", // forget those of other files
		"helper", strings.ReplaceAll(helper, "VARIABLE", h.Variable)))
}

// of are settings of a section, from names and values.
func of(section string, words ...string) (entries []Entry) {
	for i := 0; i < len(words); i += 2 {
		entries = append(entries, Entry{Section: section, Name: words[i], Value: words[i+1]})
	}
	return entries
}

// below gives settings a subsection.
func below(subsection string, entries []Entry) []Entry {
	for i := range entries {
		entries[i].Sub, entries[i].Subsection = true, subsection
	}
	return entries
}

// forges are hosts whose SSH remotes have the same path over HTTPS, without
// being named: what is public there can be fetched by everybody.
var forges = []string{"bitbucket.org", "codeberg.org", "github.com", "gitlab.com"}

// rewrites are the ways to write an SSH remote on a host, before the path
// (git-clone(1), "GIT URLS").
func rewrites(host string) []Entry {
	name, _, _ := strings.Cut(host, ":")
	ways := []string{"git@" + name + ":", "ssh://git@" + name + "/", "ssh://git@" + name + ":22/"}
	if name == "github.com" { // for networks that close port 22
		ways = append(ways, "ssh://git@ssh.github.com:443/")
	}
	var entries []Entry
	for _, way := range ways {
		entries = append(entries, of("url", "insteadOf", way)...)
	}
	return below("https://"+host+"/", entries)
}

// entries are what git is told. With no host and no wish they are none.
func (a Access) entries() []Entry {
	var entries []Entry
	for _, h := range a.Hosts {
		entries = append(entries, h.entries()...)
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
	var hosts []string
	for _, h := range a.Hosts {
		hosts = append(hosts, h.Name)
	}
	named := slices.Clone(a.SSH)
	for _, host := range append(hosts, forges...) {
		if name, _, _ := strings.Cut(host, ":"); !slices.Contains(named, name) {
			entries, named = append(entries, rewrites(host)...), append(named, name)
		}
	}
	return entries
}
