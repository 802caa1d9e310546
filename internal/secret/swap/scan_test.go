package swap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"claudebox/internal/secret/broker"
)

func scanned(text string, from func(io.Reader) io.Reader, secrets ...string) string {
	var list []known
	for _, s := range secrets {
		list = append(list, known{broker.Secret{Name: s, Value: s}, broker.NewKey()})
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

// piecesOf returns what a reader gives for each part that a server sends, with nothing sent behind it.
func piecesOf(t *testing.T, inTurns bool, parts ...string) (pieces []string) {
	t.Helper()
	secret := known{broker.Secret{Name: "x", Value: trueGitHub}, broker.NewKey()}
	from := &turns{parts: parts}
	s := &scanner{from: io.NopCloser(from), needles: needlesOf([]known{secret}, nil), inTurns: inTurns}
	for range parts {
		s.fill()
		pieces = append(pieces, string(s.ready))
	}
	return pieces
}

// turns gives one part for each call of Read.
type turns struct{ parts []string }

func (r *turns) Read(p []byte) (int, error) {
	n := copy(p, r.parts[0])
	r.parts = r.parts[1:]
	return n, nil
}

// What has come is given at once, but for a last word, which may be a secret's beginning.
func TestNothingWaitsThatIsNoBeginningOfASecret(t *testing.T) {
	got := piecesOf(t, false, "data: one\n\n", "a ghp_CANARY", "other\n\n", `{"a":"b"}`, "a word")
	if want := []string{"data: one\n\n", "a ", "ghp_CANARYother\n\n", `{"a":"b"}`, "a "}; !slices.Equal(got, want) {
		t.Errorf("an answer gives %q; want %q", got, want)
	}
	// A server that talks in turns may wait for an answer to the end of its message.
	got = piecesOf(t, true, "a frame of a websocket, g", "h", "p_CANAR", "\n")
	if want := []string{"a frame of a websocket, g", "h", "p_CANAR", "\n"}; !slices.Equal(got, want) {
		t.Errorf("a websocket gives %q; want %q", got, want)
	}
}

// Who has a server end its pieces in guesses of a secret's next character sees no difference.
func TestAnAnswerIsNoOracleForASecretsBeginning(t *testing.T) {
	for _, inTurns := range []bool{false, true} {
		most := len(trueGitHub)
		if inTurns { // who has half of the secret already can guess on
			most = len("ghp_") + 16
		}
		for n := range most {
			right, wrong := trueGitHub[:n]+trueGitHub[n:n+1], trueGitHub[:n]+other(trueGitHub[n])
			if n+1 == len(trueGitHub) {
				break // a secret that is guessed whole
			}
			a, b := piecesOf(t, inTurns, "x "+right, " y"), piecesOf(t, inTurns, "x "+wrong, " y")
			for i := range a {
				if len(a[i]) != len(b[i]) {
					t.Errorf("in turns: %t: after %d characters a right guess gives %q, a wrong one %q", inTurns, n, a, b)
				}
			}
		}
	}
}

// other returns another letter.
func other(c byte) string {
	if c == 'q' {
		return "r"
	}
	return "q"
}

// Of a secret that comes with a pause within, the rest is replaced.
func TestASecretInTwoPiecesOfAWebsocketIsReplacedFromThePauseOn(t *testing.T) {
	got := strings.Join(piecesOf(t, true, "a "+trueGitHub[:15], trueGitHub[15:30], trueGitHub[30:]+" b"), "")
	if strings.Contains(got, trueGitHub[15:]) || !strings.HasPrefix(got, "a "+trueGitHub[:15]) || !strings.HasSuffix(got, " b") {
		t.Errorf("%q", got)
	}
	if strings.Contains(got, trueGitHub[15:30]) || strings.Contains(got, trueGitHub[30:]) {
		t.Errorf("%q", got)
	}
}

// A server writes a secret as its format wants it.
func TestASecretIsFoundInAnySpelling(t *testing.T) {
	const secret = `a/b+c=d&e<f>g"h\i~j k?lmnop`
	inJSON, err := json.Marshal(secret)
	must(t, err)
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
	needles := needlesOf([]known{{broker.Secret{Name: "x", Value: trueAccess}, broker.NewKey()}}, nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, _ = io.Copy(io.Discard, &scanner{from: io.NopCloser(bytes.NewReader(text)), needles: needles})
	}
}
