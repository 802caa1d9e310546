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
// for one with an empty value, and for a number of tokens (MAX_TOKENS=4096).
func Variable(name, value string) string {
	if value == "" {
		return ""
	}
	if strings.Trim(value, "0123456789") == "" {
		name = strings.TrimSuffix(strings.ToUpper(name), "TOKENS")
	}
	if part := Name(name); part != "" {
		return "name holds " + part
	}
	if what := Value(value); what != "" {
		return what
	}
	return setting(value)
}

// settingParts are parts of the names of settings that are secrets, in a list of settings.
var settingParts = strings.Fields("PASSW SECRET APIKEY ACCESSKEY ACCOUNTKEY")

// joined writes the words of a name without what separates them.
var joined = strings.NewReplacer("-", "", "_", "", ".", "")

// setting returns "a list with Password", or whatever else the secret's name is, for a list of settings that holds a
// secret, as databases, clouds and telemetry take them: "Server=x;Password=y", "host=x password=y", "api-key=x"; else
// "".
func setting(value string) string {
	for item := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(";, \t\n", r) }) {
		name, value, is := strings.Cut(item, "=")
		if !is {
			continue
		}
		plain := joined.Replace(strings.ToUpper(name))
		holds := plain == "PWD"
		for _, part := range settingParts {
			holds = holds || strings.Contains(plain, part)
		}
		if holds && strings.Trim(value, "*") != "" && !strings.ContainsAny(value, "${<") {
			return "a list with " + name
		}
	}
	return ""
}
