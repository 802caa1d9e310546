package agenthome

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/agent/object"
	"claudebox/internal/agent/shellline"
	"claudebox/internal/diag"
)

// What becomes of each setting of Claude Code in the user's settings.json. A test compares the four lists with the
// schema of the installed program. A key in none of them is left out, and named.

// settingsKept enter as they are, if they hold no secret: how the agent speaks, looks and thinks. None of them names a
// program or a path.
var settingsKept = strings.Fields(`
	additionalMarketplaces advisorModel agent allowedChannelPlugins allowedMarketplaces allowedMcpServers
	alwaysThinkingEnabled appendPlugins askUserQuestionTimeout attribution attributionProject autoCompactEnabled
	autoCompactOfferAnswer autoCompactRaisedForLoad autoCompactWindow autoContinueAtUsageLimit autoDreamEnabled
	autoMemoryEnabled autoScrollEnabled availableModels availableModelsMatch awaySummaryEnabled bashEditDiffEnabled
	bashOutputMaxChars blockedMarketplaces breakReminder claudeMdExcludes clawdFileProgressEnabled cleanupPeriodDays
	companyAnnouncements deniedMcpServers deniedModels dialogExpiry disableAgentView disableAllHooks disableArtifact
	disableAutoMode disableBundledSkills disableClaudeAiConnectors disabledMcpjsonServers disableReplyCheck
	disableSkillShellExecution disableWorkflows doneMeansMerged editorMode effortLevel emojiCompletionEnabled
	enableAllProjectMcpServers enableArtifact enabledMcpjsonServers enabledPlugins enableWorkflows
	enforceAvailableModels extraKnownMarketplaces fallbackModel fastMode fastModePerSessionOptIn
	fileCheckpointingEnabled footerLinksRegexes forceLoginMethod forceLoginOrgUUID idleCompaction
	includeCoAuthoredBy includeGitInstructions keybindingFlavor language maxEffortLevel maxProseWidth model
	modelOverrides modelPicker modelPricing modelProposedGoals modelSettings outputStyle pluginConfigs
	precomputeArmTokens precomputeCompactionEnabled preferredNotifChannel prefersReducedMotion prependPlugins
	promptCacheTtl promptSuggestionEnabled prUrlTemplate quietHours respectGitignore respondToBashCommands
	responseComparisonEnabled showClearContextOnPlanAccept showMessageTimestamps showThinkingSummaries
	showTurnDuration skillListingBudgetFraction skillListingMaxDescChars skillOverrides skipWebFetchPreflight
	skipWorkflowUsageWarning spellcheck spinnerTipsEnabled spinnerTipsOverride spinnerVerbs strictKnownMarketplaces
	subagentPromptCacheTtl switchModelsOnFlag syntaxHighlightingDisabled taskOutputMaxChars
	terminalProgressBarEnabled terminalTitleFromRename theme timeFormat timeZone todoFeatureEnabled
	totalTokensReminder totalTokensReminderAfterUserTurn totalTokensReminderBudget tui ultracode verbose viewMode
	vimInsertModeRemaps wheelScrollAccelerationEnabled workflowKeywordTriggerEnabled workflowSizeGuideline worktree
`)

// settingsRun are commands, which enter if they can run inside, as hooks do.
var settingsRun = []string{"fileSuggestion", "subagentStatusLine"}

// settingsQuiet are left out without a word: they mean nothing inside, or are dealt with elsewhere.
var settingsQuiet = strings.Fields(`
	$schema agentPushNotifEnabled allowAllClaudeAiMcps allowClaudeInChromeWithManagedMcp allowedHttpHookUrls
	allowedProviders allowManagedHooksOnly allowManagedMcpServersOnly allowManagedPermissionRulesOnly
	allowNestedModelAccessUnderForceLogin attributionProjectPolicy autoUpdatesChannel autoUploadSessions
	channelsEnabled claudeMd crossSessionInbound daemonColdStart defaultShell desktopMcpServersListScope
	desktopSessionCleanupPeriodDays disableCommandPluginSources disableRemoteControl disableSideloadFlags
	disableWindowsBashCommandSplit env feedbackDrafts feedbackSurveyRate feedbackSurveyState fileSuggestion
	forceRemoteSettingsRefresh gatewayInternalNetworks hasCompletedOnboarding hooks httpHookAllowedEnvVars
	inputNeededNotifEnabled isolatePeerMachines managedMcpServers managedSourcesBehavior minimumVersion
	parentSettingsBehavior permissions pluginSuggestionMarketplaces pluginTrustMessage remote remoteControl
	remoteControlAtStartup remoteMessageReceipts remoteTools requiredMaximumVersion requiredMinimumVersion
	skipDangerousModePermissionPrompt statusLine strictPluginOnlyCustomization subagentStatusLine
	syncClaudeAiPlugins syncClaudeAiSkills teammateMode voice wslInheritsWindowsSettings
`)

// permissionsKept are the kinds of rules in the user's permissions that enter. Rules that allow mean nothing in a
// sandbox that allows everything, and hold whole commands with whatever secrets are in them.
var permissionsKept = []string{"deny", "ask"}

// bypassAnswer keeps Claude Code from asking whether it may run without
// permissions (measured with 2.1.329; it is honoured in user settings).
const bypassAnswer = "skipDangerousModePermissionPrompt"

// makeSettings merges the user's settings that enter with those that were changed inside, key by key. If both have
// changed a key since the last launch, the user's value is used.
func makeSettings(r Request, f From) Made {
	host := object.Parse(f.Sources[0])
	given, left := r.given(host)
	var notes []string
	record := object.Indented(given, "")
	inside := object.Parse(f.Old)
	delete(inside, bypassAnswer)
	settings, clashes := merge(object.Parse([]byte(f.Given)), given, inside)
	forbid(settings, given["permissions"])
	var own []string // keys set inside that run a program or redirect the agent
	for _, key := range []string{"apiKeyHelper", "env", "hooks", "statusLine"} {
		if settings[key] != nil && !same(settings[key], given[key]) {
			own = append(own, key)
		}
	}
	if len(own) > 0 {
		notes = append(notes,
			"set inside, in an earlier session, and kept: "+strings.Join(own, ", ")+" of settings.json")
	}
	settings[bypassAnswer] = yes
	made := Made{Content: object.Indented(settings, "  "), Given: string(record), Left: left, Notes: notes}
	if len(clashes) > 0 {
		made.Once = []string{changedTwice + strings.Join(clashes, ", ")}
	}
	if host == nil && len(f.Sources[0]) > 0 {
		made.Notes = []string{"your ~/.claude/settings.json is no JSON object: nothing of it enters"}
		return made
	}
	return made
}

const changedTwice = "you changed these settings, and so did somebody inside; yours count: "

// given returns the user's settings that enter, and those that are left out.
func (r Request) given(host object.Object) (object.Object, []diag.Left) {
	given := only(host, settingsKept)
	maps.DeleteFunc(given, func(key string, value json.RawMessage) bool { return SecretIn(key, value) != "" })
	left := dropped(host)
	permissions := object.Parse(host["permissions"])
	rules, said := rulesOf(permissions)
	left = append(left, said...)
	folders, said := r.folders(permissions["additionalDirectories"])
	left = append(left, said...)
	if len(folders) > 0 {
		rules.Set("additionalDirectories", folders)
	}
	if len(rules) > 0 {
		given.Set("permissions", rules)
	}
	hooks, said := r.hooks(host["hooks"])
	left = append(left, said...)
	if len(hooks) > 0 {
		given.Set("hooks", hooks)
	}
	for _, key := range settingsRun {
		own := object.Parse(host[key])
		switch reason := r.refuse(own); {
		case own == nil:
		case reason != "":
			text := "your setting " + key + " does not enter: " + reason
			left = append(left, diag.Left{Kind: "setting", Text: text})
		default:
			given[key] = host[key]
		}
	}
	line, said := r.statusLine(host["statusLine"])
	if line != nil {
		given["statusLine"] = line
	}
	return given, append(left, said...)
}

// rulesOf returns the user's rules that enter.
func rulesOf(permissions object.Object) (rules object.Object, left []diag.Left) {
	rules = only(permissions, permissionsKept)
	for _, kind := range slices.Sorted(maps.Keys(rules)) {
		kept := slices.DeleteFunc(object.As[[]json.RawMessage](rules[kind]), func(rule json.RawMessage) bool {
			reason := SecretIn("", rule)
			if reason != "" {
				text := "a rule of your permissions." + kind + " does not enter: " + reason
				left = append(left, diag.Left{Kind: "setting", Text: text})
			}
			return reason != ""
		})
		rules.Set(kind, kept)
	}
	return rules, left
}

// folders returns the user's additional directories that are inside.
func (r Request) folders(raw json.RawMessage) (kept []string, left []diag.Left) {
	for _, folder := range object.As[[]string](raw) {
		if ask(r.Sees, folder) == "" {
			kept = append(kept, folder)
			continue
		}
		text := "your additional directory " + folder + " is not inside: --mount-rw " + folder +
			", or `mounts: [{host: " + folder + ", mode: rw}]` in the profile"
		left = append(left, diag.Left{Kind: "additional directory", Text: text})
	}
	return kept, left
}

// merge takes each key from the side that has changed it since before, from the user's if both have. clashes are the
// keys that both changed, to different values.
func merge(before, host, inside object.Object) (merged object.Object, clashes []string) {
	merged = object.Object{}
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

// same reports whether two JSON texts are equal but for blanks. nil equals nil only.
func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// forbid adds the user's rules that are missing from the permissions in o, so that nothing done inside removes one.
// given is the user's permissions.
func forbid(o object.Object, given json.RawMessage) {
	rules, made := object.Parse(given), object.Of(o["permissions"])
	if len(rules) == 0 {
		return
	}
	for _, kind := range permissionsKept {
		var users []json.RawMessage
		there := object.As[[]json.RawMessage](made[kind])
		if json.Unmarshal(rules[kind], &users) != nil {
			continue
		}
		for _, rule := range users {
			if !slices.ContainsFunc(there, func(r json.RawMessage) bool { return same(r, rule) }) {
				there = append(there, rule)
			}
		}
		made.Set(kind, there)
	}
	o.Set("permissions", made)
}

func only(o object.Object, keys []string) object.Object {
	kept := object.Object{}
	for _, key := range keys {
		if value, ok := o[key]; ok {
			kept[key] = value
		}
	}
	return kept
}

// settingsLeft are left out with a reason: a user would miss them.
var settingsLeft = map[string]string{
	"apiKeyHelper":                   "it gives away a key: ANTHROPIC_AUTH_TOKEN can have what it prints",
	"proxyAuthHelper":                "it gives away a password",
	"awsCredentialExport":            "it gives away AWS keys: AWS_BEARER_TOKEN_BEDROCK stays outside",
	"awsAuthRefresh":                 "it gives away AWS keys: AWS_BEARER_TOKEN_BEDROCK stays outside",
	"gcpAuthRefresh":                 "it gives away a login of Google's",
	"otelHeadersHelper":              "it gives away a token",
	"processWrapper":                 "it names a program of this machine",
	"policyHelper":                   "it names a program of this machine",
	"policyHelpers":                  "it names programs of this machine",
	"xaaIdp":                         "it names a login",
	"forceLoginGatewayUrl":           "it would lead a login elsewhere; ANTHROPIC_BASE_URL names a gateway",
	"sandbox":                        "claudebox is the sandbox",
	"sshConfigs":                     "no SSH key is inside; `ssh: {hosts: [HOST]}` logs in",
	"sshHostCommands":                "no SSH key is inside; `ssh: {hosts: [HOST]}` logs in",
	"plansDirectory":                 "it names a folder of this machine",
	"autoMemoryDirectory":            "it names a folder of this machine",
	"additionalDirectoryConfigRoots": "it names folders of this machine",
}

// KnowsSetting reports whether it was decided what becomes of a setting.
func KnowsSetting(key string) bool {
	return slices.Contains(settingsKept, key) || slices.Contains(settingsQuiet, key) || settingsLeft[key] != ""
}

// dropped lists the user's settings that do not enter.
func dropped(host object.Object) (left []diag.Left) {
	for _, key := range slices.Sorted(maps.Keys(host)) {
		reason, missed := settingsLeft[key]
		if slices.Contains(settingsKept, key) {
			reason = SecretIn(key, host[key])
			missed = reason != ""
		}
		switch text := "your setting " + key + " does not enter"; {
		case missed:
			left = append(left, diag.Left{Kind: "setting", Text: text + ": " + reason})
		case !KnowsSetting(key):
			left = append(left, diag.Left{Kind: "setting", Text: text})
		}
	}
	return left
}

// hooks returns the user's hooks that can run inside; left says why each other one cannot. The shape is Claude
// Code's: event, matchers, and the hooks of each.
func (r Request) hooks(raw json.RawMessage) (kept map[string][]object.Object, left []diag.Left) {
	var events map[string][]object.Object
	if len(raw) > 0 && json.Unmarshal(raw, &events) != nil {
		text := "your setting hooks does not enter: it has another shape than Claude Code's"
		return nil, []diag.Left{{Kind: "setting", Text: text}}
	}
	kept = map[string][]object.Object{}
	for _, event := range slices.Sorted(maps.Keys(events)) {
		for _, matcher := range events[event] {
			var fit []object.Object
			around := maps.Clone(matcher)
			delete(around, "hooks")
			secret := SecretIn("", object.Encode(around))
			for _, hook := range object.As[[]object.Object](matcher["hooks"]) {
				if reason := cmp.Or(secret, r.refuse(hook)); reason != "" {
					text := "your hook of " + event + " does not enter: " + reason
					left = append(left, diag.Left{Kind: "hook", Text: text})
					continue
				}
				fit = append(fit, hook)
			}
			if len(fit) > 0 {
				matcher = maps.Clone(matcher)
				matcher.Set("hooks", fit)
				kept[event] = append(kept[event], matcher)
			}
		}
	}
	return kept, left
}

// StatusVariable is the variable with what the status line says in one session, instead of what all sessions have.
const StatusVariable = "CLAUDEBOX_STATUS"

// statusLine returns the user's own status line if it can run inside, else one that shows r.Status; nil if that is
// empty.
func (r Request) statusLine(raw json.RawMessage) (line json.RawMessage, left []diag.Left) {
	if own := object.Parse(raw); own != nil {
		reason := r.refuse(own)
		if reason == "" {
			return raw, nil
		}
		left = []diag.Left{{Kind: "status line", Text: "your setting statusLine does not enter: " + reason}}
	}
	if r.Status == "" {
		return nil, left
	}
	says := "s=" + diag.Quote(r.Status) + `; n=$(` + r.Refusals + ` 2>/dev/null); ` +
		`echo "${` + StatusVariable + `:-$s}${n:+ · $n}"`
	return object.Encode(map[string]string{"type": "command", "command": says}), left
}

// refuse says why a hook or a status line of the user does not enter; empty: it does.
func (r Request) refuse(o object.Object) string {
	if reason := SecretIn("", object.Encode(o)); reason != "" {
		return reason + "; write $NAME there"
	}
	return r.CannotRun(commandOf("", "", o))
}

// Missing says why a command cannot do inside what it does outside: a program or a file that it names is not there;
// empty: all are, or that is not known.
func (r Request) Missing(command string) string {
	for _, program := range shellline.Programs(command) {
		if reason := ask(r.Runs, program); reason != "" {
			return reason
		}
	}
	return r.unseen(shellline.Words(command))
}

// unseen says which file among the words of a command is not inside; empty: none.
func (r Request) unseen(words []string) string {
	for _, word := range words {
		_, value, _ := strings.Cut(word, "=")
		for _, name := range []string{word, value} {
			if reason := ask(r.Sees, name); strings.Contains(name, "/") && reason != "" {
				return reason
			}
		}
	}
	return ""
}

func ask(about func(string) string, word string) string {
	if about == nil {
		return ""
	}
	return about(word)
}
