package leak

import (
	"strings"

	"claudebox/internal/diag/pattern"
)

// leastSetting is how long the value of a setting must be to count as secret, in bytes.
const leastSetting = 6

// expressions finds what stands in a value for something else: a variable, as shells, editors and agents write it, and
// a blank to be filled in.
const expressions pattern.Expr = `(^|[\s:/=@,;"'})-])(?:\$\{[^}]*\}|\$[A-Za-z_]\w*|\$\([^)]*\))|\{\{[^}]*\}\}|` +
	`\{env:[^}]*\}|<[^<>]*>|\*{3,}`

// digests are names of what looks random and is no secret.
var digests = []string{"REF", "SHA", "COMMIT", "REV", "HASH", "DIGEST", "CHECKSUM", "INTEGRITY", "VERSION", "UUID"}

// Setting is [Variable] for a value that is written in a file, a header or a command. It may name a variable, a file or
// an address instead of being a secret.
func Setting(name, value string) string {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if what := Text(value); what != "" {
		return what
	}
	value = Literal(value)
	part := Name(name)
	isPlace := IsPath(value) || strings.Contains(value, "://") && part != "WEBHOOK" && part != "DSN"
	for _, digest := range digests {
		isPlace = isPlace || part == "" && strings.HasSuffix(name, digest)
	}
	if len(value) < leastSetting || isPlace {
		return ""
	}
	return Variable(name, value)
}

// Literal returns what a value says itself, without what stands for something else, and how a header begins that logs
// in.
func Literal(value string) string {
	return strings.TrimSpace(withoutScheme(expressions.Compiled().ReplaceAllString(value, "$1")))
}

// withoutScheme takes away how a header begins that logs in.
func withoutScheme(value string) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	if isScheme(scheme) {
		return rest
	}
	return value
}

func isScheme(word string) bool {
	switch strings.ToLower(word) {
	case "bearer", "basic", "token", "digest", "apikey", "bot":
		return true
	}
	return false
}

// around finds a sign between a name and a value, with the quotes and blanks around it.
const around pattern.Expr = "[\"'`]?\\s*([=:])\\s*[\"'`]?"

// Named returns the name in a text behind which stands what is probably a secret, as in "--token x", "API_KEY=x",
// "X-Api-Key: x", "?key=x" and "-u me:x"; or "a part of an address", if that looks random. It returns "" if there is
// none. The words of a command are one text, with blanks between.
func Named(text string) string {
	text = around.Compiled().ReplaceAllString(text, "$1")
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`", r) })
	for i, word := range words {
		next := strings.Join(words[i+1:min(i+2, len(words))], "")
		if IsLogin(word, next) {
			return word
		}
		if name := slashed(word); name != "" {
			return name
		}
		isAddress := strings.Contains(word, "://")
		for piece := range strings.FieldsFuncSeq(word, isBetween) {
			if name := named(piece, next); name != "" {
				return name
			}
			if isAddress && len(piece) >= leastSetting && isRandom(piece) {
				return "a part of an address"
			}
		}
	}
	return ""
}

// slashed is [named] for a word with a value that begins with a slash, which otherwise stands between two settings.
func slashed(word string) string {
	at := max(strings.Index(word, "=/"), strings.Index(word, ":/"))
	if at < 0 {
		return ""
	}
	name := word[:at]
	name = name[strings.LastIndexFunc(name, func(r rune) bool { return isBetween(r) || r == '=' })+1:]
	if !isSecretOf(name, word[at+1:]) {
		return ""
	}
	return name
}

// isBetween reports whether settings are told apart by a sign.
func isBetween(r rune) bool { return strings.ContainsRune("/?&#,;(){}[]|", r) }

// named is [Named] for a piece of a word, which may be several names before one value, "--header=X-Api-Key:x". next is
// the word behind it.
func named(piece, next string) string {
	if strings.HasPrefix(piece, "-") && !strings.ContainsAny(piece, "=:") && isSecretOf(piece, next) {
		return piece
	}
	for rest := piece; ; {
		at := strings.IndexAny(rest, "=:")
		if at < 0 {
			return ""
		}
		name, value, sign := rest[:at], rest[at+1:], rest[at]
		rest = value
		if isScheme(value) {
			value = next
		}
		if (sign == '=' || !isPlainWord(value)) && isSecretOf(name, value) {
			return name
		}
	}
}

// isSecretOf reports whether a value behind a name is probably a secret.
func isSecretOf(name, value string) bool {
	return Name(strings.ReplaceAll(name, "-", "_")) != "" && !strings.HasPrefix(value, "-") &&
		Setting(name, value) != ""
}

// IsLogin reports whether a word is curl's for a user, and the next one has a password, too.
func IsLogin(word, next string) bool {
	switch word {
	case "-u", "--user", "-U", "--proxy-user":
		_, password, _ := strings.Cut(next, ":")
		return Setting("PASSWORD", password) != ""
	}
	return false
}

// isPlainWord reports whether a text is a word of a language, or several.
func isPlainWord(text string) bool {
	text = strings.TrimRight(text, ".,!?)")
	return strings.ToLower(text[min(1, len(text)):]) == text[min(1, len(text)):] &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == ""
}
