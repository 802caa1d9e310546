package gitconfig

import (
	"bytes"
	"slices"
	"strings"

	"claudebox/internal/secret/leak"
)

// Sanitise copies a project's configuration without what is secret and
// without what cannot work inside: userinfo in URLs, HTTP headers,
// credentials, signing, the ssh command (sandbox.md, "Git"). Comments go too:
// people keep old tokens in them.
//
// The copy of a file that git refuses is one that git refuses: dropping the
// bad rest silently would change what the repository means.
//
// without names variables that are left out besides, as [Entry.Key] does.
func Sanitise(src []byte, without ...string) []byte {
	entries, err := Parse(src)
	kept := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if removed(e) || slices.Contains(without, e.Key()) {
			continue
		}
		e.Value, e.Subsection = StripUserinfo(e.Value), StripUserinfo(e.Subsection)
		kept = append(kept, e)
	}
	out := Render(kept)
	if err != nil {
		out = append(out, "# the project's file has a "+err.Error()+"; so has this copy\n[broken\n"...)
	}
	return out
}

// HoldsSecrets reports whether [Sanitise] would take something out of a
// configuration. Any comment counts, and all that git refuses.
func HoldsSecrets(src []byte) bool {
	entries, err := Parse(src)
	return err != nil || bytes.ContainsAny(src, "#;") || !bytes.Equal(Render(entries), Sanitise(src))
}

// removals names variables by section and name, whatever the subsection; an
// empty name stands for the whole section.
var removals = []struct{ section, name string }{
	{"credential", ""},
	{"http", "extraheader"},
	{"http", "cookiefile"},
	{"core", "sshcommand"},
	{"core", "askpass"},
	{"core", "gitproxy"},
	{"ssh", ""},
	{"gpg", ""},
	{"user", "signingkey"},
	{"commit", "gpgsign"},
	{"tag", "gpgsign"},
	{"tag", "forcesignannotated"},
	{"push", "gpgsign"},
	{"imap", "pass"},
	{"sendemail", "smtppass"},
}

// secretWords mark a variable of some tool of its own (github.token,
// gitlab.apikey, svn.password) as a secret by its name.
var secretWords = []string{"token", "secret", "passw", "apikey", "api-key", "private-key", "credential"}

// secretShapes begin or mark values that are secrets wherever they stand; an
// alias can hold one.
var secretShapes = []string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glcbt-",
	"sk-ant-", "AKIA", "xoxb-", "xoxp-", "npm_", "pypi-", "ATATT3", "ATBB",
	"BEGIN OPENSSH PRIVATE", "BEGIN RSA PRIVATE", "BEGIN PRIVATE",
	"_token=", "?sig=", "&sig=", "&token=", "?token=", "X-Amz-Signature=", "authorization:", "Authorization:",
	"AUTHORIZATION:", "PRIVATE-TOKEN:", "Private-Token:",
}

func removed(e Entry) bool {
	for _, r := range removals {
		if e.top() == r.section && (r.name == "" || e.Name == r.name) {
			return true
		}
	}
	return e.Name == "pat" || containsAny(e.Name, secretWords) || leak.Token(StripUserinfo(e.Value)) != "" ||
		containsAny(StripUserinfo(e.Value), secretShapes) ||
		containsAny(StripUserinfo(e.Subsection), secretShapes)
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// sshSchemes keep their user name: it says where to log in and is no secret,
// while a user name in an https URL is often a token.
var sshSchemes = []string{"ssh", "git+ssh", "ssh+git"}

// StripUserinfo takes user names and passwords out of every URL in s.
func StripUserinfo(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "://")
		if !found {
			b.WriteString(s)
			return b.String()
		}
		authority := after
		if end := strings.IndexAny(after, "/?# \t\n\"'"); end >= 0 {
			authority = after[:end]
		}
		b.WriteString(before + "://")
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			b.WriteString(keptUser(before, authority[:at]))
			after = after[at+1:]
		}
		s = after
	}
}

// keptUser is what stays of a userinfo, with its "@".
func keptUser(before, userinfo string) string {
	for _, scheme := range sshSchemes {
		if strings.HasSuffix(before, scheme) {
			user, _, _ := strings.Cut(userinfo, ":")
			return user + "@"
		}
	}
	return ""
}
