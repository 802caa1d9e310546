package swap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"claudebox/checks/kit/must"
	"claudebox/internal/secret/broker"
)

func scanned(text string, from func(io.Reader) io.Reader, secrets ...string) string {
	var list []known
	for _, s := range secrets {
		list = append(list, known{broker.Secret{Name: s, Value: s}, broker.NewKey()})
	}
	out, err := io.ReadAll(newScanner(&http.Response{Body: io.NopCloser(from(strings.NewReader(text)))}, newFinder(list, nil)))
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func whole(r io.Reader) io.Reader { return r }

// However an answer is cut, what comes out is as long, holds no secret, and is
// else the same.
func FuzzScan(f *testing.F) {
	f.Add("before ", "sk-ant-api03-abcdefgh", " behind", 3)
	f.Add("aaaaaaa", "aaaaaaab", "aaaaaa", 1)
	f.Add("", "abcabcabd", "abcabc", 0)
	f.Fuzz(func(t *testing.T, before, secret, behind string, n int) {
		const long = 300 // takes its time, byte by byte
		if len(secret) < broker.Shortest || len(before+secret+behind) > long || strings.Contains(before+behind, "*") || strings.Contains(secret, "*") {
			return
		}
		text := before + secret + behind + secret
		for name, from := range map[string]func(io.Reader) io.Reader{
			"whole": whole, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "with its end": iotest.DataErrReader,
		} {
			got := scanned(text, from, secret)
			if len(got) != len(text) || strings.Contains(got, secret) {
				t.Errorf("%s: %q became %q", name, text, got)
			}
		}
		if got := scanned(before, whole, secret); !strings.Contains(before, secret) && len(got) != len(before) {
			t.Errorf("%q became %q", before, got)
		}
	})
}

// each writes each sign of a text by a format of fmt, but for those that stand in but.
func each(format, but string) func(string) string {
	return func(text string) (out string) {
		for _, c := range text {
			if isSign(c) && !strings.ContainsRune(but, c) {
				out += fmt.Sprintf(format, c)
			} else {
				out += string(c)
			}
		}
		return out
	}
}

// A server writes a secret as its format wants it, and puts that into another format.
func TestASecretIsFoundInAnySpelling(t *testing.T) {
	const secret = `a/b+c=d&e<f>g"h\i~j k?lmnöp%q`
	unchanged := func(s string) string { return s }
	inJSON := func(s string) string {
		text, err := json.Marshal(s)
		must.Do(t, err)
		return string(text)
	}
	formats := map[string]func(string) string{
		"as it is": unchanged, "a query": url.QueryEscape, "a path": url.PathEscape, "small digits": each("%%%02x", "ö"),
		"a path of Python": each("%%%02X", "/~ö"), "only the plus": func(s string) string { return strings.ReplaceAll(s, "+", "%2B") },
		"HTML": html.EscapeString, "HTML of Handlebars": each("&#x%02X;", "~? %"), "HTML by number": each("&#%d;", " "),
		"HTML by name": strings.NewReplacer("+", "&plus;", "/", "&sol;", "=", "&equals;", "&", "&amp;", "ö", "&ouml;").Replace,
		"JSON":         inJSON, "JSON without HTML's signs": strconv.Quote, "JSON of .NET": each(`\u%04X`, " "), "JavaScript": each(`\u%04x`, "/"),
		"JSON of PHP": func(s string) string { return strings.ReplaceAll(inJSON(s), "/", `\/`) }, "C": each(`\x%02x`, "ö"), "a shell": each(`\%c`, "ö"),
	}
	for outer, wrap := range formats {
		for inner, spell := range formats {
			text := strings.Trim(wrap(strings.Trim(spell(secret), `"`)), `"`)
			got := scanned("before "+text+`" behind`, iotest.OneByteReader, secret)
			if inner+outer != "as it isas it is" && got != "before "+strings.Repeat("*", len(text))+`" behind` {
				t.Errorf("%s in %s: %q became %q", inner, outer, text, got)
			}
		}
	}
	for name, text := range map[string]string{
		"hex": fmt.Sprintf("%x", secret), "capital hex": fmt.Sprintf("%X", secret),
		"base64": base64.StdEncoding.EncodeToString([]byte("u:" + secret)), "base64 of addresses": base64.URLEncoding.EncodeToString([]byte("u:" + secret)),
	} {
		got := scanned("before "+text+" behind", whole, secret)
		if strings.Count(got, "*") < len(text)-8 || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	random := make([]byte, 1<<19)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	f := newFinder([]known{{broker.Secret{Name: "x", Value: trueAccess}, broker.NewKey()}}, nil)
	for name, text := range map[string][]byte{
		"events":  bytes.Repeat([]byte(`data: {"type":"content_block_delta","text":"sk-ant is no token, c2st neither"}`+"\n\n"), 1<<13),
		"escapes": bytes.Repeat([]byte(`data: {"type":"content_block_delta","text":"\tif err != nil {\n\t\treturn \"\"\n\t}\n"}`+"\n\n"), 1<<13),
		"packed":  random,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = io.Copy(io.Discard, newScanner(&http.Response{Body: io.NopCloser(bytes.NewReader(text))}, f))
			}
		})
	}
}
