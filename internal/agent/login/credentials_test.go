package login

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

const whole = `{"mcpOAuth":{"x":{"token":"mcp"}},"claudeAiOauth":{"accessToken":"a1","refreshToken":"r1","expiresAt":1700000000000,` +
	`"scopes":["user:inference"],"subscriptionType":"max","rateLimitTier":null,"later":{"n":12345678901234567890}},"other":[1]}`

func TestParseRefusesWhatIsNoLogin(t *testing.T) {
	long := strings.Repeat("a", maxToken+1)
	for name, tc := range map[string]struct {
		content string
		want    error
		found   bool
	}{
		"what Claude Code writes":   {content: whole, found: true},
		"one that ended":            {content: `{"claudeAiOauth":{"accessToken":"","refreshToken":"","expiresAt":0}}`, found: true},
		"dates that are null":       {content: `{"claudeAiOauth":{"accessToken":"a","refreshToken":null,"expiresAt":null}}`, found: true},
		"no login":                  {content: `{"mcpOAuth":{}}`},
		"no login any more":         {content: `{"claudeAiOauth":null}`},
		"nothing":                   {content: ``, want: errNotJSON},
		"a truncated file":          {content: whole[:60], want: errNotJSON},
		"two values":                {content: whole + whole, want: errNotJSON},
		"another shape":             {content: `[]`, want: errNotJSON},
		"null":                      {content: `null`, want: errNotJSON},
		"a login of another shape":  {content: `{"claudeAiOauth":[1]}`, want: errNotLogin},
		"a token of another shape":  {content: `{"claudeAiOauth":{"accessToken":7}}`, want: errNotLogin},
		"a token with a line break": {content: `{"claudeAiOauth":{"accessToken":"a\nb"}}`, want: errNotLogin},
		"a token that ends a line":  {content: `{"claudeAiOauth":{"accessToken":"a","refreshToken":"b\u001b[2J"}}`, want: errNotLogin},
		"a token without end":       {content: `{"claudeAiOauth":{"accessToken":"` + long + `"}}`, want: errNotLogin},
		"a date that is a text":     {content: `{"claudeAiOauth":{"accessToken":"a","expiresAt":"now"}}`, want: errNotLogin},
		"a date before time":        {content: `{"claudeAiOauth":{"accessToken":"a","expiresAt":-1}}`, want: errNotLogin},
		"a date past all days":      {content: `{"claudeAiOauth":{"accessToken":"a","expiresAt":1e300}}`, want: errNotLogin},
		"an account without end":    {content: `{"claudeAiOauth":{"accessToken":"a","accountUuid":"` + long + `"}}`, want: errNotLogin},
		"keys in another case":      {content: `{"claudeAiOauth":{"AccessToken":"A","accessToken":"a"}}`, found: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, found, err := parse([]byte(tc.content))
			if err != tc.want || found != tc.found {
				t.Errorf("got %+v, %v, %v; want %v, %v", l, found, err, tc.found, tc.want)
			}
			if l.access == "A" {
				t.Error("another key was taken for the token")
			}
		})
	}
}

func TestRenewChangesTheTokensAlone(t *testing.T) {
	now := time.UnixMilli(1700000000000)
	got, err := renewed([]byte(whole), login{access: "a2", refresh: "r2", expires: now.UnixMilli() + 5}, now)
	want := strings.NewReplacer(`"a1"`, `"a2"`, `"r1"`, `"r2"`, `1700000000000`, `1700000000005`).Replace(whole)
	if err != nil || !sameJSON(t, got, []byte(want)) {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	if !bytes.Contains(got, []byte("12345678901234567890")) {
		t.Errorf("a number lost its digits: %s", got)
	}
}

func TestRenewBoundsTheDatesOfAnAgent(t *testing.T) {
	now := time.UnixMilli(1700000000000)
	got, err := renewed([]byte(whole), login{access: "a2", refresh: "r2", expires: maxDate, ends: maxDate}, now)
	must.Do(t, err)
	l, _, err := parse(got)
	if err != nil || l.expires != now.Add(48*time.Hour).UnixMilli() || l.ends != now.Add(400*24*time.Hour).UnixMilli() {
		t.Errorf("got %d, %d, %v", l.expires, l.ends, err)
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	normal := func(text []byte) string {
		var value any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		out, _ := json.Marshal(value)
		return string(out)
	}
	return normal(a) == normal(b)
}

// FuzzTake holds what an agent may write to two laws: the user's file keeps
// all but four values, and these are of a known shape.
func FuzzTake(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"claudeAiOauth":{"accessToken":"a","refreshToken":"b","expiresAt":9e13,"scopes":[],"__proto__":{}}}`))
	now := time.UnixMilli(1700000000000)
	f.Fuzz(func(t *testing.T, inside []byte) {
		l, found, err := parse(inside)
		if err != nil || !found {
			return
		}
		got, err := renewed([]byte(whole), l, now)
		must.Do(t, err)
		back, found, err := parse(got)
		if err != nil || !found || back.access != l.access || back.refresh != l.refresh || back.expires > now.Add(maxExpires).UnixMilli() {
			t.Errorf("%q became %+v, %v", inside, back, err)
		}
		restored, err := renewed(got, login{access: "a1", refresh: "r1", expires: 1700000000000}, now)
		must.Do(t, err)
		if l.ends == 0 && !sameJSON(t, restored, []byte(whole)) {
			t.Errorf("%q changed more: %s", inside, got)
		}
	})
}
