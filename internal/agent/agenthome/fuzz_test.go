package agenthome

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"claudebox/internal/agent/object"
)

// shapes are what an agent may have left.
var shapes = []string{
	"", "{}", "[]", "null", `{"projects":null}`, `{"projects":{"/p":3}}`, `{"projects":{"/p":{"hasTrustDialogAccepted":"yes"}}}`,
	`{"customApiKeyResponses":{"approved":{},"rejected":[1]}}`, `{"a":1e999,"b":"\ud800"}`, `{"hasCompletedOnboarding":false}`,
	`{"model":"m","hooks":{},"permissions":{"deny":["x"],"allow":["y"]}}`,
}

// FuzzAnswers holds .claude.json to three laws: our answers are in it, what
// was there is kept, and making it again changes nothing.
func FuzzAnswers(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s), []byte(s))
	}
	r := Request{Trusted: []string{"/p"}, APIKey: "0123456789abcdefghij"}
	f.Fuzz(func(t *testing.T, old, host []byte) {
		made := makeAnswers(r, From{Old: old, Sources: [][]byte{host}})
		once := made.Content
		o := object.Parse(once)
		trusted := object.Parse(object.Parse(o["projects"])["/p"])
		if string(o["hasCompletedOnboarding"]) != "true" || string(trusted["hasTrustDialogAccepted"]) != "true" {
			t.Errorf("%q became %q", old, once)
		}
		ours := []string{"hasCompletedOnboarding", "projects", "customApiKeyResponses"}
		for key, value := range object.Parse(old) {
			if !slices.Contains(ours, key) && string(value) != "null" && !sameJSON(value, o[key]) {
				t.Errorf("%q was %s, is %s", key, value, o[key])
			}
		}
		if twice := makeAnswers(r, From{Old: once, Sources: [][]byte{host}}); !bytes.Equal(once, twice.Content) {
			t.Errorf("again: %q became %q", once, twice.Content)
		}
	})
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// FuzzSettings holds settings.json to three laws: of the user's nothing enters
// but what is listed, what was changed inside stays, and the answer is there.
func FuzzSettings(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s), []byte(s))
	}
	listed := slices.Concat(settingsKept, []string{"permissions", "hooks", "statusLine", bypassAnswer})
	f.Fuzz(func(t *testing.T, old, host []byte) {
		made := makeSettings(Request{}, From{Old: old, Sources: [][]byte{host}})
		o, inside := object.Parse(made.Content), object.Parse(old)
		for key := range o {
			if !slices.Contains(listed, key) && inside[key] == nil {
				t.Errorf("%q is in %s", key, made.Content)
			}
		}
		for key, value := range inside {
			if key != bypassAnswer && object.Parse(host)[key] == nil && !same(o[key], value) {
				t.Errorf("%q was %s inside and is %s", key, value, o[key])
			}
		}
		if string(o[bypassAnswer]) != "true" {
			t.Errorf("no answer in %s", made.Content)
		}
		again := makeSettings(Request{}, From{Old: made.Content, Given: made.Given, Sources: [][]byte{host}})
		if !bytes.Equal(made.Content, again.Content) || len(again.Once) > 0 {
			t.Errorf("%s becomes %s, saying %q", made.Content, again.Content, again.Once)
		}
	})
}
