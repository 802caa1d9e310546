package agenthome

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/secret/leak"
)

// servers are the user's own MCP servers that the profile names and that can
// run inside. notes say of the others why they do not enter. A secret in the
// environment of one stays out: what the profile lets in by that name is what
// the server finds.
func (r Request) servers(host object) (kept object, notes []string) {
	kept = object{}
	all := parseObject(host["mcpServers"])
	var left []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(r.Servers, name) {
			left = append(left, name)
			continue
		}
		server, secrets, reason := r.server(parseObject(all[name]))
		if reason != "" {
			notes = append(notes, "your MCP server "+name+" does not enter: "+reason)
			continue
		}
		if len(secrets) > 0 {
			notes = append(notes,
				"of your MCP server "+name+" these secrets do not enter: "+strings.Join(secrets, ", ")+
					"; `secrets` or `extra_env_passthrough` can name them")
		}
		kept.set(name, server)
	}
	for _, name := range r.Servers {
		if all[name] == nil {
			notes = append(notes, "you have no MCP server "+name+" in ~/.claude.json")
		}
	}
	if len(left) > 0 {
		notes = append(notes,
			"your MCP servers do not enter: "+strings.Join(left, ", ")+"; `mcp: {import: ["+left[0]+"]}` lets one in")
	}
	return kept, notes
}

// server is one as it enters: without the secrets of its environment, which
// are named.
func (r Request) server(o object) (kept object, secrets []string, reason string) {
	var command string
	var env map[string]string
	if o == nil || o["command"] != nil && json.Unmarshal(o["command"], &command) != nil ||
		o["env"] != nil && json.Unmarshal(o["env"], &env) != nil {
		return nil, nil, "it has another shape than Claude Code's"
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if leak.Variable(name, env[name]) != "" {
			secrets = append(secrets, name)
			delete(env, name)
		}
	}
	kept = maps.Clone(o)
	if delete(kept, "env"); len(env) > 0 {
		kept.set("env", env)
	}
	for _, text := range kept {
		if what := leak.Text(string(text)); what != "" {
			return nil, nil, "it holds what looks like " + what
		}
	}
	if command != "" {
		reason = r.missing(command)
	}
	return kept, secrets, reason
}

// serve puts servers among those inside, and takes away those of an earlier
// launch that no longer enter.
func (o object) serve(servers object, before []string) (changed bool) {
	there := parseObject(o["mcpServers"])
	if there == nil {
		there = object{}
	}
	for _, name := range before {
		if servers[name] == nil && there[name] != nil {
			delete(there, name)
			changed = true
		}
	}
	for name, server := range servers {
		if !same(there[name], server) {
			there[name], changed = server, true
		}
	}
	if changed {
		o.set("mcpServers", there)
	}
	return changed
}
