package leak

import "strings"

// secretParts are what the names of secrets hold (SEC-01).
var secretParts = []string{
	"KEY", "TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "COOKIE",
	"AUTH", "PRIVATE", "BEARER", "JWT", "_PAT", "_DSN", "_PASS", "_PWD", "WEBHOOK",
}

// plainParts hold one of secretParts and are none.
var plainParts = []string{
	"KEYBOARD", "KEYMAP", "KEYSERVER", "MONKEY", "TURKEY", "AUTHOR", "_PATH", "_PATTERN", "_PATCH", "TOKENIZER",
}

// Name says what in a variable's name is usual for secrets ("TOKEN"), or "".
// It errs on the side of secrets.
func Name(name string) string {
	name = strings.ToUpper(name)
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

// Variable says why a variable is probably a secret: "name holds TOKEN", or
// what its value looks like ("a GitHub token"); "" when nothing says so. One
// without a value is none.
func Variable(name, value string) string {
	if value == "" {
		return ""
	}
	if part := Name(name); part != "" {
		return "name holds " + part
	}
	return Value(value)
}
