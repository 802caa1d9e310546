package agenthome

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
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
		once, _, err := makeAnswers(r, old, [][]byte{host})
		if err != nil {
			t.Fatal(err)
		}
		o := parseObject(once)
		trusted := parseObject(parseObject(o["projects"])["/p"])
		if string(o["hasCompletedOnboarding"]) != "true" || string(trusted["hasTrustDialogAccepted"]) != "true" {
			t.Errorf("%q became %q", old, once)
		}
		ours := []string{"hasCompletedOnboarding", "projects", "customApiKeyResponses"}
		for key, value := range parseObject(old) {
			if !slices.Contains(ours, key) && string(value) != "null" && !sameJSON(value, o[key]) {
				t.Errorf("%q was %s, is %s", key, value, o[key])
			}
		}
		if twice, _, _ := makeAnswers(r, once, [][]byte{host}); !bytes.Equal(once, twice) {
			t.Errorf("again: %q became %q", once, twice)
		}
	})
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// FuzzSettings holds settings.json to its allow-list, whatever either side
// wrote.
func FuzzSettings(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, old, host []byte) {
		content, _, err := makeSettings(Request{}, old, [][]byte{host})
		if err != nil {
			t.Fatal(err)
		}
		o := parseObject(content)
		for key := range o {
			if !slices.Contains(settingsKept, key) && key != "permissions" && key != bypassAnswer {
				t.Errorf("%q is in %s", key, content)
			}
		}
		for key := range parseObject(o["permissions"]) {
			if !slices.Contains(permissionsKept, key) {
				t.Errorf("permissions hold %q", key)
			}
		}
		if string(o[bypassAnswer]) != "true" {
			t.Errorf("no answer in %s", content)
		}
	})
}
