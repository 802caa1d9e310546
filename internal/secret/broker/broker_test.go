package broker

import (
	"strings"
	"testing"
)

func TestPlaceholdersAreKnownAgainAndSayNothing(t *testing.T) {
	key := NewKey()
	for _, value := range []string{"sk-ant-oat01-CANARYaccessCANARYaccessCANARYaccessCANARY", "ghp_CANARYgithubCANARYgithubCANARYgithub", "CANARYfoo-token", "short", ""} {
		p := key.Placeholder("A", value)
		if !key.Is("A", p) || !key.In("A", "x"+p+"y") || key.Is("B", p) || key.In("B", p) || NewKey().Is("A", p) {
			t.Errorf("%q of %q is not known, or is known as another's", p, value)
		}
		if last := key.Lasting("A", value); last != key.Lasting("A", value) || last == p || !key.Is("A", last) || last == key.Lasting("A", value+"x") {
			t.Errorf("%q does not last", last)
		}
		if len(value) > 40 && len(p) != len(value) || key.Placeholder("A", value) == p {
			t.Errorf("%q for %q", p, value)
		}
		if value != "" && shape(p) == shape(value) && strings.Contains(p, strings.TrimPrefix(value, shape(value))) {
			t.Errorf("%q holds %q", p, value)
		}
		for _, other := range []string{p[1:], p[:len(p)-1], p + "a", "x-" + p, strings.ToUpper(p), p + p} {
			if key.Is("A", other) {
				t.Errorf("%q is taken for a placeholder", other)
			}
		}
	}
}

func TestHostsAreNamesInOneForm(t *testing.T) {
	for text, want := range map[string]string{
		"api.github.com": "api.github.com", "foo.example:8443": "foo.example:8443", "foo.example:443": "foo.example", "localhost": "localhost",
		"API.github.com": "", "api.github.com.": "", "": "", "a..b": "", "1.2.3.4": "", "*.example": "", "a b": "", "a:0": "", "a:65536": "", "a:+1": "",
		"ä.example": "", "[::1]": "", "a/b": "", "-a.example": "", strings.Repeat("a.", 130) + "example": "",
	} {
		got, err := ParseTarget(text)
		if want == "" != (err != nil) || err == nil && got.String() != want {
			t.Errorf("%q is %v, %v; want %q", text, got, err, want)
		}
	}
}
