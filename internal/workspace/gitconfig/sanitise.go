package gitconfig

import (
	"bytes"
	"slices"
	"strings"

	"claudebox/internal/secret/leak"
)

// Sanitise copies a project's configuration without what is secret and without what cannot work inside: userinfo in
// URLs, HTTP headers, credentials, signing, the ssh command, and the variables whose full names ([Entry.Key]) omit
// lists. Comments go too: people keep old tokens in them.
//
// If git refuses the file at some line, it also refuses the copy: a copy that just ended there would mean something
// else.
func Sanitise(src []byte, omit ...string) []byte {
	entries, err := Parse(src)
	kept := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if IsSecret(e) || slices.Contains(omit, e.Key()) {
			continue
		}
		if at := strings.LastIndexByte(e.Value, '@'); e.Name == "proxy" && !strings.Contains(e.Value, "://") {
			e.Value = e.Value[at+1:] // git takes a proxy without a scheme, too
		}
		e.Value, e.Subsection = StripUserinfo(e.Value), StripUserinfo(e.Subsection)
		kept = append(kept, e)
	}
	out := Render(kept)
	if err != nil { // the bracket is not closed, so that git refuses this copy
		out = append(out, "# the project's file has a "+err.Error()+"; so has this copy\n[broken\n"...)
	}
	return out
}

// NeedsSanitising reports whether a configuration may hold a secret: it has a "#" or ";", which may begin a comment, or
// git refuses it, or [Sanitise] would change or leave out a variable.
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

// secretWords mark a variable as a secret if its name contains one. Other tools keep such variables in git's
// configuration: github.token, gitlab.apikey, svn.password.
var secretWords = []string{"token", "secret", "passw", "apikey", "api-key", "private-key", "credential"}

// secretShapes mark a value or a subsection as secret if it contains one, whatever the variable's name: an alias can
// hold a token. [leak.Token], which wants a whole token, finds less.
var secretShapes = []string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glcbt-",
	"sk-ant-", "AKIA", "xoxb-", "xoxp-", "npm_", "pypi-", "ATATT3", "ATBB",
	"BEGIN OPENSSH PRIVATE", "BEGIN RSA PRIVATE", "BEGIN PRIVATE",
	"_token=", "?sig=", "&sig=", "&token=", "?token=", "X-Amz-Signature=", "authorization:", "Authorization:",
	"AUTHORIZATION:", "PRIVATE-TOKEN:", "Private-Token:",
}

// IsSecret reports whether a variable is left out: for its name, or for what its value or subsection holds.
func IsSecret(e Entry) bool {
	value, subsection := StripUserinfo(e.Value), StripUserinfo(e.Subsection)
	return slices.Contains(removals, e.Top()+".*") || slices.Contains(removals, e.Top()+"."+e.Name) ||
		e.Name == "pat" /* personal access token */ || containsAny(e.Name, secretWords) || leak.Token(value) != "" ||
		containsAny(value, secretShapes) || containsAny(subsection, secretShapes) || givesSecret(value)
}

// givesSecret reports whether a command gives something by the name of a secret: "NAME=value" or "--name value", or a
// login as curl takes it: "-u me:value". What the shell puts there is not written there.
func givesSecret(command string) bool {
	bare := strings.NewReplacer(`"`, "", "'", "").Replace(command)
	words := strings.FieldsFunc(bare, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()!", r) })
	for i, word := range words {
		name, given, isSet := strings.Cut(word, "=")
		if i+1 < len(words) && leak.IsLogin(word, words[i+1]) {
			return true
		}
		if !isSet && strings.HasPrefix(word, "--") && i+1 < len(words) {
			given = words[i+1]
		}
		isVariable := isSet && name == strings.ToUpper(name)
		if (isVariable || strings.HasPrefix(word, "--")) && given != "" && !strings.ContainsAny(given[:1], "$`-") &&
			leak.Name(strings.ReplaceAll(name, "-", "_")) != "" {
			return true
		}
	}
	return false
}

func containsAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// StripUserinfo takes user names and passwords out of every URL in s; out of ssh URLs only passwords.
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
