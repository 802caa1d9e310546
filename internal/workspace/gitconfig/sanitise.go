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
// Variables whose full names ([Entry.Key]) are in without are left out, too.
func Sanitise(src []byte, without ...string) []byte {
	entries, err := Parse(src)
	kept := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if isSecret(e) || slices.Contains(without, e.Key()) {
			continue
		}
		if at := strings.LastIndexByte(e.Value, '@'); e.Name == "proxy" && !strings.Contains(e.Value, "://") {
			e.Value = e.Value[at+1:] // git takes a proxy without a scheme, too
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

// NeedsSanitising reports whether [Sanitise] would take something out of a
// configuration. Any comment counts, and all that git refuses.
func NeedsSanitising(src []byte) bool {
	entries, err := Parse(src)
	return err != nil || bytes.ContainsAny(src, "#;") || !bytes.Equal(Render(entries), Sanitise(src))
}

// removals are the variables that are left out, by section and name, in any subsection; "*" is all of a section.
var removals = []string{
	"credential.*",
	"http.extraheader",
	"http.cookiefile", "core.sshcommand", "core.askpass", "core.gitproxy", "ssh.*", "gpg.*", "user.signingkey",
	"commit.gpgsign", "tag.gpgsign", "tag.forcesignannotated", "push.gpgsign", "imap.pass", "sendemail.smtppass",
}

// secretWords are parts of a variable's name by which it is a secret, as other tools have them (github.token,
// gitlab.apikey, svn.password).
var secretWords = []string{"token", "secret", "passw", "apikey", "api-key", "private-key", "credential"}

// secretShapes are the beginnings and other marks of secret values, which may be part of any setting: an alias can hold
// one.
var secretShapes = []string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glcbt-",
	"sk-ant-", "AKIA", "xoxb-", "xoxp-", "npm_", "pypi-", "ATATT3", "ATBB",
	"BEGIN OPENSSH PRIVATE", "BEGIN RSA PRIVATE", "BEGIN PRIVATE",
	"_token=", "?sig=", "&sig=", "&token=", "?token=", "X-Amz-Signature=", "authorization:", "Authorization:",
	"AUTHORIZATION:", "PRIVATE-TOKEN:", "Private-Token:",
}

func isSecret(e Entry) bool {
	value, subsection := StripUserinfo(e.Value), StripUserinfo(e.Subsection)
	return slices.Contains(removals, e.Top()+".*") || slices.Contains(removals, e.Top()+"."+e.Name) ||
		e.Name == "pat" || containsAny(e.Name, secretWords) || leak.Token(value) != "" ||
		containsAny(value, secretShapes) || containsAny(subsection, secretShapes)
}

func containsAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

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
			// For ssh the user name says where to log in, and is no secret; in an https URL it is often a token.
			if strings.HasSuffix(before, "ssh") || strings.HasSuffix(before, "ssh+git") {
				user, _, _ := strings.Cut(authority[:at], ":")
				b.WriteString(user + "@")
			}
			after = after[at+1:]
		}
		s = after
	}
}
