package swap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
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

// A server writes a secret as its format wants it.
func TestASecretIsFoundInAnySpelling(t *testing.T) {
	const secret = `a/b+c=d&e<f>g"h\i~j k?lmnop`
	inJSON, err := json.Marshal(secret)
	must.Do(t, err)
	for name, text := range map[string]string{
		"a query": url.QueryEscape(secret), "a path": url.PathEscape(secret), "percents": strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"),
		"HTML": html.EscapeString(secret), "JSON": string(inJSON), "JSON without HTML's signs": strconv.Quote(secret),
		"escaped slashes": strings.ReplaceAll(secret, "/", `\/`), "hex": fmt.Sprintf("%x", secret), "capital hex": fmt.Sprintf("%X", secret),
		"base64": base64.StdEncoding.EncodeToString([]byte("u:" + secret)), "base64 of addresses": base64.URLEncoding.EncodeToString([]byte("u:" + secret)),
	} {
		text = strings.Trim(text, `"`)
		got := scanned("before "+text+" behind", whole, secret)
		if strings.Count(got, "*") < len(text)-8 || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	text := bytes.Repeat([]byte(`data: {"type":"content_block_delta","text":"sk-ant is no token, c2st neither"}`+"\n\n"), 1<<13)
	f := newFinder([]known{{broker.Secret{Name: "x", Value: trueAccess}, broker.NewKey()}}, nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, _ = io.Copy(io.Discard, newScanner(&http.Response{Body: io.NopCloser(bytes.NewReader(text))}, f))
	}
}
