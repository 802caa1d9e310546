// Package secretfile knows files that hold secrets by their names, and where a
// name alone does not tell, by what is in them (SEC-05).
//
// It is a function of values. What a token looks like is known by package leak.
package secretfile

import (
	"bytes"
	"slices"
	"strings"

	"claudebox/internal/secret/leak"
)

// Verdict is what a name tells.
type Verdict int

const (
	Plain  Verdict = iota
	Secret         // hide it
	Ask            // what is in it decides, see [Holds]
	Look           // it is one of those that hold a token now and then, see [HoldsToken]
)

// Limit is how much of a file, in bytes, [Holds] wants to see. A larger file
// with a name that asks counts as secret.
const Limit = 256 << 10

// SmallLimit is how large a file may be, in bytes, for [HoldsToken] to be asked.
const SmallLimit = 64 << 10

// HoldsToken reports whether a file of any name holds a token of a known shape,
// or a private key. An address with a password is in many a manual.
func HoldsToken(content []byte) bool {
	return bytes.Contains(content, []byte(" PRIVATE KEY-----")) || leak.Token(string(content)) != ""
}

// signs are what makes a file a secret one whose name does not tell.
var signs = []string{
	"PRIVATE KEY", "AGE-SECRET-KEY-", "PuTTY-User-Key-File", "_authToken", ":_password", "_password=", "_auth=",
	"_auth =", "npmAuthToken", "npmAuthIdent", `"private_key"`, `"client_secret"`, "<password>", "ClearTextPassword",
	`"github-oauth"`, `"http-basic"`, `"gitlab-token"`, `"auth":`, "assword=", "Token=", "Secret=",
}

// Holds reports whether the content of a file whose name asks is secret: by a
// sign of a secret file, a token of a known shape, a setting whose name is a
// secret's, or because it is one word and nothing else. A setting that only
// names a variable ("${NPM_TOKEN}") is none.
func Holds(content []byte) bool {
	for line := range bytes.Lines(content) {
		for _, sign := range signs {
			if at := bytes.Index(line, []byte(sign)); at >= 0 && !namesVariable(line[at+len(sign):]) {
				return true
			}
		}
	}
	for piece := range bytes.FieldsFuncSeq(content, func(r rune) bool { return strings.ContainsRune("\n,{}&", r) }) {
		if name, value := setting(piece); isSecret(value) && leak.Name(name) != "" {
			return true
		}
	}
	return isOneWord(content) || leak.Text(string(content)) != ""
}

// namesVariable reports whether a setting's value is a variable's name and
// nothing else.
func namesVariable(value []byte) bool {
	text := strings.Trim(string(value), " \t\r\n=:\"'")
	return strings.HasPrefix(text, "${") && strings.IndexByte(text, '}') == len(text)-1
}

// setting takes a piece of a line apart as most formats have it:
// `export NAME="value"`, `name: value`, `"name": "value"`.
func setting(piece []byte) (name, value string) {
	at := bytes.IndexAny(piece, "=:")
	if at < 0 {
		return "", ""
	}
	const around = " \t\r\n\"',;{[("
	name = strings.Trim(string(piece[:at]), around)
	if i := strings.LastIndexAny(name, " \t"); i >= 0 {
		name = name[i+1:]
	}
	return name, strings.Trim(string(piece[at+1:]), around+">=]})")
}

// How long a value must be to count, in bytes: a word of letters alone is one of
// configuration, or of a language, unless it is long.
const (
	leastSecret  = 6
	leastLetters = 16
)

// placeholders begin or end values that wait to be filled in, or are no value:
// a variable, a path.
var (
	placeholders = []string{
		"$", "<", "{{", "%", "xxx", "***", "...", "your", "change", "example", "placeholder",
		"todo", "/", "./", "~/",
	}
	endsOfThem = []string{">", "}}", "%", "xxx", "***", "...", "example", "here"}
)

// isSecret reports whether the value of a setting with a secret's name is one.
// Numbers and sentences are none.
func isSecret(value string) bool {
	low := strings.ToLower(value)
	letters := strings.Trim(low, "abcdefghijklmnopqrstuvwxyz_-") == ""
	switch {
	case len(value) < leastSecret, letters && len(value) < leastLetters, strings.ContainsAny(value, " \t"),
		strings.Trim(value, "0123456789.") == "":
		return false
	}
	return !slices.ContainsFunc(placeholders, func(p string) bool { return strings.HasPrefix(low, p) }) &&
		!slices.ContainsFunc(endsOfThem, func(p string) bool { return strings.HasSuffix(low, p) })
}

// mostOneWord is how long one word may be that is a secret, in bytes.
const mostOneWord = 4096

// isOneWord reports whether a file is one printable word, as a file for a
// password or token is.
func isOneWord(content []byte) bool {
	word := bytes.TrimSpace(content)
	return len(word) <= mostOneWord && isSecret(string(word)) &&
		!bytes.ContainsFunc(word,
			func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("{}[]<>:=", r) })
}
