package agenthome

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/secret/leak"
)

// accountKeys are the keys of the user's own .claude.json that an agent's starts with: who is logged in, and how
// Claude Code looks. The rest of that file can hold secrets (environments of MCP servers) or other projects.
var accountKeys = []string{"oauthAccount", "theme", "lastOnboardingVersion", "editorMode", "preferredNotifChannel"}

// makeAnswers merges into .claude.json the answers without which Claude Code would ask before its first prompt
// (measured with 2.1.329), and the MCP servers that enter. Everything else in the file stays as it is; a file that is
// not a JSON object is replaced.
func makeAnswers(r Request, f From) Made {
	o := object.Of(f.Old)
	host := object.Parse(f.Sources[0])
	made := Made{Content: f.Old, Given: strings.Join(r.Servers, " ")}
	var servers object.Object
	servers, made.Left = r.servers(serversIn(host, append([]string{r.Main}, r.Trusted...)), r.Own(answersName))
	if host == nil && len(f.Sources[0]) > 0 {
		text := "your " + r.Own(answersName) + " is no JSON object: nothing of it enters"
		made.Left = []diag.Left{{Kind: "file", Text: text}}
	}
	changed := serve(o, servers, strings.Fields(f.Given))
	changed = inherit(o, host) || changed
	changed = answer(o, "hasCompletedOnboarding") || changed
	changed = trust(o, r.Trusted) || changed
	changed = approve(o, approvedSuffix(r.APIKey)) || changed
	if changed {
		made.Content = object.Indented(o, "  ")
	}
	return made
}

// inherit copies the user's account keys that o does not have yet. One that has a secret goes: earlier versions copied
// it.
func inherit(o, host object.Object) (changed bool) {
	for _, key := range accountKeys {
		if o[key] != nil && SecretIn(key, o[key]) != "" {
			delete(o, key)
			changed = true
		}
		if value, ok := host[key]; ok && o[key] == nil && SecretIn(key, value) == "" {
			o[key], changed = value, true
		}
	}
	return changed
}

var yes = json.RawMessage("true")

// answer sets key to true, which answers yes to one of Claude Code's questions.
func answer(o object.Object, key string) (changed bool) {
	if string(o[key]) == string(yes) {
		return false
	}
	o[key] = yes
	return true
}

// trust answers yes to the question whether Claude Code may trust a folder, for each of them.
func trust(o object.Object, folders []string) (changed bool) {
	projects := object.Of(o["projects"])
	for _, folder := range folders {
		entry := object.Of(projects[folder])
		if answer(entry, "hasTrustDialogAccepted") {
			projects.Set(folder, entry)
			changed = true
		}
	}
	if changed {
		o.Set("projects", projects)
	}
	return changed
}

// approve answers yes to the question about the API key that enters, which Claude Code knows by its suffix (empty: no
// key enters), and removes the answers for keys of other sessions. A key that was rejected inside stays rejected.
func approve(o object.Object, suffix string) (changed bool) {
	responses := object.Of(o["customApiKeyResponses"])
	want := []string{}
	if suffix != "" && !slices.Contains(object.As[[]string](responses["rejected"]), suffix) {
		want = append(want, suffix)
	}
	if slices.Equal(object.As[[]string](responses["approved"]), want) {
		return false
	}
	responses.Set("approved", want)
	if responses["rejected"] == nil {
		responses.Set("rejected", []string{})
	}
	o.Set("customApiKeyResponses", responses)
	return true
}

// approvedSuffix returns what Claude Code remembers of an API key: its last 20 characters, without the blanks around
// the key.
func approvedSuffix(key string) string {
	const kept = 20
	key = strings.TrimSpace(key)
	return key[max(0, len(key)-kept):]
}

// serversIn returns the MCP servers that the user has for all projects, and for one: `claude mcp add` adds them there.
func serversIn(host object.Object, folders []string) object.Object {
	all, projects := object.Of(host["mcpServers"]), object.Parse(host["projects"])
	for _, folder := range folders {
		maps.Copy(all, object.Parse(object.Parse(projects[folder])["mcpServers"]))
	}
	return all
}

// servers returns the user's own MCP servers that the profile names and that can run inside; out says why the others
// do not enter. Secrets in a server's environment stay out: if the profile lets in a variable of that name, the
// server finds that.
func (r Request) servers(all object.Object, where string) (kept object.Object, out []diag.Left) {
	kept = object.Object{}
	var left []string
	leave := func(kind, text string) { out = append(out, diag.Left{Kind: kind, Text: text}) }
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(r.Servers, name) {
			left = append(left, name)
			continue
		}
		server, secrets, reason := r.server(object.Parse(all[name]))
		if reason != "" {
			leave("MCP server", "your MCP server "+name+" does not enter: "+reason)
			continue
		}
		if len(secrets) > 0 {
			leave("variable", "of your MCP server "+name+" these secrets do not enter: "+strings.Join(secrets, ", ")+
				"; `secrets` or `extra_env_passthrough` can name them")
		}
		kept.Set(name, server)
	}
	for _, name := range r.Servers {
		if all[name] == nil {
			leave("MCP server", "you have no MCP server "+name+" in "+where)
		}
	}
	if len(left) > 0 {
		text := "your MCP servers do not enter: " + strings.Join(left, ", ") + "; `mcp: {import: [" + left[0] +
			"]}` lets one in"
		out = append(out, diag.Left{Kind: "MCP server", Text: text, Also: len(left) - 1})
	}
	return kept, out
}

// server returns an MCP server without the secrets in its environment, and the names of those. reason says why the
// server does not enter; empty: it does.
func (r Request) server(o object.Object) (kept object.Object, secrets []string, reason string) {
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
	delete(kept, "env")
	if len(env) > 0 {
		kept.Set("env", env)
	}
	if reason := SecretIn("", object.Encode(kept)); reason != "" {
		return nil, nil, reason + "; ${NAME} in its place takes it from the environment"
	}
	return kept, secrets, r.CannotRun(commandOf("", "", kept))
}

// serve puts servers among those inside, and removes those of an earlier launch (before) that no longer enter.
func serve(o, servers object.Object, before []string) (changed bool) {
	there := object.Of(o["mcpServers"])
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
		o.Set("mcpServers", there)
	}
	return changed
}
