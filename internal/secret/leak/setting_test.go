package leak_test

import (
	"testing"

	"claudebox/internal/secret/leak"
)

// A secret of no known shape is known by the name before it, however both are written.
func TestASecretStandsBehindItsName(t *testing.T) {
	for text, want := range map[string]string{
		"curl -H 'X-Api-Key: hunter2horse9' x":                     "X-Api-Key",
		"notify --token=hunter2horse9":                             "--token",
		"notify --token hunterhorse":                               "--token",
		"API_TOKEN=hunterhorse notify":                             "API_TOKEN",
		"--header=PRIVATE-TOKEN: hunter2horse9":                    "PRIVATE-TOKEN",
		"-H Authorization:Bearer hunter2horse9":                    "Authorization",
		"--header Authorization:token hunter2horse9":               "Authorization",
		"https://x.example/mcp?v=1&api_key=hunter2horse9":          "api_key",
		"https://x.example/s/QZ4m1v9Kc7xT2bNn8wRs5AuY/mcp":         "a part of an address",
		"curl -u me:hunter2horse9 https://x.example":               "-u",
		`{"api_key": "hunter2horse9"}`:                             "api_key",
		`{"a":{"password":"hunter2horse9"}}`:                       "password",
		"password = hunter2horse9":                                 "password",
		"password: hunter2horse9, and go on":                       "password",
		"API_KEY=hunter2$ecret x":                                  "API_KEY",
		"PASSWORD=p@$$w0rd99 x":                                    "PASSWORD",
		"API_KEY=/9j4AAQSkZJRgABAQEAYABgAAD/2w notify":             "API_KEY",
		"curl -H 'X-Api-Key: /x7Kd9QwZ81' x":                       "X-Api-Key",
		"API_KEY=/run/secrets/key1234567 notify":                   "",
		"curl -H 'X-Api-Key: $KEY' -H 'Authorization: Bearer ${T}": "",
		"TOKEN=$(pass show x) notify":                              "",
		"notify --key-file ~/.keys/x --token --verbose":            "",
		"git log --author somebody":                                "",
		"the token is sent to you":                                 "",
		"keys: whatever you like; tokens: unlimited":               "",
		"Authorization: <your token>":                              "",
		"https://token.example/oauth/authorize?client=x":           "",
		"npx -y @scope/server-name@latest --port 30000":            "",
	} {
		if got := leak.Named(text); got != want {
			t.Errorf("Named(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestASettingMayNameAVariableAFileOrAnAddress(t *testing.T) {
	for setting, want := range map[[2]string]bool{
		{"X-Api-Key", "hunter2horse9"}: true, {"Authorization", "Bearer hunter2horse9"}: true, {"apiKey", "{env:X}hunter2horse9"}: true,
		{"password", "hunter2$ecret"}: true, {"password", "p@$$w0rd99"}: true, {"webhook", "https://x.example/a/b"}: true,
		{"password", "/hunter2x!"}: true, {"key", "/9j4AAQSkZJRgABAQEAYABgAAD/2wBD"}: true, {"apiKey", "hunter2${x}"}: true, {"apiKey", "${x}hunter2"}: true,
		{"key", "/etc/ssl/k3y5a9b7c/x"}: false, {"key", "/data/models/key.pem"}: false, {"token", "/oauth2/token"}: false, {"secret", "../k3y5a9b7c"}: false,
		{"key", "/nix/store/0c5l1jz8k0cv6qzcz3v6k1pz0a2qd8h4-x/key"}: false,
		{"apiKey", "{env:X_KEY}"}:                                    false, {"apiKey", "${X_KEY}"}: false, {"Authorization", "Bearer $X"}: false, {"Authorization", "Basic $USER:$PASS"}: false,
		{"key_file", "~/.keys/x"}: false, {"tokenUrl", "https://x.example/oauth"}: false, {"apiKey", "<your key>"}: false,
		{"ref", "3f9a1c7e5b0d82462e8f4b6a3f9a1c7e5b0d8246"}: false, {"other", "3f9a1c7e5b0d82462e8f4b6a3f9a1c7e5b0d8246"}: true,
		{"ref", "ghp_" + letters(36)}: true, {"model", "claude"}: false,
	} {
		if got := leak.Setting(setting[0], setting[1]); (got != "") != want {
			t.Errorf("Setting(%q) = %q", setting, got)
		}
	}
}
