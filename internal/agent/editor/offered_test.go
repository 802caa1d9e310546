package editor

import (
	"bytes"
	"strings"
	"testing"
)

// An editor's MCP servers, and the hosts that it offers for models, come with the user's tokens.
//
// Promise: no variable of yours inside, unless named.
func TestSecretsOfWhatAnEditorOffersDoNotReachTheAgent(t *testing.T) {
	const token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	session := func(servers string) string {
		return `{"id":1,"method":"session/new","params":{"cwd":"/p","mcpServers":` + servers + `}}`
	}
	for name, tc := range map[string]struct {
		said, want, told string
		change           change
	}{
		"a token in a list":  {session(`[{"name":"gh","command":"gh","env":[{"name":"GH_TOKEN","value":"` + token + `"},{"name":"LANG","value":"C"}]}]`), session(`[{"command":"gh","env":[{"name":"LANG","value":"C"}],"name":"gh"}]`), "GH_TOKEN", greet},
		"a token by value":   {session(`[{"name":"gh","command":"gh","env":[{"name":"X","value":"` + token + `"}]}]`), session(`[{"command":"gh","env":[],"name":"gh"}]`), "X", greet},
		"a token in a map":   {session(`{"gh":{"env":{"GH_TOKEN":"x","LANG":"C"}}}`), session(`{"gh":{"env":{"LANG":"C"}}}`), "GH_TOKEN", greet},
		"a header":           {session(`[{"type":"http","name":"a","url":"https://a","headers":[{"name":"Authorization","value":"Bearer abc"}]}]`), session(`[{"headers":[],"name":"a","type":"http","url":"https://a"}]`), "Authorization", greet},
		"a word":             {session(`[{"name":"a","command":"npx","args":["--token","hunter2!"]},{"name":"b"}]`), session(`[{"name":"b"}]`), "--token is probably a secret", greet},
		"a part of a word":   {session(`[{"name":"a","command":"sh","args":["-c","X=` + token + ` run"]}]`), session(`[]`), "a GitHub", greet},
		"an address":         {session(`{"a":{"url":"https://a/?api_key=0123456789abcdef"}}`), session(`{}`), "api_key is probably a secret", greet},
		"one of Claude Code": {`{"id":1,"method":"session/load","params":{"_meta":{"claudeCode":{"options":{"env":{"A_KEY":"x"},"model":"m"}}}}}`, `{"id":1,"method":"session/load","params":{"_meta":{"claudeCode":{"options":{"env":{},"model":"m"}}}}}`, "A_KEY", greet},
		"a gateway":          {`{"id":1,"method":"authenticate","params":{"_meta":{"gateway":{"baseUrl":"https://a","headers":{"X-Api-Key":"x"}}}}}`, `{"id":1,"method":"authenticate","params":{"_meta":{"gateway":{"baseUrl":"https://a","headers":{}}}}}`, "X-Api-Key", greet},
		"a reference":        {session(`[{"name":"a","url":"https://a","headers":{"Authorization":"Bearer ${TOKEN}"}}]`), session(`[{"headers":{"Authorization":"Bearer ${TOKEN}"},"name":"a","url":"https://a"}]`), "", greet},
		"no reference":       {session(`{"gh":{"env":{"GH_TOKEN":"hunter2${x}","B_KEY":"/x7Kd9QwZ81"}}}`), session(`{"gh":{"env":{}}}`), "GH_TOKEN", greet},
		"what the user says": {`{"id":1,"method":"session/prompt","params":{"prompt":[{"env":{"A_KEY":"x"}}]}}`, `{"id":1,"method":"session/prompt","params":{"prompt":[{"env":{"A_KEY":"x"}}]}}`, "", greet},
		"the extension's":    {`{"type":"control_request","request":{"subtype":"mcp_set_servers","servers":{"gh":{"env":{"GH_TOKEN":"x"}}}}}`, `{"request":{"servers":{"gh":{"env":{}}},"subtype":"mcp_set_servers"},"type":"control_request"}`, "GH_TOKEN", greetStream},
		"a login of its own": {`{"type":"update_environment_variables","variables":{"CLAUDE_CODE_OAUTH_TOKEN":"x","A":"b"}}`, `{"type":"update_environment_variables","variables":{"A":"b"}}`, "CLAUDE_CODE_OAUTH_TOKEN", greetStream},
		"its user says":      {`{"type":"user","message":{"content":[{"env":{"A_KEY":"x"}}]}}`, `{"type":"user","message":{"content":[{"env":{"A_KEY":"x"}}]}}`, "", greetStream},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			var told []string
			err := fromEditor(strings.NewReader(tc.said+"\n"), &out, tc.change, func(why string) { told = append(told, why) })
			if got := strings.TrimSuffix(out.String(), "\n"); err != nil || got != tc.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, tc.want)
			}
			if got := strings.Join(told, "\n"); (got == "") != (tc.told == "") || !strings.Contains(got, tc.told) || strings.Contains(got, token) {
				t.Errorf("told %q", got)
			}
		})
	}
}

// An agent that writes without an end, to have what reads its messages give up, gains nothing by it.
func TestALineWithoutAnEndDoesNotEndTheFilter(t *testing.T) {
	long := strings.Repeat("x", longest+1)
	const next = `{"method":"session/update"}`
	var out, back bytes.Buffer
	var told []string
	tell := func(why string) { told = append(told, why) }
	err := fromAgent(strings.NewReader(long+"\n"+next+"\n"+long), &out, &back, judgeACP, tell)
	if err != nil || out.String() != next+"\n" || len(told) != 2 {
		t.Errorf("%v, %d bytes, told %q", err, out.Len(), told)
	}
	out.Reset()
	err = fromEditor(strings.NewReader(long+"\n"+next), &out, greet, tell)
	if err != nil || out.String() != next+"\n" || len(told) != 3 {
		t.Errorf("%v, %d bytes, told %q", err, out.Len(), told)
	}
}
