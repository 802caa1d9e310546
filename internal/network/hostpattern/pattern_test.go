package hostpattern

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

func TestCanonical(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
		fault      error
	}{
		"a name":                               {"api.example.com", "api.example.com", nil},
		"upper case":                           {"API.Example.COM", "api.example.com", nil},
		"a dot at the end":                     {"example.com.", "example.com", nil},
		"two dots at the end":                  {"example.com..", "", ErrLabel},
		"an international name, in ASCII":      {"XN--BCHER-KVA.example", "xn--bcher-kva.example", nil},
		"an international name":                {"bücher.example", "", ErrLabel},
		"a letter that folds into ASCII":       {"\u212Aernel.example", "", ErrLabel},
		"a full stop of another script":        {"evil\u3002example", "", ErrLabel},
		"an underscore":                        {"a_b.example", "a_b.example", nil},
		"nothing":                              {"", "", ErrEmpty},
		"a dot":                                {".", "", ErrEmpty},
		"a dot in front":                       {".example.com", "", ErrLabel},
		"a NUL byte that ends the name early":  {"evil.example\x00.example.com", "", ErrLabel},
		"userinfo":                             {"example.com@evil.example", "", ErrLabel},
		"a line break":                         {"example.com\r\nHost: evil.example", "", ErrLabel},
		"a percent sign":                       {"example%2ecom", "", ErrLabel},
		"a path":                               {"example.com/evil", "", ErrLabel},
		"a wildcard":                           {"*.example.com", "", ErrLabel},
		"a hyphen in front":                    {"-x.example.com", "", ErrLabel},
		"a label too long":                     {strings.Repeat("a", 64) + ".example", "", ErrLabel},
		"a name too long":                      {strings.Repeat("a.", 127) + "example", "", ErrLong},
		"an address":                           {"192.0.2.1", "", ErrAddress},
		"an address with a dot at the end":     {"127.0.0.1.", "", ErrAddress},
		"an address as one number":             {"2130706433", "", ErrAddress},
		"an address in hexadecimal":            {"0x7f000001", "", ErrAddress},
		"an address in hexadecimal parts":      {"0x7f.0x0.0x0.0x1", "", ErrAddress},
		"an address in octal":                  {"0177.0.0.01", "", ErrAddress},
		"an address with two parts":            {"127.1", "", ErrAddress},
		"zero":                                 {"0", "", ErrAddress},
		"an IPv6 address":                      {"::1", "", ErrAddress},
		"an IPv6 address in brackets":          {"[::1]", "", ErrAddress},
		"an IPv4-mapped address":               {"::ffff:127.0.0.1", "", ErrAddress},
		"a name with the look of an address":   {"1.0.0.127.in-addr.arpa", "1.0.0.127.in-addr.arpa", nil},
		"an address as labels of another name": {"127.0.0.1.nip.example", "127.0.0.1.nip.example", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Canonical(tc.text)
			if got != tc.want || !errors.Is(err, tc.fault) {
				t.Errorf("Canonical(%q) = %q, %v; want %q, %v", tc.text, got, err, tc.want, tc.fault)
			}
		})
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add("Example.COM.")
	f.Add("a\x00.b")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := Canonical(text)
		if err != nil {
			return
		}
		again, err := Canonical(name)
		if err != nil || again != name || !strings.EqualFold(strings.TrimSuffix(text, "."), name) {
			t.Errorf("%q becomes %q, which becomes %q, %v", text, name, again, err)
		}
	})
}

func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		name, pattern, host string
		port                int
		want                bool
	}{
		{"a host at the port of HTTPS", "example.com", "example.com", 443, true},
		{"a host at the port of HTTP", "example.com", "example.com", 80, true},
		{"a host at another port", "example.com", "example.com", 22, false},
		{"no port at all", "example.com", "example.com", 0, false},
		{"a port that is said", "example.com:22", "example.com", 22, true},
		{"a port that is said is the only one", "example.com:22", "example.com", 443, false},
		{"upper case in the pattern", "Example.COM", "example.com", 443, true},
		{"another host", "example.com", "example.org", 443, false},
		{"a name below", "example.com", "api.example.com", 443, false},
		{"a name that ends alike", "example.com", "notexample.com", 443, false},
		{"a name that begins alike", "example.com", "example.com.evil.example", 443, false},
		{"a wildcard covers a name below", "*.example.com", "api.example.com", 443, true},
		{"a wildcard covers two labels", "*.example.com", "a.b.example.com", 443, true},
		{"a wildcard does not cover the domain", "*.example.com", "example.com", 443, false},
		{"a wildcard does not cover what ends alike", "*.example.com", "notexample.com", 443, false},
		{"a wildcard needs a label", "*.example.com", ".example.com", 443, false},
		{"a wildcard with a port", "*.example.com:8443", "a.example.com", 8443, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Parse(tc.pattern)
			must.Do(t, err)
			if got := p.Matches(tc.host, tc.port); got != tc.want {
				t.Errorf("%s matches %s:%d: %v", p, tc.host, tc.port, got)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "*", "*.", "*.com", "*com", "a.*.com", "example.com:", "example.com:0", "example.com:65536", "example.com:+443", "example.com:0443",
		"example.com:443:80", "https://example.com", "example.com/x", "127.0.0.1", "*.0.0.1", "[::1]", "user@example.com", "a b.example",
	} {
		if p, err := Parse(text); err == nil {
			t.Errorf("%q was taken for %s", text, p)
		}
	}
}

func TestPresetsAreSortedAndParse(t *testing.T) {
	for i, p := range Presets {
		if i > 0 && p.Name <= Presets[i-1].Name {
			t.Errorf("%s stands behind %s", p.Name, Presets[i-1].Name)
		}
		if p.Source == "" {
			t.Errorf("%s has no source", p.Name)
		}
		list, err := ParseList([]string{p.Name})
		if err != nil || len(list) != len(p.Hosts) {
			t.Errorf("%s: %v, %v", p.Name, list, err)
		}
	}
}

func TestExpandSortsAndKeepsEachOnce(t *testing.T) {
	got := Expand([]string{"zoo.example", "pypi", "pypi.org", "example.com:22"})
	if want := []string{"example.com:22", "files.pythonhosted.org", "pypi.org", "zoo.example"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
