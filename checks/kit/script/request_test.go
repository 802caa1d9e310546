package script_test

import (
	"encoding/json"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
)

func TestRequestReadsWhatAnAgentSends(t *testing.T) {
	for name, tc := range map[string]struct {
		body, prompt, text, result string
	}{
		"content may be a bare string": {
			body:   `{"messages": [{"role": "user", "content": "hi"}]}`,
			prompt: "hi", text: "\nhi",
		},
		"system may be blocks and comes first": {
			body:   `{"system": [{"type": "text", "text": "be good"}], "messages": [{"role": "user", "content": "hi"}]}`,
			prompt: "hi", text: "be good\nhi",
		},
		"a message of role system after the prompt is not the prompt": {
			body:   `{"messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "env"}]}`,
			prompt: "hi", text: "\nhi\nenv",
		},
		"the last result of the newest message counts": {
			body: `{"messages": [{"role": "user", "content": [
				{"type": "tool_result", "content": "one"}, {"type": "tool_result", "content": [{"type": "text", "text": "two"}]}]}]}`,
			prompt: "one\ntwo", text: "\none\ntwo", result: "two",
		},
		"a result of an older turn does not count": {
			body: `{"messages": [{"role": "user", "content": [{"type": "tool_result", "content": "old"}]},
				{"role": "assistant", "content": "ok"}, {"role": "user", "content": "next"}]}`,
			prompt: "next", text: "\nold\nok\nnext",
		},
		"no message is no prompt": {body: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			var r script.Request
			must.Do(t, json.Unmarshal([]byte(tc.body), &r))
			result, ok := r.Result()
			if got := result.Content.Text(); got != tc.result || ok != (tc.result != "") {
				t.Errorf("result %q, %t; want %q", got, ok, tc.result)
			}
			if got := r.Prompt(); got != tc.prompt {
				t.Errorf("prompt %q; want %q", got, tc.prompt)
			}
			if got := r.Text(); got != tc.text {
				t.Errorf("text %q; want %q", got, tc.text)
			}
		})
	}
}
