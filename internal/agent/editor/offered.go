package editor

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/secret/leak"
)

// Members of an editor's messages that set variables or headers, and that have MCP servers: an object by names, or a
// list of objects with a name.
var (
	settings = []string{"env", "headers", "variables"}
	servers  = []string{"mcpServers", "servers"}
)

// hasOffers reports whether a line may have one of those members.
func hasOffers(line []byte) bool {
	return slices.ContainsFunc(slices.Concat(settings, servers), func(name string) bool {
		return bytes.Contains(line, []byte(`"`+name+`"`))
	})
}

// withoutSecrets returns value, a part of an editor's message found under name, without what is probably a secret. It
// calls tell with what does not enter, and why.
func withoutSecrets(name string, value json.RawMessage, tell func(string)) json.RawMessage {
	refused := func(string, json.RawMessage) bool { return false }
	switch {
	case slices.Contains(settings, name):
		refused = func(name string, value json.RawMessage) bool { return refusesSetting(name, value, tell) }
	case slices.Contains(servers, name):
		refused = func(name string, value json.RawMessage) bool { return refusesServer(name, value, tell) }
	}
	var list []json.RawMessage
	if of := object.Parse(value); of != nil {
		for name, one := range of {
			if refused(name, one) {
				delete(of, name)
			} else {
				of[name] = withoutSecrets(name, one, tell)
			}
		}
		return object.Encode(of)
	} else if json.Unmarshal(value, &list) != nil || list == nil {
		return value
	}
	kept := []json.RawMessage{}
	for _, one := range list {
		of := object.Parse(one)
		name, value := object.As[string](of["name"]), one
		if of["value"] != nil {
			value = of["value"]
		}
		if !refused(name, value) {
			kept = append(kept, withoutSecrets("", one, tell))
		}
	}
	return object.Encode(kept)
}

// refusesSetting reports whether a variable or a header is probably a secret. One that names a variable is not.
func refusesSetting(name string, value json.RawMessage, tell func(string)) bool {
	text := leak.Literal(object.As[string](value))
	if leak.Variable(strings.ReplaceAll(name, "-", "_"), text) == "" {
		return false
	}
	tell(diag.Name(name) + " of the editor's does not enter: it is probably a secret; `secrets` in a profile can name it")
	return true
}

// refusesServer reports whether an MCP server has a secret elsewhere than in its variables and headers.
func refusesServer(name string, value json.RawMessage, tell func(string)) bool {
	server := object.Parse(value)
	for _, setting := range settings {
		delete(server, setting)
	}
	reason := agenthome.SecretIn("", object.Encode(server))
	if reason != "" {
		tell("the editor's MCP server " + diag.Name(name) + " does not enter: " + reason)
	}
	return reason != ""
}
