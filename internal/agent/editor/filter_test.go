package editor

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"claudebox/checks/kit/must"
)

// Promise: nothing done outside by your editor.
func TestOnlyWhatShowsSomethingGoesToTheEditor(t *testing.T) {
	for name, tc := range map[string]struct{ said, want, refused string }{
		"an update":                 {`{"jsonrpc":"2.0","method":"session/update","params":{"a":[1,{"b":2.50}]}}`, `{"jsonrpc":"2.0","method":"session/update","params":{"a":[1,{"b":2.50}]}}`, ""},
		"a question":                {`{"id":7,"method":"session/request_permission"}`, `{"id":7,"method":"session/request_permission"}`, ""},
		"an answer":                 {`{"id":"x","result":null}`, `{"id":"x","result":null}`, ""},
		"an error":                  {`{"id":1,"error":{"code":-32000}}`, `{"error":{"code":-32000},"id":1}`, ""},
		"a file to read":            {`{"id":1,"method":"fs/read_text_file","params":{"path":"/home/u/.ssh/id"}}`, "", "it asks for fs/read_text_file, which an editor does outside"},
		"a file to write":           {`{"id":1,"method":"fs/write_text_file"}`, "", "it asks for fs/write_text_file, which an editor does outside"},
		"a command to run":          {`{"id":1,"method":"terminal/create","params":{"command":"sh"}}`, "", "it asks for terminal/create, which an editor does outside"},
		"a note of an extension":    {`{"method":"_auth/status_update"}`, "", ""},
		"a method of an extension":  {`{"id":1,"method":"_x/run"}`, "", "it asks for _x/run, which an editor does outside"},
		"two methods":               {`{"method":"session/update","method":"terminal/create"}`, "", "it is no message"},
		"two, one in other letters": {`{"method":"session/update","m\u0065thod":"terminal/create"}`, "", "it is no message"},
		"a method of another case":  {`{"Method":"terminal/create","id":1}`, `{"id":1}`, ""},
		"a method that is escaped":  {`{"id":1,"method":"terminal\u002fcreate"}`, "", "it asks for terminal/create, which an editor does outside"},
		"a method that is no text":  {`{"method":["terminal/create"]}`, "", "it is no message"},
		"several messages":          {`[{"method":"terminal/create"}]`, "", "it is no message"},
		"two on a line":             {`{"method":"session/update"}{"method":"terminal/create"}`, "", "it is no message"},
		"a line in a line":          {"{\"method\":\"session/update\",\r\"params\":{}}", `{"method":"session/update","params":{}}`, ""},
		"no message":                {"hello", "", "it is no message"},
		"no text":                   {"{\"method\":\"session/update\xff\"}", "", "it is no message"},
		"a command to log in by":    {`{"id":0,"result":{"authMethods":[{"_meta":{"terminal-auth":{"command":"sh"}}}],"v":1}}`, `{"id":0,"result":{"v":1}}`, ""},
		"the same in an error":      {`{"id":0,"error":{"data":{"authMethods":[]}}}`, `{"error":{"data":{}},"id":0}`, ""},
		"the same in a list":        {`{"id":0,"result":[[{"terminal-auth":{}}]]}`, `{"id":0,"result":[[{}]]}`, ""},
		"the same, twice":           {`{"id":0,"result":{"a":1,"a":{"authMethods":[]}}}`, "", "it is no message"},
		"the same in other letters": {`{"id":0,"result":{"AuthMethods":[1]}}`, `{"id":0,"result":{}}`, ""},
		"a page to open":            {`{"id":1,"method":"elicitation/create","params":{"url":"https://example.org/x"}}`, `{"id":1,"method":"elicitation/create","params":{"url":"https://example.org/x"}}`, ""},
		"a form with an address":    {`{"id":1,"method":"elicitation/create","params":{"requestedSchema":{"properties":{"url":{"type":"string"}}},"url":null}}`, `{"id":1,"method":"elicitation/create","params":{"requestedSchema":{"properties":{"url":{"type":"string"}}},"url":null}}`, ""},
		"a file to open":            {`{"id":1,"method":"elicitation/create","params":{"url":"file:///home/u/p/x.html"}}`, "", "it has 'file:///home/u/p/x.html' opened, which is no address of the web"},
		"an order to the editor":    {`{"id":1,"method":"elicitation/create","params":{"URL":"vscode://x/run"}}`, "", "it has 'vscode://x/run' opened, which is no address of the web"},
		"a file to open first":      {`{"id":1,"error":{"code":-32042,"data":{"elicitations":[{"url":"file:///x"}]}}}`, `{"error":{"code":-32042},"id":1}`, "it has 'file:///x' opened, which is no address of the web"},
		"a page that is shown":      {`{"method":"session/update","params":{"url":"file:///x"}}`, `{"method":"session/update","params":{"url":"file:///x"}}`, ""},
		"too deep":                  {`{"result":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "", "it is no message"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, back bytes.Buffer
			var refused []string
			err := fromAgent(strings.NewReader(tc.said+"\n\n"), &out, &back, judgeACP, func(why string) { refused = append(refused, why) })
			if got := strings.TrimSuffix(out.String(), "\n"); err != nil || got != tc.want || strings.Join(refused, "") != tc.refused {
				t.Errorf("%q, refused %q, %v; want %q, %q", got, refused, err, tc.want, tc.refused)
			}
			if asks := strings.Contains(tc.refused, "asks for") || strings.Contains(tc.refused, "opened") && tc.want == ""; asks != strings.Contains(back.String(), `"code":-32601`) {
				t.Errorf("answered is %q", back.String())
			}
		})
	}
}

func TestAnEditorsOffersOfFilesAndTerminalsDoNotReachTheAgent(t *testing.T) {
	const said = `{"id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true,"elicitation":{"form":{}}}}}` + "\n" +
		`{"id":1,"method":"session/prompt","params":{"text":"\"clientCapabilities\" <x>"}}` + "\n"
	const want = `{"id":0,"method":"initialize","params":{"clientCapabilities":{"elicitation":{"form":{}}},"protocolVersion":1}}` + "\n" +
		`{"id":1,"method":"session/prompt","params":{"text":"\"clientCapabilities\" <x>"}}` + "\n"
	var out bytes.Buffer
	if err := fromEditor(strings.NewReader(said), &out, greet, func(string) {}); err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}

func TestARefusalIsToldOnceAndTenAreToldAtAll(t *testing.T) {
	var said []string
	say := once(100, func(what string) { said = append(said, what) })
	for i := range 100 {
		say("x")
		say(strings.Repeat("long ", i))
	}
	if len(said) != 10 || slices.ContainsFunc(said, func(s string) bool { return len(s) > 100 }) {
		t.Errorf("%q", said)
	}
}

// What goes on is one line, has each name once, one of the methods or none, and nothing that is barred.
//
// Promise: nothing done outside by your editor.
func FuzzWhatGoesToTheEditor(f *testing.F) {
	for _, seed := range []string{
		`{"method":"session/update","params":{"authMethods":[1,{"a":"` + "\u2028" + `"}]}}`, `{"id":1,"result":{"a":[{"terminal-auth":{}}]}}`,
		`{"method":"fs/read_text_file"}`, `[{}]`, `{"a":1}{"b":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		message := judgeACP(line).message
		if message == nil || !utf8.Valid(line) {
			return
		}
		if bytes.ContainsAny(message, "\n\r\u2028\u2029") || bytes.Contains(message, []byte(`"authMethods":`)) || bytes.Contains(message, []byte(`"terminal-auth":`)) {
			t.Errorf("%q", message)
		}
		var read map[string]any
		must.Do(t, json.Unmarshal(message, &read))
		if method, is := read["method"]; is && !slices.Contains(shown, method.(string)) {
			t.Errorf("%q", message)
		}
		if again := judgeACP(message).message; !bytes.Equal(again, message) {
			t.Errorf("%q becomes %q", message, again)
		}
	})
}

// Promise: nothing done outside by your editor.
func TestOnlyWhatAsksTheUserGoesToTheExtension(t *testing.T) {
	mcp := func(server, message string) string {
		return `{"type":"control_request","request_id":"1","request":{"subtype":"mcp_message","server_name":"` + server + `","message":` + message + `}}`
	}
	for name, tc := range map[string]struct{ said, refused string }{
		"text":                      {`{"type":"assistant","message":{"content":[]}}`, ""},
		"a question":                {`{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","input":{"a":1}}}`, ""},
		"a hook":                    {`{"type":"control_request","request_id":"1","request":{"subtype":"hook_callback"}}`, ""},
		"an answer":                 {`{"type":"control_response","response":{"subtype":"success"}}`, ""},
		"the login":                 {`{"type":"control_request","request_id":"1","request":{"subtype":"oauth_token_refresh"}}`, "oauth_token_refresh"},
		"a host's login":            {`{"type":"control_request","request_id":"1","request":{"subtype":"host_auth_token_refresh"}}`, "host_auth_token_refresh"},
		"a page to open":            {`{"type":"control_request","request_id":"1","request":{"subtype":"elicitation","url":"https://example.org"}}`, ""},
		"a file to open":            {`{"type":"control_request","request_id":"1","request":{"subtype":"elicitation","url":"file:///x"}}`, "file:///x"},
		"a tool for a file":         {`{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","input":{"url":"file:///x"}}}`, ""},
		"what is not known":         {`{"type":"control_request","request_id":"1","request":{"subtype":"x"}}`, "x"},
		"two of them":               {`{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","subtype":"oauth_token_refresh"}}`, "no message"},
		"two types":                 {`{"type":"assistant","type":"control_request"}`, "no message"},
		"no type":                   {`{"request":{"subtype":"oauth_token_refresh"}}`, "no message"},
		"a greeting of a server":    {mcp("claude-vscode", `{"id":1,"method":"initialize"}`), ""},
		"diagnostics":               {mcp("claude-vscode", `{"id":1,"method":"tools/call","params":{"name":"getDiagnostics"}}`), ""},
		"a cell of a notebook":      {mcp("claude-vscode", `{"id":1,"method":"tools/call","params":{"name":"executeCode"}}`), "the tool executeCode"},
		"two names of a tool":       {mcp("ide", `{"id":1,"method":"tools/call","params":{"name":"getDiagnostics","name":"executeCode"}}`), "no message"},
		"two methods of a server":   {mcp("claude-vscode", `{"method":"initialize","method":"tools/call","params":{"name":"executeCode"}}`), "no message"},
		"a tool of a program's own": {mcp("mine", `{"id":1,"method":"tools/call","params":{"name":"deploy"}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, back bytes.Buffer
			why := ""
			err := fromAgent(strings.NewReader(tc.said+"\n"), &out, &back, judgeStream, func(said string) { why = said })
			var was, is any
			if tc.refused == "" {
				if json.Unmarshal([]byte(tc.said), &was) != nil || json.Unmarshal(out.Bytes(), &is) != nil || !reflect.DeepEqual(was, is) || back.Len() > 0 {
					t.Errorf("%q, %q, %v", out.String(), back.String(), err)
				}
				return
			}
			if err != nil || out.Len() > 0 || !strings.Contains(why, tc.refused) || (tc.refused != "no message") != strings.Contains(back.String(), `"subtype":"error"`) {
				t.Errorf("%q, answered %q, %q, %v", out.String(), back.String(), why, err)
			}
		})
	}
}
