package agenthome

import (
	"strings"
	"testing"
)

// A secret of no known shape, which only the name before it gives away, entered with the settings around it.
func TestASecretInASettingEnters(t *testing.T) {
	everything := Request{Runs: func(string) string { return "" }}
	for name, tc := range map[string]struct{ agent, host string }{
		"in the configuration of a plugin":       {"claude", `{"pluginConfigs":{"p@m":{"mcpServers":{"s":{"API_KEY":"hunter2horse9"}}}}}`},
		"in the headers of a marketplace":        {"claude", `{"extraKnownMarketplaces":{"x":{"source":{"source":"url","headers":{"PRIVATE-TOKEN":"hunter2horse9"}}}}}`},
		"in the address of one":                  {"claude", `{"prUrlTemplate":"https://x.example/?private_token=hunter2horse9"}`},
		"in a key that is there twice":           {"claude", `{"modelSettings":{"apiKey":"hunter2horse9","apiKey":""}}`},
		"in a hook of HTTP":                      {"claude", `{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"https://x","headers":{"X-Api-Key":"hunter2horse9"}}]}]}}`},
		"in the address of a hook":               {"claude", `{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"https://x/?api_key=hunter2horse9"}]}]}}`},
		"in the words of a hook":                 {"claude", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"jq","args":["--password","hunter2horse9"]}]}]}}`},
		"in curl's words for a user":             {"claude", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"curl -u me:hunter2horse9 x"}]}]}}`},
		"around a hook":                          {"claude", `{"hooks":{"Stop":[{"matcher":"TOKEN=hunter2horse9","hooks":[{"type":"command","command":"jq"}]}]}}`},
		"in a status line":                       {"claude", `{"statusLine":{"type":"command","command":"jq","x":{"token":"hunter2horse9"}}}`},
		"in a rule":                              {"claude", `{"permissions":{"deny":["Bash(curl -H 'PRIVATE-TOKEN: hunter2horse9')"]}}`},
		"in a text of Codex":                     {"codex", "compact_prompt = 'password: hunter2horse9'"},
		"in a list":                              {"codex", "[tui]\napi_keys = ['hunter2horse9']"},
		"in a table of tokens":                   {"codex", "[tui.TOKENS]\na = 'hunter2horse9'"},
		"in a number":                            {"codex", "[tui]\npassword = 4815162342"},
		"in place of a variable's name":          {"codex", "[tui]\nenv_key = 'hunter2horse9'"},
		"in the name of a setting":               {"codex", "[features]\nghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO = true"},
		"in the address of a file":               {"codex", "model_instructions_file = 'https://me:hunter2horse9@x.example/'"},
		"in a header of a provider":              {"codex", "[model_providers.gw]\nbase_url = 'https://gw.example'\nhttp_headers = { n = [['--api-key', 'hunter2horse9']] }"},
		"beside its name":                        {"gemini", `{"agents":{"x":[{"name":"API_KEY","value":"hunter2horse9"}]}}`},
		"in a pager's environment":               {"gemini", `{"tools":{"shell":{"pager":"env PASSWORD=hunter2horse9 cat"}}}`},
		"behind a reference to a variable":       {"opencode", `{"provider":{"a":{"options":{"apiKey":"{env:FOO}hunter2horse9"}}}}`},
		"with a dollar":                          {"opencode", `{"agent":{"a":{"password":"hunter2horse9$ecret"}}}`},
		"in an address of instructions":          {"opencode", `{"instructions":["https://gist.example/raw?token=hunter2horse9"]}`},
		"in the template of a command":           {"opencode", "{\"command\":{\"c\":{\"template\":\"!`curl -H 'Authorization: Bearer hunter2horse9'`\"}}}"},
		"in a header that one word gives a tool": {"server", `{"command":"npx","args":["--header=PRIVATE-TOKEN: hunter2horse9"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			var made Made
			switch tc.agent {
			case "claude":
				s := settings{r: everything}
				made = s.launch(t, tc.host)
			case "server":
				r := Request{Servers: []string{"a"}}
				made = makeAnswers(r, From{Sources: [][]byte{[]byte(`{"mcpServers":{"a":` + tc.host + `}}`)}})
			default:
				o := others{r: everything, agent: tc.agent}
				made = o.launch(t, tc.host)
			}
			for _, secret := range []string{"hunter2horse9", "4815162342", "ghp_"} {
				if strings.Contains(string(made.Content), secret) || strings.Contains(made.Given, secret) {
					t.Errorf("it enters: %s", made.Content)
				}
				if strings.Contains(strings.Join(said(made), ""), secret) {
					t.Errorf("it is said: %q", said(made))
				}
			}
			if len(made.Left) == 0 {
				t.Error("nothing is said")
			}
		})
	}
}

// What only looks a little like a secret enters.
func TestWhatNamesNoSecretEnters(t *testing.T) {
	for _, setting := range []string{
		`{"theme":"dark"}`, `{"keybindingFlavor":"standard"}`, `{"totalTokensReminderBudget":1000000}`,
		`{"attribution":{"commit":"Co-Authored-By: Claude <noreply@anthropic.com>"}}`,
		`{"extraKnownMarketplaces":{"x":{"source":{"source":"github","repo":"o/r","ref":"3f9a1c7e5b0d82462e8f4b6a3f9a1c7e5b0d8246"}}}}`,
		`{"modelOverrides":{"claude-x":"arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude"}}`,
		`{"enabledPlugins":{"key-manager@tokens":true}}`, `{"forceLoginOrgUUID":"123e4567-e89b-12d3-a456-426614174000"}`,
		`{"permissions":{"deny":["Read(./secrets/**)","Bash(npm token:*)","WebFetch(domain:auth.example.com)","Read(**/*.key)"]}}`,
	} {
		var s settings
		made := s.launch(t, setting)
		if len(made.Left) > 0 {
			t.Errorf("%s: %q", setting, said(made))
		}
	}
	for _, host := range []string{
		`{"keybinds":{"leader":"ctrl+x","app_exit":"ctrl+c,ctrl+d"}}`, `{"agent":{"a":{"prompt":"Explain keys: prefer the token that is valid."}}}`,
		`{"provider":{"gw":{"options":{"apiKey":"{env:GW_KEY}","headers":{"Authorization":"Bearer {env:GW_KEY}"}}}}}`,
	} {
		o := others{agent: "opencode"}
		if made := o.launch(t, host); len(made.Left) > 0 {
			t.Errorf("%s: %q", host, said(made))
		}
	}
}

// Without its address a provider of Codex's is OpenAI: what the user says would go there.
func TestASecretInTheAddressOfAGatewayEnters(t *testing.T) {
	for host, want := range map[string]string{
		"openai_base_url = 'https://me:hunter2horse9@gw.example/v1?key=hunter2horse9'":                                  `"https://gw.example/v1"`,
		"[model_providers.gw]\nbase_url = 'https://me:hunter2horse9@gw.example/v1'":                                     `"https://gw.example/v1"`,
		"[model_providers.gw]\nbase_url = 'https://gw.example/v1?v=1'":                                                  `"https://gw.example/v1?v=1"`,
		"[model_providers.gw]\nname = 'gw'\nbase_url = 'https://gw.example/QZ4m1v9Kc7xT2bNn8wRs5AuY/v1'\nenv_key = 'X'": "",
	} {
		o := others{agent: "codex"}
		made := o.launch(t, host)
		if content := string(made.Content); strings.Contains(content, "hunter2") || strings.Contains(content, "QZ4m") ||
			!strings.Contains(content, want) || want == "" && strings.Contains(content, "gw") {
			t.Errorf("%s: made %s", host, content)
		}
		if secret := !strings.Contains(host, "?v=1"); secret != (len(made.Left) > 0) {
			t.Errorf("%s: said %q", host, said(made))
		}
	}
}
