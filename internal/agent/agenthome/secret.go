package agenthome

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/secret/leak"
)

// SecretIn says what of a setting is probably a secret, or a file that is read for one; empty: nothing. It reads names,
// texts and numbers at any depth, and of a key that is there twice both values: the agent may take another than Go.
func SecretIn(name string, setting json.RawMessage) (reason string) {
	d := json.NewDecoder(bytes.NewReader(setting))
	d.UseNumber()
	first, _ := d.Token()
	switch first := first.(type) {
	case string:
		return secretText(name, first)
	case json.Number:
		return secretNumber(name, first.String())
	case json.Delim:
		if first == '{' {
			return secretInTable(name, d)
		}
		return secretInList(name, d)
	}
	return ""
}

// secretInTable is [SecretIn] for what follows a brace. A table of keys, or of names of variables, says of each value
// in it what that is; so does {"name": "API_KEY", "value": …}.
func secretInTable(name string, d *json.Decoder) string {
	var keys []string
	var values []json.RawMessage
	called := ""
	for d.More() {
		key, _ := d.Token()
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		keys, values = append(keys, key.(string)), append(values, value)
		if slices.Contains([]string{"name", "key", "header"}, key.(string)) {
			called = object.As[string](value)
		}
	}
	for i, key := range keys {
		if what := leak.Text(key); what != "" {
			return looksLike + what
		}
		switch {
		case key == "value" && called != "":
			key = called
		case namesVariables(name), isOfSecrets(name) && leak.Name(key) == "":
			key = name
		}
		if reason := SecretIn(key, values[i]); reason != "" {
			return reason
		}
	}
	return ""
}

// secretInList is [SecretIn] for what follows a bracket. Texts in it may be the words of a command.
func secretInList(name string, d *json.Decoder) string {
	var words []string
	for d.More() {
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		if reason := SecretIn(name, value); reason != "" {
			return reason
		}
		words = append(words, object.As[string](value))
	}
	return probably(leak.Named(strings.Join(words, " ")))
}

// looksLike is what is said of a secret of a known shape.
const looksLike = "it holds what looks like "

// probably says of what has a name that it is a secret.
func probably(name string) string {
	if name == "" {
		return ""
	}
	return name + " is probably a secret"
}

func secretText(name, text string) string {
	if what := leak.Text(text); what != "" {
		return looksLike + what
	}
	upper := strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
	switch {
	case namesVariables(name) && upper:
		return ""
	case strings.Contains(text, "{file:"), leak.Setting(name, text) != "":
		if name == "" {
			name = "a word of it"
		}
		return probably(name)
	}
	return probably(leak.Named(text))
}

// secretNumber is [SecretIn] for a number. Behind a name as "token" short ones are a bound.
func secretNumber(name, digits string) string {
	part, least := leak.Name(name), 12
	if strings.Contains(part, "PASS") || part == "SECRET" || part == "PWD" {
		least = 6
	}
	if part == "" || len(digits) < least {
		return ""
	}
	return probably(name)
}

// namesVariables reports whether a setting has names of variables, as Codex's env_key and bearer_token_env_var.
func namesVariables(name string) bool {
	return strings.HasPrefix(name, "env_") || strings.HasSuffix(name, "_env_var")
}

// isOfSecrets reports whether each value in a table of this name is a secret, as in "tokens".
func isOfSecrets(name string) bool {
	name = strings.TrimSuffix(strings.ToUpper(name), "S")
	return slices.ContainsFunc([]string{"TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "KEY", "COOKIE"},
		func(part string) bool { return strings.HasSuffix(name, part) })
}

// bare returns an address without a user and a password, and without a query that has a secret.
func bare(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return address
	}
	at.User = nil
	if leak.Named("?"+at.RawQuery) != "" {
		at.RawQuery = ""
	}
	return at.String()
}

// withoutSecrets returns a text of the user's without the lines that have a secret of a known shape. Of one that goes
// over several lines, as a private key, nothing enters.
func withoutSecrets(name string, text []byte) (kept []byte, left []diag.Left) {
	what := leak.Text(string(text))
	if what == "" {
		return text, nil
	}
	for line := range bytes.Lines(text) {
		if leak.Text(string(line)) == "" {
			kept = append(kept, line...)
		}
	}
	said := "of your " + name + " the lines do not enter that hold what looks like " + what
	if leak.Text(string(kept)) != "" {
		kept, said = []byte{}, "your "+name+" does not enter: "+looksLike+what
	}
	return kept, []diag.Left{{Kind: "file", Text: said}}
}
