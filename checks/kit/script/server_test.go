package script_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
)

// object is a JSON object as the client sees it.
type object = map[string]any

// talk asks the server for one answer, as an agent with tools does.
func talk(t *testing.T, s *script.Server, body object) (status int, answer []byte) {
	t.Helper()
	return post(t, s, "/v1/messages?beta=true", merge(object{"model": "m", "tools": []object{{"name": "Bash"}}}, body))
}

func post(t *testing.T, s *script.Server, path string, body object) (status int, answer []byte) {
	t.Helper()
	data, err := json.Marshal(body)
	must.Do(t, err)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(data)))
	return w.Code, w.Body.Bytes()
}

func merge(maps ...object) object {
	all := object{}
	for _, m := range maps {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

func user(content any) object {
	return object{"messages": []object{{"role": "user", "content": content}}}
}

func result(text string, isError bool) object {
	return user([]object{{"type": "tool_result", "tool_use_id": "x", "content": text, "is_error": isError}})
}

// assemble rebuilds a message from a stream, as a client of the API does.
func assemble(t *testing.T, stream []byte) object {
	t.Helper()
	var message object
	content := []any{}
	var last string
	lines := bufio.NewScanner(bytes.NewReader(stream))
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event object
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("event %q: %v", data, err)
		}
		last, _ = event["type"].(string)
		switch last {
		case "message_start":
			message = event["message"].(object)
		case "content_block_start":
			content = append(content, event["content_block"])
		case "content_block_delta":
			apply(t, content[int(event["index"].(float64))].(object), event["delta"].(object))
		case "message_delta":
			message["stop_reason"] = event["delta"].(object)["stop_reason"]
		}
	}
	if last != "message_stop" {
		t.Fatalf("stream ends with %q, not message_stop", last)
	}
	message["content"] = content
	return message
}

func apply(t *testing.T, block, delta object) {
	t.Helper()
	if delta["type"] == "text_delta" {
		block["text"] = block["text"].(string) + delta["text"].(string)
		return
	}
	var input object
	must.Do(t, json.Unmarshal([]byte(delta["partial_json"].(string)), &input))
	block["input"] = input
}

// The law of the two forms: whoever follows a stream ends up with the message
// that is answered without streaming.
func TestStreamHoldsTheSameMessageAsThePlainAnswer(t *testing.T) {
	for name, turn := range map[string]script.Turn{
		"text":               script.Say("hello\n\"world\""),
		"a call":             script.Bash("ls /"),
		"text and calls":     {Text: "look", Calls: []script.Call{{Tool: "Bash"}, {Tool: "Read", Input: object{"file_path": "/a"}}}},
		"nothing to be said": {},
	} {
		t.Run(name, func(t *testing.T) {
			_, plain := talk(t, script.New(turn), user("hi"))
			_, stream := talk(t, script.New(turn), merge(user("hi"), object{"stream": true}))
			var want object
			must.Do(t, json.Unmarshal(plain, &want))
			if got := assemble(t, stream); !reflect.DeepEqual(got, want) {
				t.Errorf("stream gives %v; want %v", got, want)
			}
		})
	}
}

func TestTurnsAreJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		want script.Want
		ask  object
		err  string // empty: the script goes well
	}{
		"prompt that is there":          {script.Prompted("please"), user("please go"), ""},
		"prompt that is not there":      {script.Prompted("please"), user("go"), `newest message lacks "please": "go"`},
		"result as wanted":              {script.Succeeded("uid=", "gid="), result("uid=1 gid=1", false), ""},
		"result without the text":       {script.Succeeded("uid=", "gid="), result("uid=1", false), `tool result lacks "gid=": "uid=1"`},
		"error where success is due":    {script.Succeeded(), result("boom", true), `is_error is true: "boom"`},
		"error as wanted":               {script.Refused("denied"), result("permission denied", true), ""},
		"success where an error is due": {script.Refused(), result("fine", false), `is_error is false: "fine"`},
		"no result at all":              {script.Succeeded(), user("hi"), `holds no tool result: "hi"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := script.New(script.Say("ok").After(tc.want))
			status, answer := talk(t, s, tc.ask)
			if tc.err == "" {
				if status != http.StatusOK || s.Err() != nil {
					t.Errorf("status %d, %v; want 200 and no error", status, s.Err())
				}
				return
			}
			if s.Err() == nil || !strings.Contains(s.Err().Error(), tc.err) {
				t.Errorf("Err is %v; want %q", s.Err(), tc.err)
			}
			if status != http.StatusForbidden || !bytes.Contains(answer, []byte("permission_error")) {
				t.Errorf("status %d, %s; want a refusal", status, answer)
			}
		})
	}
}

func TestServerKeepsToItsScript(t *testing.T) {
	s := script.New(script.Say("one"), script.Say("two"))
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "2 turns were not asked for") {
		t.Errorf("before the first request: %v", err)
	}
	for _, want := range []string{"one", "two"} {
		if _, answer := talk(t, s, user("hi")); !bytes.Contains(answer, []byte(want)) {
			t.Errorf("answer %s; want %s", answer, want)
		}
	}
	if err := s.Err(); err != nil {
		t.Errorf("after the last turn: %v", err)
	}
	if status, _ := talk(t, s, user("more?")); status != http.StatusForbidden {
		t.Errorf("status %d for a request too many; want 403", status)
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), `request 3: no turn is left for "more?"`) {
		t.Errorf("after a request too many: %v", err)
	}
	if got := len(s.Requests()); got != 3 {
		t.Errorf("%d requests recorded; want 3", got)
	}
}

func TestRefusalCanBePartOfTheScript(t *testing.T) {
	s := script.New()
	s.Add(script.Turn{Fail: "no credit"})
	status, answer := talk(t, s, user("hi"))
	if status != http.StatusForbidden || !bytes.Contains(answer, []byte("no credit")) {
		t.Errorf("%d %s; want a refusal", status, answer)
	}
	if err := s.Err(); err != nil {
		t.Errorf("a refusal by the script is a fault: %v", err)
	}
}

func TestHousekeepingTakesNoTurn(t *testing.T) {
	s := script.New()
	if status, answer := post(t, s, "/v1/messages", user("make a title")); status != http.StatusOK {
		t.Errorf("request without tools: %d %s", status, answer)
	}
	if status, answer := post(t, s, "/v1/messages/count_tokens", user("hi")); status != http.StatusOK || !bytes.Contains(answer, []byte("input_tokens")) {
		t.Errorf("token count: %d %s", status, answer)
	}
	if err := s.Err(); err != nil || len(s.Requests()) > 0 {
		t.Errorf("%v, %d requests; want none", err, len(s.Requests()))
	}
}

func TestStraysAreToldApart(t *testing.T) {
	s := script.New()
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodPost, "/api/event_logging", nil),
		httptest.NewRequest(http.MethodConnect, "example.org:443", nil),
		httptest.NewRequest(http.MethodPost, "http://example.org/v1/messages", strings.NewReader(`{"tools": []}`)),
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusNotFound {
			t.Errorf("%s %s: status %d; want 404", r.Method, r.RequestURI, w.Code)
		}
	}
	want := []string{"POST /api/event_logging", "CONNECT example.org:443", "POST http://example.org/v1/messages"}
	if got := s.Strays(); !slices.Equal(got, want) {
		t.Errorf("strays %q; want %q", got, want)
	}
}

func TestBrokenRequestIsRefused(t *testing.T) {
	w := httptest.NewRecorder()
	script.New().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader("{")))
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "decode request") {
		t.Errorf("%d %s; want a refusal", w.Code, w.Body)
	}
}

func TestHeldTurnEndsWhenTheAgentLeaves(t *testing.T) {
	server := httptest.NewServer(script.New(script.Turn{Text: "wait", Hold: true}))
	defer server.Close() // blocks until the handler is back
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	body := `{"model": "m", "stream": true, "tools": [{"name": "Bash"}]}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/messages", strings.NewReader(body))
	must.Do(t, err)
	answer, err := http.DefaultClient.Do(r)
	must.Do(t, err)
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for text := ""; !strings.Contains(text, "wait"); {
		if text, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("stream ended before its text: %v", err)
		}
	}
	leave()
	if rest, err := io.ReadAll(lines); err == nil || bytes.Contains(rest, []byte("message_stop")) {
		t.Errorf("held turn came to its end: %q, %v", rest, err)
	}
}
