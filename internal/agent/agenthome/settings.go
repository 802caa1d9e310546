package agenthome

import (
	"slices"
	"strings"
)

// settingsKept are the settings of the user that enter: how the agent speaks,
// looks and thinks. None of them names a program or holds a secret.
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

// makeSettings makes settings.json anew at each launch from the user's own,
// by an allow-list. What was set inside (`/model`) stays where the user's
// file says nothing about it.
func makeSettings(_ Request, old []byte, sources [][]byte) ([]byte, []string, error) {
	host := parseObject(sources[0])
	made := parseObject(old).only(settingsKept)
	for key, value := range host.only(settingsKept) {
		made[key] = value
	}
	if rules := parseObject(host["permissions"]).only(permissionsKept); len(rules) > 0 {
		made.set("permissions", rules)
	}
	made[bypassAnswer] = yes
	content, err := made.encode()
	if host == nil && len(sources[0]) > 0 {
		return content, []string{"your ~/.claude/settings.json is no JSON object: nothing of it enters"}, err
	}
	return content, append(droppedNotes(host), leakNotes("settings.json", content)...), err
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

// harmlessKeys are left out without a word: they mean nothing inside.
var harmlessKeys = []string{"$schema", "permissions", bypassAnswer, "autoUpdatesChannel", "feedbackSurveyState", "hasCompletedOnboarding"}

// droppedReasons say more where a user would miss what is left out.
var droppedReasons = map[string]string{
	"env":          "say what the agent may have in the profile's `env` and `extra_env_passthrough`",
	"hooks":        "their programs are not inside",
	"statusLine":   "its program is not inside",
	"apiKeyHelper": "its program is not inside; pass ANTHROPIC_API_KEY or log in",
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
