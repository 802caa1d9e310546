package broker

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func scanned(text string, from func(io.Reader) io.Reader, secrets ...string) string {
	var list []known
	for _, s := range secrets {
		list = append(list, known{Secret{Name: s, Value: s}, NewKey()})
	}
	out, err := io.ReadAll(&scanner{from: io.NopCloser(from(strings.NewReader(text))), needles: needlesOf(list, nil)})
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
		if len(secret) < shortest || len(before+secret+behind) > long || strings.Contains(before+behind, "*") || strings.Contains(secret, "*") {
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

// What has come is given at once, but for what may be a secret's beginning.
func TestNothingWaitsThatIsNoBeginningOfASecret(t *testing.T) {
	from, to := io.Pipe()
	s := &scanner{from: from, needles: needlesOf([]known{{Secret{Name: "x", Value: trueGitHub}, NewKey()}}, nil)}
	buffer := make([]byte, 1<<10)
	for _, part := range []struct{ sent, want string }{
		{"data: one\n\n", "data: one\n\n"},
		{"a ghp_CANARY", "a "},
		{"other\n\n", "ghp_CANARYother\n\n"},
		// What ends as a secret begins, by chance, has nothing behind it to wait for.
		{"a frame of a websocket, g", "a frame of a websocket, g"},
		{"h", "h"},
		{"o", "o"},
	} {
		go io.WriteString(to, part.sent) //nolint:errcheck // the pipe is closed by nobody
		n, err := s.Read(buffer)
		if got := string(buffer[:n]); err != nil || got != part.want {
			t.Errorf("%q gives %q, %v; want %q", part.sent, got, err, part.want)
		}
	}
}

func TestPlaceholdersAreKnownAgainAndSayNothing(t *testing.T) {
	key := NewKey()
	for _, value := range []string{trueAccess, trueGitHub, trueFoo, "short", ""} {
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

func BenchmarkScan(b *testing.B) {
	text := bytes.Repeat([]byte(`data: {"type":"content_block_delta","text":"sk-ant is no token, c2st neither"}`+"\n\n"), 1<<13)
	needles := needlesOf([]known{{Secret{Name: "x", Value: trueAccess}, NewKey()}}, nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, _ = io.Copy(io.Discard, &scanner{from: io.NopCloser(bytes.NewReader(text)), needles: needles})
	}
}
