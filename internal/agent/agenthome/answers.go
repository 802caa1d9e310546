package agenthome

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// object is a JSON object whose values stay as they were written.
type object map[string]json.RawMessage

// parseObject gives nil for what is not a JSON object.
func parseObject(src []byte) object {
	var o object
	if json.Unmarshal(src, &o) != nil {
		return nil
	}
	return o
}

func (o object) encode() ([]byte, error) { return encode(o, "  ") }

// encode writes JSON without the escapes that only HTML needs.
func encode(value any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(value)
	return b.Bytes(), err
}

// accountKeys are what an agent's .claude.json starts with of the user's own:
// who is logged in and how it looks. All else of that file can hold secrets
// (environments of MCP servers) or other projects.
var accountKeys = []string{"oauthAccount", "theme", "lastOnboardingVersion", "editorMode", "preferredNotifChannel"}

// makeAnswers merges into .claude.json the answers without which Claude Code
// would ask before its first prompt (measured with 2.1.329). What else is
// there stays as it is; a file that is no JSON object is made anew.
func makeAnswers(r Request, f From) (Made, error) {
	o := parseObject(f.Old)
	if o == nil {
		o = object{}
	}
	host := parseObject(f.Sources[0])
	made := Made{Content: f.Old, Given: strings.Join(r.Servers, " ")}
	servers, notes := r.servers(host)
	made.Notes = notes
	changed := o.serve(servers, strings.Fields(f.Given))
	changed = o.inherit(host) || changed
	changed = o.answer("hasCompletedOnboarding") || changed
	changed = o.trust(r.Trusted) || changed
	changed = o.approve(approvedSuffix(r.APIKey)) || changed
	var err error
	if changed {
		made.Content, err = o.encode()
	}
	return made, err
}

// inherit takes the user's account keys where there are none yet.
func (o object) inherit(host object) (changed bool) {
	for _, key := range accountKeys {
		if value, ok := host[key]; ok && o[key] == nil {
			o[key], changed = value, true
		}
	}
	return changed
}

var yes = json.RawMessage("true")

// answer says yes to one question.
func (o object) answer(key string) (changed bool) {
	if string(o[key]) == string(yes) {
		return false
	}
	o[key] = yes
	return true
}

// trust answers the question about each folder.
func (o object) trust(folders []string) (changed bool) {
	projects := parseObject(o["projects"])
	if projects == nil {
		projects = object{}
	}
	for _, folder := range folders {
		entry := parseObject(projects[folder])
		if entry == nil {
			entry = object{}
		}
		if entry.answer("hasTrustDialogAccepted") {
			projects.set(folder, entry)
			changed = true
		}
	}
	if changed {
		o.set("projects", projects)
	}
	return changed
}

// approve answers the question about the API key that enters, which Claude Code
// knows by its end, and forgets those of other sessions. A key that was rejected
// inside stays rejected.
func (o object) approve(suffix string) (changed bool) {
	responses := parseObject(o["customApiKeyResponses"])
	if responses == nil {
		responses = object{}
	}
	var approved, rejected, want []string
	_ = json.Unmarshal(responses["approved"], &approved) // of another shape: made anew
	_ = json.Unmarshal(responses["rejected"], &rejected)
	if suffix != "" && !slices.Contains(rejected, suffix) {
		want = []string{suffix}
	}
	if slices.Equal(approved, want) {
		return false
	}
	responses.set("approved", slices.Concat([]string{}, want))
	if responses["rejected"] == nil {
		responses.set("rejected", []string{})
	}
	o.set("customApiKeyResponses", responses)
	return true
}

// set stores a value that is known to have a JSON form.
func (o object) set(key string, value any) {
	content, err := encode(value, "")
	if err != nil {
		panic("bug: " + err.Error())
	}
	o[key] = bytes.TrimSpace(content)
}

// approvedSuffix is what Claude Code remembers of an API key: its last 20
// characters, the blanks around it left out.
func approvedSuffix(key string) string {
	const kept = 20
	key = strings.TrimSpace(key)
	return key[max(0, len(key)-kept):]
}
