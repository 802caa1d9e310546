package agenthome

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// settingsKept are the settings of the user that enter as they are: how the
// agent speaks, looks and thinks. None of them names a program or holds a
// secret.
var settingsKept = []string{
	"alwaysThinkingEnabled", "attribution", "autoCompactEnabled", "autoMemoryEnabled", "availableModels",
	"cleanupPeriodDays", "companyAnnouncements", "editorMode", "effortLevel", "enabledPlugins", "fastMode",
	"includeCoAuthoredBy", "includeGitInstructions", "language", "model", "outputStyle", "preferredNotifChannel",
	"prefersReducedMotion", "respectGitignore", "showThinkingSummaries", "showTurnDuration", "spinnerTipsEnabled",
	"spinnerVerbs", "terminalProgressBarEnabled", "theme", "verbose", "viewMode",
}

// permissionsKept are the rules of the user's permissions that enter. The
// allowed ones say nothing in a sandbox that allows all, and hold whole
// commands with whatever stood in them.
var permissionsKept = []string{"deny", "ask"}

// bypassAnswer keeps Claude Code from asking whether it may run without
// permissions (measured with 2.1.329; it is honoured in user settings).
const bypassAnswer = "skipDangerousModePermissionPrompt"

// makeSettings gives the user's settings that enter, with what was changed
// inside, key by key. A key that the user has changed since counts over what
// was changed inside.
func makeSettings(r Request, f From) (Made, error) {
	host := parseObject(f.Sources[0])
	given, notes := r.given(host)
	record, err := encode(given, "")
	if err != nil {
		return Made{}, err
	}
	inside := parseObject(f.Old)
	delete(inside, bypassAnswer)
	settings, clashes := merge(parseObject([]byte(f.Given)), given, inside)
	settings.forbid(given["permissions"])
	notes = append(notes, ownNotes(settings, given)...)
	settings[bypassAnswer] = yes
	made := Made{Given: string(record), Notes: notes}
	if len(clashes) > 0 {
		made.Once = []string{"you changed these settings, and so did somebody inside; yours count: " +
			strings.Join(clashes, ", ")}
	}
	if made.Content, err = settings.encode(); err != nil {
		return Made{}, err
	}
	if host == nil && len(f.Sources[0]) > 0 {
		made.Notes = []string{"your ~/.claude/settings.json is no JSON object: nothing of it enters"}
		return made, nil
	}
	made.Notes = append(made.Notes, leakNotes("settings.json", record)...)
	return made, nil
}

// given is what of the user's settings enters, and what is said of the rest.
func (r Request) given(host object) (object, []string) {
	given := host.only(settingsKept)
	if rules := parseObject(host["permissions"]).only(permissionsKept); len(rules) > 0 {
		given.set("permissions", rules)
	}
	notes := droppedNotes(host)
	if hooks, said := r.hooks(host["hooks"]); len(hooks)+len(said) > 0 {
		if notes = append(notes, said...); len(hooks) > 0 {
			given.set("hooks", hooks)
		}
	}
	line, said := r.statusLine(host["statusLine"])
	if line != nil {
		given["statusLine"] = line
	}
	return given, append(notes, said...)
}

// merge takes each key from whoever has changed it since before, the user when
// both have. clashes are the keys that both changed, to different values.
func merge(before, host, inside object) (merged object, clashes []string) {
	merged = object{}
	keys := slices.Concat(slices.Collect(maps.Keys(host)), slices.Collect(maps.Keys(inside)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		value := inside[key]
		if !same(before[key], host[key]) {
			value = host[key]
			if before != nil && !same(before[key], inside[key]) && !same(host[key], inside[key]) {
				clashes = append(clashes, key)
			}
		}
		if value != nil {
			merged[key] = value
		}
	}
	return merged, clashes
}

// same compares JSON texts, whatever their blanks.
func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if (a == nil) != (b == nil) {
		return false
	}
	return a == nil || json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// forbid sees to it that what the user denies stays denied, whatever was made
// of the rules inside.
func (o object) forbid(given json.RawMessage) {
	rules, made := parseObject(given), parseObject(o["permissions"])
	if len(rules) == 0 {
		return
	}
	if made == nil {
		made = object{}
	}
	for _, kind := range permissionsKept {
		var users, there []json.RawMessage
		_ = json.Unmarshal(made[kind], &there) // of another shape: made anew
		if json.Unmarshal(rules[kind], &users) != nil {
			continue
		}
		for _, rule := range users {
			if !slices.ContainsFunc(there, func(r json.RawMessage) bool { return same(r, rule) }) {
				there = append(there, rule)
			}
		}
		made.set(kind, there)
	}
	o.set("permissions", made)
}

// ownNotes name the settings that run something or lead elsewhere and were
// made inside, in an earlier session.
func ownNotes(settings, given object) []string {
	var own []string
	for _, key := range []string{"apiKeyHelper", "env", "hooks", "statusLine"} {
		if settings[key] != nil && !same(settings[key], given[key]) {
			own = append(own, key)
		}
	}
	if len(own) == 0 {
		return nil
	}
	return []string{"set inside, in an earlier session, and kept: " + strings.Join(own, ", ") + " of settings.json"}
}

func (o object) only(keys []string) object {
	kept := object{}
	for _, key := range keys {
		if value, ok := o[key]; ok {
			kept[key] = value
		}
	}
	return kept
}

// harmlessKeys are left out without a word: they mean nothing inside. Of hooks
// and the status line is told elsewhere.
var harmlessKeys = []string{
	"$schema", "permissions", "hooks", "statusLine", bypassAnswer, "autoUpdatesChannel", "feedbackSurveyState",
	"hasCompletedOnboarding",
}

// droppedReasons say more where a user would miss what is left out.
var droppedReasons = map[string]string{
	"env":          "say what the agent may have in the profile's `env` and `extra_env_passthrough`",
	"apiKeyHelper": "it gives away a key; pass ANTHROPIC_API_KEY or log in",
}

// droppedNotes names the user's settings that do not enter.
func droppedNotes(host object) []string {
	var notes, others []string
	for key := range host {
		switch reason := droppedReasons[key]; {
		case slices.Contains(settingsKept, key) || slices.Contains(harmlessKeys, key):
		case reason != "":
			notes = append(notes, "your setting "+key+" does not enter: "+reason)
		default:
			others = append(others, key)
		}
	}
	slices.Sort(notes)
	if slices.Sort(others); len(others) > 0 {
		notes = append(notes, "your settings "+strings.Join(others, ", ")+" do not enter")
	}
	return notes
}
