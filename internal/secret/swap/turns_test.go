package swap

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/secret/broker"
)

// A server and a client that talk in turns, as gRPC's do: each waits for the whole of the other's message, whatever it
// ends in.
func TestGRPCInTurnsDoesNotHang(t *testing.T) {
	w := newWorld(t)
	w.upstream.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/grpc")
		_ = http.NewResponseController(out).Flush()
		for i := 0; ; i++ {
			if text := message(r.Body); text != fmt.Sprint("question ", i) {
				return
			}
			_, _ = io.WriteString(out, packed(fmt.Sprint(r.Header.Get("Authorization"), " answer ", i, " ghp_CANARY")))
			_ = http.NewResponseController(out).Flush()
		}
	})
	body, questions := io.Pipe()
	r, err := http.NewRequest("POST", "https://foo.example:8443/pkg.Service/Call", body)
	must.Do(t, err)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("X-Foo-Token", w.placeholder("FOO"))
	in, err := w.client("h2").Do(r)
	must.Do(t, err)
	defer in.Body.Close()
	defer questions.Close()
	for i := range 5 {
		_, err := io.WriteString(questions, packed(fmt.Sprint("question ", i)))
		must.Do(t, err)
		if text := message(in.Body); !strings.HasSuffix(text, fmt.Sprint("answer ", i, " ghp_CANARY")) {
			t.Fatalf("%q", text)
		}
	}
}

func packed(text string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text)))) + text
}

// message reads one message of gRPC; empty: there is none.
func message(from io.Reader) string {
	head := make([]byte, messageHead)
	if _, err := io.ReadFull(from, head); err != nil {
		return ""
	}
	text := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, _ = io.ReadFull(from, text)
	return string(text)
}

// What has come is given at once, but for the line that has not ended, of which a secret may begin.
func TestNothingWaitsThatIsNoBeginningOfASecret(t *testing.T) {
	long := strings.Repeat("long ", 100)
	for _, tc := range []struct {
		kind       string
		parts, out []string
	}{
		{"", []string{"data: one\n\n", "a ghp_CANARY", "other\n\n", `{"a":"b"}`}, []string{"data: one\n\n", "a ghp_CANARYother\n\n", `{"a":"b"}`}},
		{"", []string{long, "end"}, []string{long[:len(long)-longestEscape*40+1], long[len(long)-longestEscape*40+1:][:3], long[len(long)-longestEscape*40+4:] + "end"}},
		{"application/grpc", []string{"\x00\x00\x00", "\x00\x03ab", "c\x00", "\x00\x00\x00\x01d"}, []string{"\x00\x00\x00", "\x00\x03", "abc\x00", "\x00\x00\x00\x01d"}},
	} {
		log, _ := logOf(t, trueGitHub, answerKind{header: http.Header{"Content-Type": {tc.kind}}}, tc.parts)
		var out []string
		for _, line := range log {
			if text, is := strings.CutPrefix(line, "out "); is {
				out = append(out, text)
			}
		}
		if fmt.Sprintf("%q", out) != fmt.Sprintf("%q", tc.out) {
			t.Errorf("%q gives\n%q; want\n%q", tc.parts, out, tc.out)
		}
	}
}

// What could not be searched ends the connection, and is told to both.
func TestAWebsocketThatCannotBeSearchedIsEnded(t *testing.T) {
	big := string(binary.BigEndian.AppendUint64([]byte{0x82, 127}, mostMessage+1))
	piece := string(binary.BigEndian.AppendUint64([]byte{0x02, 127}, mostMessage)) + strings.Repeat("x", mostMessage)
	for name, tc := range map[string]struct{ sent, told string }{
		"compressed":               {frame(0xc1, "packed"), "could not be searched"},
		"masked":                   {"\x81\x81abcdx", "could not be searched"},
		"of an unknown kind":       {frame(0x83, "x"), "could not be searched"},
		"a second beginning":       {frame(0x01, "x") + frame(0x81, "y"), "could not be searched"},
		"an end without beginning": {frame(0x80, "x"), "could not be searched"},
		"a ping in pieces":         {frame(0x09, "x"), "could not be searched"},
		"a long ping":              {frame(0x89, strings.Repeat("x", 126)), "could not be searched"},
		"no websocket":             {"HTTP/1.1 200 OK\r\n\r\n", "could not be searched"},
		"a long message":           {big, "more than 4 MiB"},
		"a long message in pieces": {piece + frame(0x80, "x"), "more than 4 MiB"},
	} {
		log, out := logOf(t, trueGitHub, answerKind{status: http.StatusSwitchingProtocols}, []string{tc.sent})
		if len(out) < 4 || out[0] != 0x80|closingFrame || !strings.Contains(out, tc.told) || log[len(log)-1] != errEnded.Error() {
			t.Errorf("%s: %q", name, out)
		}
	}
}

// Messages that never end cannot fill the memory, and leave no room taken when their connections have ended.
func TestUnfinishedMessagesOfAllWebsocketsAreBounded(t *testing.T) {
	var kept atomic.Int64
	f := newFinder([]known{{broker.Secret{Name: "x", Value: trueGitHub}, broker.NewKey()}}, nil)
	var told []string
	open := func(size int) *websocket {
		sent := string(binary.BigEndian.AppendUint64([]byte{0x02, 127}, uint64(size))) + strings.Repeat("x", size)
		return newWebsocket(&stepper{parts: []string{sent}, log: new([]string)}, f, &kept, func(why string) { told = append(told, why) })
	}
	var all []*websocket
	for range mostMessages / mostMessage {
		w := open(mostMessage)
		w.frame()
		all = append(all, w)
	}
	if kept.Load() != mostMessages || len(told) > 0 {
		t.Errorf("kept %d, told %q", kept.Load(), told)
	}
	more := open(1)
	if text, err := io.ReadAll(more); err != errEnded || !strings.Contains(string(text), "32 MiB") || len(told) != 1 {
		t.Errorf("one more: %q, %v, told %q", text, err, told)
	}
	for _, w := range all {
		w.Close()
		w.Close()
	}
	if more.Close(); kept.Load() != 0 {
		t.Errorf("%d bytes are still counted", kept.Load())
	}
}

// Over real connections, too: a piece comes in before the server sends the next, as far as it is passed on at all, for
// the true secret and for any other.
func TestPiecesComeInTurnsOverTheWire(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2", "websocket"} {
		for range 4 {
			k := answerKinds["an answer"]
			if protocol == "websocket" {
				k = answerKinds["websocket"]
			}
			parts := cut(k.pack(guesses(trueGitHub) + trueGitHub + guesses(trueGitHub)))
			log, _ := logOf(t, trueGitHub, k, parts)
			for _, secret := range []string{trueGitHub, secretOf("ghp_*36")} {
				if got, want := overTheWire(t, secret, protocol, parts, log), lengthOut(log); got != want {
					t.Errorf("%s: %d bytes of %q came; want %d", protocol, got, parts, want)
				}
			}
		}
	}
}

func lengthOut(log []string) (n int) {
	for _, line := range log {
		if text, is := strings.CutPrefix(line, "out "); is {
			n += len(text)
		}
	}
	return n
}

// overTheWire has a server send parts, each when all that log says of the one before has come in, and returns how
// much came.
func overTheWire(t *testing.T, secret, protocol string, parts, log []string) (n int) {
	t.Helper()
	w := newWorld(t, func(c *broker.Config) { c.Secrets[0].Value = secret })
	turn, ended := make(chan struct{}), make(chan struct{})
	defer close(ended)
	w.upstream.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		var to io.Writer = out
		if protocol == "websocket" {
			c, _, err := http.NewResponseController(out).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			to = c
		} else {
			_, _ = io.WriteString(out, "\n") // so that the head is sent
			_ = http.NewResponseController(out).Flush()
		}
		for _, part := range parts {
			select {
			case <-turn:
			case <-ended:
				return
			}
			_, _ = io.WriteString(to, part)
			if protocol != "websocket" {
				_ = http.NewResponseController(out).Flush()
			}
		}
		select {
		case <-turn:
		case <-ended:
		}
	})
	var from io.Reader
	if protocol == "websocket" {
		_, from = w.socketTo("/")
	} else {
		r, err := http.NewRequest("GET", hub+"/", nil)
		must.Do(t, err)
		r.Header.Set("Authorization", "Bearer "+w.placeholder("GH_TOKEN"))
		in, err := w.client(protocol).Do(r)
		must.Do(t, err)
		defer in.Body.Close()
		from = in.Body
		_, err = io.CopyN(io.Discard, from, 1)
		must.Do(t, err)
	}
	for _, line := range log {
		if text, is := strings.CutPrefix(line, "out "); is {
			came, err := io.CopyN(io.Discard, from, int64(len(text)))
			must.Do(t, err)
			n += int(came)
		} else if line == "end" {
			close(turn)
			break
		} else {
			turn <- struct{}{}
		}
	}
	came, _ := io.Copy(io.Discard, from)
	return n + int(came)
}
