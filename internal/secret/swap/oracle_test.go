package swap

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/secret/broker"
)

// shapes are the kinds of secrets that people have. A star stands for letters and digits, as many as follow it.
var shapes = []string{
	"ghp_*36", "github_pat_*22_*59", "sk-ant-api03-*93AA", "sk-ant-oat01-*40_*40-*13", "sk-proj-*20T3BlbkFJ*20", "glpat-*20", "npm_*36",
	"hf_*34", "AIza*35", "xoxb-*12-*12-*24", "eyJhbGciOiJIUzI1NiJ9.*40.*43", "*6", "*8", "*32", "*8-*4-*4-*4-*12", "*43=", "*5/*9+*11==",
	"a b*6 (c)!$@,*8|x", `<*9>&"*9'\*4`, "*300", anything,
}

// anything stands for a secret of all characters that one may have.
const anything = "anything"

func secretOf(shape string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	var text strings.Builder
	for range 24 {
		if shape == anything {
			text.WriteByte(byte(' ' + rand.N('~'-' '+1)))
		}
	}
	for i, part := range strings.Split(strings.TrimPrefix(shape, anything), "*") {
		n := 0
		for i > 0 && part != "" && part[0] >= '0' && part[0] <= '9' {
			n, part = 10*n+int(part[0]-'0'), part[1:]
		}
		for range n {
			text.WriteByte(letters[rand.N(len(letters))])
		}
		text.WriteString(part)
	}
	return text.String()
}

// escapings are ways in which a text has a secret.
var escapings = []func(string) string{
	func(s string) string { return s },
	url.QueryEscape, url.PathEscape, html.EscapeString,
	func(s string) string { return strings.TrimSuffix(fmt.Sprintf("%q", s)[1:], `"`) },
	func(s string) string {
		return strings.NewReplacer(`"`, `\u0022`, `/`, `\/`, `+`, `\u002B`, `\`, `\\`).Replace(s)
	},
	func(s string) string { return url.QueryEscape(html.EscapeString(s)) },
}

// spellings are ways to write a secret, whole or not.
var spellings = append([]func(string) string{
	func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("u:" + s)) },
	func(s string) string { return hex.EncodeToString([]byte(s)) },
}, escapings...)

// guesses is a text of which much is the beginning, the end or the middle of a secret.
func guesses(secret string) string {
	between := []string{"\n", "\n\n", "data: ", " ", "a", "word", `{"k":"`, `"}`, "\r\n", "\x00", "=", "é", "Bearer ", strings.Repeat("x", 50)}
	var text strings.Builder
	for range 1 + rand.N(12) {
		text.WriteString(between[rand.N(len(between))])
		spelt := spellings[rand.N(len(spellings))](secret)
		from, to := 0, rand.N(len(spelt))
		if rand.N(4) == 0 {
			from = rand.N(to + 1)
		}
		text.WriteString(spelt[from:to])
		if rand.N(3) == 0 { // a guess that is wrong in its last character
			text.WriteString("~")
		}
	}
	return text.String()
}

// cut cuts a text at random places.
func cut(text string) (parts []string) {
	for text != "" {
		n := 1 + rand.N(min(len(text), 1+rand.N(60)))
		parts, text = append(parts, text[:n]), text[n:]
	}
	return parts
}

// An answerKind is a way in which text comes.
type answerKind struct {
	header http.Header
	status int
	pack   func(text string) string // as it is sent
	fails  bool                     // nothing of it may come through
}

var answerKinds = map[string]answerKind{
	"an answer": {pack: func(text string) string { return text }},
	"events": {
		header: http.Header{"Content-Type": {"text/event-stream"}},
		pack:   func(text string) string { return "data: " + strings.ReplaceAll(text, "\n\n", "\ndata: ") + "\n\n" },
	},
	"gRPC":      {header: http.Header{"Content-Type": {"application/grpc+proto"}}, pack: inLengths},
	"websocket": {status: http.StatusSwitchingProtocols, pack: inFrames},
	"gzip":      {header: http.Header{"Content-Encoding": {"gzip"}}, pack: inFrames, fails: true},
	"gRPC, packed": {
		header: http.Header{"Content-Type": {"application/grpc"}, "Grpc-Encoding": {"gzip"}}, pack: inLengths, fails: true,
	},
	"websocket, packed": {
		header: http.Header{"Sec-Websocket-Extensions": {"permessage-deflate"}}, status: http.StatusSwitchingProtocols, pack: inFrames,
		fails: true,
	},
}

// inLengths makes messages of gRPC of a text.
func inLengths(text string) string {
	var all []byte
	for _, part := range cut(text) {
		all = append(binary.BigEndian.AppendUint32(append(all, 0), uint32(len(part))), part...)
	}
	return string(all)
}

// inFrames makes messages of a websocket of a text, some in pieces, some with a ping amid.
func inFrames(text string) string {
	var all []byte
	parts, kind := cut(text), byte(1)
	for i, part := range parts {
		first := kind
		if kind = 0; rand.N(2) == 0 || i == len(parts)-1 {
			first, kind = first|0x80, 1
		}
		all = append(all, frame(first, part)...)
		if rand.N(5) == 0 {
			all = append(all, frame(0x89, part[:min(len(part), 9)])...)
		}
	}
	return string(all)
}

func frame(first byte, content string) string {
	if len(content) > 125 {
		return string(binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(len(content)))) + content
	}
	return string([]byte{first, byte(len(content))}) + content
}

// stepper is a connection that gives a part for each Read, and notes when.
type stepper struct {
	parts []string
	log   *[]string
	rest  string
}

func (s *stepper) Read(p []byte) (int, error) {
	if s.rest == "" {
		if len(s.parts) == 0 {
			*s.log = append(*s.log, "end")
			return 0, io.EOF
		}
		s.rest, s.parts = s.parts[0], s.parts[1:]
		*s.log = append(*s.log, "in "+s.rest)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stepper) Write(p []byte) (int, error) { return len(p), nil }
func (s *stepper) Close() error                { return nil }

// logOf returns what came in and what was passed on, in order, when the secret was sent with the request.
func logOf(t *testing.T, secret string, k answerKind, parts []string) (log []string, out string) {
	t.Helper()
	s := broker.Secret{Name: "x", Value: secret, Hosts: []string{"api.github.com"}, Forms: []broker.Form{broker.Bearer}}
	key := bytes.Repeat([]byte{1}, 32)
	e := exchange{target: hubTarget, secrets: []known{{s, key}}, swaps: []swap{{header: "Authorization", value: "Basic " + inBasic(secret), secret: secret}}}
	r, err := http.NewRequestWithContext(context.WithValue(t.Context(), exchangeKey{}, e), "GET", hub, nil)
	must.Do(t, err)
	in := &http.Response{StatusCode: k.status, Header: k.header.Clone(), Request: r, Body: &stepper{parts: parts, log: &log}}
	if in.Header == nil {
		in.Header = http.Header{}
	}
	b := &Broker{keeper: &keeper{}}
	if err := b.modify(in); err != nil {
		return []string{err.Error()}, ""
	}
	buffer := make([]byte, chunk)
	for {
		n, err := in.Body.Read(buffer)
		if n > 0 {
			log, out = append(log, "out "+string(buffer[:n])), out+string(buffer[:n])
		}
		if err != nil {
			return append(log, err.Error()), out
		}
	}
}

// holds reports whether a text holds a secret in a form that is searched for.
func holds(text, secret string) bool {
	forms := append(inBase64(secret), inBasic(secret), hex.EncodeToString([]byte(secret)))
	for _, escape := range escapings {
		forms = append(forms, escape(secret))
	}
	return slices.ContainsFunc(forms, func(form string) bool {
		return len(form) >= broker.Shortest && strings.Contains(text, form)
	})
}

// isChanged reports whether a secret is found in a text.
func isChanged(text, secret string) bool {
	f := newFinder([]known{{broker.Secret{Name: "x", Value: secret}, nil}}, []swap{{value: "Basic " + inBasic(secret), secret: secret}})
	clean := []byte(text)
	f.clean(clean)
	return string(clean) != text
}

func inBasic(secret string) string {
	return base64.StdEncoding.EncodeToString([]byte("user:" + secret))
}

// Whatever a server is made to send, and wherever it pauses: what is passed on, and when, is the same for the true
// secret and for another of its length. So nobody learns by it whether a guess is right.
//
// Promise: no login, no API key, no token of git's.
func TestWhatIsPassedOnIsTheSameForAnyOtherSecret(t *testing.T) {
	const times = 40
	for name, k := range answerKinds {
		for _, shape := range shapes {
			for range times {
				truth, other := secretOf(shape), secretOf(shape)
				text := guesses(truth)
				parts := cut(k.pack(text))
				if all := strings.Join(parts, "") + text; isChanged(all, truth) || isChanged(all, other) {
					continue // a guess that is right as a whole
				}
				a, out := logOf(t, truth, k, parts)
				b, _ := logOf(t, other, k, parts)
				if !slices.Equal(a, b) {
					t.Fatalf("%s: with %q\n%q\nwith %q\n%q", name, truth, a, other, b)
				}
				if k.fails != (out == "") {
					t.Fatalf("%s: %q gives %q", name, parts, out)
				}
			}
		}
	}
}

// A secret that is in an answer changes neither what is passed on when, nor how long it is.
func TestAnAnswerWithTheSecretIsPassedOnAsOneWithout(t *testing.T) {
	const times = 20
	for name, k := range answerKinds {
		for _, shape := range shapes {
			for range times {
				truth, other := secretOf(shape), secretOf(shape)
				text := guesses(truth) + "|" + spellings[rand.N(len(spellings))](truth) + "|" + guesses(truth) // a placeholder ends no guess
				parts := cut(k.pack(text))
				a, out := logOf(t, truth, k, parts)
				b, _ := logOf(t, other, k, parts)
				if lengths(a) != lengths(b) {
					t.Fatalf("%s: with %q\n%q\nwith %q\n%q", name, truth, a, other, b)
				}
				for _, message := range messagesIn(name, out) {
					if holds(message, truth) {
						t.Fatalf("%s: %q is in %q", name, truth, out)
					}
				}
			}
		}
	}
}

// messagesIn returns what is in messages, without their heads: one of a head's bytes may look like a character of a
// secret whose rest comes behind it. Such a byte is taken out with the rest, and says another length then.
func messagesIn(kind, text string) (list []string) {
	head, size := 0, func(string) int { return len(text) }
	switch kind {
	case "gRPC":
		head, size = messageHead, func(h string) int { return int(binary.BigEndian.Uint32([]byte(h[1:]))) }
	case "websocket":
		head, size = 2, func(h string) int { return int(h[1]) }
	}
	for len(text) > head {
		n := size(text[:head])
		if text = text[head:]; kind == "websocket" && n == 126 {
			n, text = int(binary.BigEndian.Uint16([]byte(text))), text[2:]
		}
		n = min(n, len(text))
		list, text = append(list, text[:n]), text[n:]
	}
	return list
}

func lengths(log []string) (list string) {
	for _, line := range log {
		list += fmt.Sprint(len(line), " ")
	}
	return list
}

// The longest of a secret's forms fits the part of a line that is kept back.
func TestNoFormOfASecretIsLongerThanWhatIsKeptBack(t *testing.T) {
	for _, secret := range []string{`<<<<<<<<`, `""""""""`, `''''''''`, `&&&&&&&&`, `        `, `\\\\\\\\`, `%%%%%%%%`, "aaaaaaaa", "\u2028\u2028\u2028", "\xff\xff\xff\xff\xff\xff", "éééé"} {
		f := newFinder([]known{{broker.Secret{Name: "x", Value: secret}, broker.NewKey()}}, nil)
		for _, n := range f.needles {
			if len(n.text) > f.window {
				t.Errorf("%q: %q is longer than %d", secret, n.text, f.window)
			}
		}
	}
}
