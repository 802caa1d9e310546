package upstream_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/network/upstream"
)

func TestParseTakesAHostAndAPortAndNoPassword(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"http://proxy.corp:3128":       "proxy.corp:3128",
		"http://proxy.corp:3128/":      "proxy.corp:3128",
		"socks5://[::1]:1080":          "[::1]:1080",
		"http://user:pw@proxy.corp:80": "!",
		"user:pw@proxy.corp:3128":      "!",
		"//user:pw@proxy.corp:3128":    "!",
		"user:pw@proxy.corp:31 28":     "!",
		"https://proxy.corp:443":       "!",
		"http://proxy.corp":            "!",
		"http://:3128":                 "!",
		"http://proxy.corp:0":          "!",
		"http://proxy.corp:3128/x":     "!",
		"http://a b:1":                 "!",
		"http://a\u202eb.corp:3128":    "!",
		"proxy.corp:3128":              "!",
	} {
		p, err := upstream.Parse(text)
		if got := p.Address; err != nil && want != "!" || err == nil && got != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", text, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("Parse(%q) shows the password: %v", text, err)
		}
	}
}

// wire is a proxy that says the same whatever it is told.
type wire struct {
	io.Reader
	bytes.Buffer
}

func (w *wire) Read(b []byte) (int, error) { return w.Reader.Read(b) }

func TestConnectReadsTheAnswerAndNotAByteMore(t *testing.T) {
	const rest = "SSH-2.0-x"
	for name, tc := range map[string]struct {
		proxy, says, hears string
		want               error // nil: connected; errRefusal: any refusal
	}{
		"HTTP":                    {"http://p:1", "HTTP/1.1 200 Connection established\r\nA: b\r\n\r\n", "CONNECT h.test:22 HTTP/1.1\r\nHost: h.test:22\r\n\r\n", nil},
		"HTTP, forbidden":         {"http://p:1", "HTTP/1.0 403 Forbidden\r\n\r\n", "", errRefusal},
		"HTTP, a password wanted": {"http://p:1", "HTTP/1.1 407 x\r\n\r\n", "", errRefusal},
		"HTTP, not reached":       {"http://p:1", "HTTP/1.1 502 x\r\n\r\n", "", syscall.EHOSTUNREACH},
		"no HTTP":                 {"http://p:1", "220 mail.corp ESMTP\r\n\r\n", "", errRefusal},
		"an endless head":         {"http://p:1", strings.Repeat("x", 1<<15), "", errRefusal},
		"an answer that breaks":   {"http://p:1", "HTTP/1.1 200", "", io.EOF},
		"SOCKS":                   {"socks5://p:1", "\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01\x12\x34", "\x05\x01\x00\x05\x01\x00\x03\x06h.test\x00\x16", nil},
		"SOCKS with a name":       {"socks5://p:1", "\x05\x00\x05\x00\x00\x03\x02ab\x12\x34", "", nil},
		"SOCKS with IPv6":         {"socks5://p:1", "\x05\x00\x05\x00\x00\x04" + strings.Repeat("x", 16) + "\x12\x34", "", nil},
		"SOCKS, a password":       {"socks5://p:1", "\x05\x02", "", errRefusal},
		"SOCKS, nobody listens":   {"socks5://p:1", "\x05\x00\x05\x05\x00\x01", "", syscall.ECONNREFUSED},
		"SOCKS, not reached":      {"socks5://p:1", "\x05\x00\x05\x04\x00\x01", "", syscall.EHOSTUNREACH},
		"SOCKS, not allowed":      {"socks5://p:1", "\x05\x00\x05\x02\x00\x01", "", errRefusal},
		"SOCKS, another version":  {"socks5://p:1", "\x05\x00\x04\x00\x00\x01\x7f\x00\x00\x01\x12\x34", "", errRefusal},
		"SOCKS, another address":  {"socks5://p:1", "\x05\x00\x05\x00\x00\x09", "", errRefusal},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := upstream.Parse(tc.proxy)
			must.Do(t, err)
			said := strings.NewReader(tc.says + rest)
			if tc.want != nil {
				said = strings.NewReader(tc.says)
			}
			w := &wire{Reader: said}
			err = p.Connect(w, "h.test", 22)
			var no *upstream.Refused
			if !errors.Is(err, tc.want) && (tc.want != errRefusal || !errors.As(err, &no)) {
				t.Errorf("got %v; want %v", err, tc.want)
			}
			if left, _ := io.ReadAll(said); tc.want == nil && string(left) != rest {
				t.Errorf("left for the host's reader: %q; want %q", left, rest)
			}
			if tc.hears != "" && w.String() != tc.hears {
				t.Errorf("the proxy was told %q; want %q", w.String(), tc.hears)
			}
		})
	}
}

var errRefusal = errors.New("any refusal")
