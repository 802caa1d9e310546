package leak

import "strings"

// secretParts are substrings that names of secrets contain.
var secretParts = []string{
	"KEY", "TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "COOKIE",
	"AUTH", "PRIVATE", "BEARER", "JWT", "_PAT", "_DSN", "_PASS", "_PWD", "WEBHOOK",
}

// plainParts contain one of secretParts but do not make a name secret.
var plainParts = []string{
	"KEYBOARD", "KEYBIND", "KEYMAP", "KEYSERVER", "MONKEY", "TURKEY",
	"AUTHOR", "_PATH", "_PATTERN", "_PATCH", "TOKENIZER",
}

// authorization shortens a header's name, which is no author's.
var authorization = strings.NewReplacer("AUTHORIZ", "AUTH", "AUTHORIS", "AUTH")

// Name returns the part of a variable's name that is usual for secrets ("TOKEN"), or "".
// When in doubt it takes a name for a secret's.
func Name(name string) string {
	name = authorization.Replace(strings.ToUpper(name))
	for _, plain := range plainParts {
		name = strings.ReplaceAll(name, plain, "")
	}
	for _, part := range secretParts {
		if strings.Contains(name, part) {
			return strings.TrimPrefix(part, "_")
		}
	}
	return ""
}

// Variable returns why a variable is probably a secret: "name holds TOKEN", or
// what its value looks like ("a GitHub token"). It returns "" for any other variable,
// and for one with an empty value.
func Variable(name, value string) string {
	if value == "" {
		return ""
	}
	if part := Name(name); part != "" {
		return "name holds " + part
	}
	return Value(value)
}
