package nixdaemon

import (
	"bytes"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"claudebox/internal/nix/storepath"
)

// encodeEvent is the daemon's side of [decodeEvent].
func encodeEvent(e *encoder, event Event) {
	switch event := event.(type) {
	case Message:
		e.uint(tagNext)
		e.text(event.Text)
	case Start:
		e.uint(tagStart)
		e.uint(event.ID)
		e.uint(event.Level)
		e.uint(uint64(event.Type))
		e.text(event.Text)
		encodeFields(e, event.Fields)
		e.uint(event.Parent)
	case Stop:
		e.uint(tagStop)
		e.uint(event.ID)
	case Result:
		e.uint(tagResult)
		e.uint(event.ID)
		e.uint(uint64(event.Type))
		encodeFields(e, event.Fields)
	}
}

func encodeFields(e *encoder, fields []Field) {
	e.uint(uint64(len(fields)))
	for _, f := range fields {
		if f.IsText {
			e.uint(1)
			e.text(f.Text)
			continue
		}
		e.uint(0)
		e.uint(f.Number)
	}
}

var someEvents = []Event{
	Message{"warning: \x1b[35;1msomething\x1b[0m"},
	Start{1, 3, Build, "building", []Field{{Text: "x.drv", IsText: true}, {Number: 1}}, 7},
	Result{1, BuildLogLine, []Field{{Text: "a line", IsText: true}}},
	Stop{1},
}

// Whatever decodes as an event encodes to the bytes it was read from.
func FuzzEvent(f *testing.F) {
	for _, event := range someEvents {
		var e encoder
		encodeEvent(&e, event)
		f.Add(e.buf.Bytes())
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		in := bytes.NewReader(wire)
		d := newDecoder(in)
		event := decodeEvent(d, d.uint())
		if d.err != nil {
			return
		}
		var e encoder
		encodeEvent(&e, event)
		if read := wire[:len(wire)-in.Len()-d.r.Buffered()]; !bytes.Equal(e.buf.Bytes(), read) {
			t.Errorf("%#v was read from %q and encodes to %q", event, read, e.buf.Bytes())
		}
	})
}

// Lists of texts are read as they were written, at every length around the
// reader's buffer.
func FuzzTexts(f *testing.F) {
	f.Add("", "a", 3)
	f.Add("12345678", "ä\x00", 32<<10)
	f.Add("x", "y", 200<<10)
	f.Fuzz(func(t *testing.T, a, b string, length int) {
		want := []string{a, b, strings.Repeat("x", min(max(length, 0), 1<<20)), a}
		var e encoder
		e.texts(want)
		e.bool(true)
		d := newDecoder(&e.buf)
		if got := d.texts(); d.err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d texts came back as %d, %v", len(want), len(got), d.err)
		}
		if !d.bool() || d.err != nil {
			t.Errorf("what follows the texts is lost: %v", d.err)
		}
	})
}

// No input makes the decoders allocate much more than was sent, whatever
// lengths and counts it claims, and the padding law holds: a text that was
// read takes a multiple of eight bytes.
func FuzzClaims(f *testing.F) {
	for _, values := range [][]uint64{{1 << 24, 1 << 24}, {1 << 40}, {3, 64 << 20, 1}, {1, 1<<64 - 1}, {2, 8, 0, 8, 0}} {
		var e encoder
		for _, v := range values {
			e.uint(v)
		}
		f.Add(e.buf.Bytes())
	}
	decoders := []func(*decoder){
		func(d *decoder) { d.texts() },
		func(d *decoder) { d.text() },
		func(d *decoder) { decodePathInfo(d, "") },
		func(d *decoder) { decodeError(d) },
		func(d *decoder) { decodeStart(d) },
		func(d *decoder) { list(d, (&stream{info: Info{Protocol: Newest}}).decodeResult) },
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		for i, decode := range decoders {
			d := newDecoder(bytes.NewReader(wire))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			decode(d)
			runtime.ReadMemStats(&after)
			// A record of a list may be some ten times as large as its least
			// form on the wire, and slices double as they grow; the rest is
			// the fuzzer's own.
			if got, most := after.TotalAlloc-before.TotalAlloc, uint64(256<<10+64*len(wire)); got > most {
				t.Errorf("decoder %d allocated %d bytes for %d", i, got, len(wire))
			}
		}
	})
}

// A target that is taken is a store path, or outputs of a derivation, and never holds
// what ends a word on the wire.
func FuzzTarget(f *testing.F) {
	const drv = "/nix/store/00bgd045z0d4icpbc2yyz4gx48ak44la-a.drv"
	for _, seed := range []string{drv, drv + "!out", drv + "!*", drv + "!bin,dev", drv + "^out", drv + "!", drv + "!,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if checkTarget(target) != nil {
			return
		}
		path, outputs, derived := strings.Cut(target, "!")
		if storepath.Check(path) != nil || derived && (outputs == "" || !strings.HasSuffix(path, ".drv")) {
			t.Errorf("%q is taken", target)
		}
		if strings.ContainsAny(target, "^ \n\x00") {
			t.Errorf("%q is taken", target)
		}
	})
}

// What a terminal could obey is gone, what it could not is kept.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"a\x1b[31;1mb\x1b[0m", "\x1b]52;c;AAAA\a", "\x1b]0;t\x1b\\x", "\x1b", "\x1b[", "\xc2\x9b31m", "a\tb\n", "\x1bPq\x1b[x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Plain(s)
		if strings.ContainsFunc(got, control) {
			t.Errorf("Plain(%q) = %q, which holds a control character", s, got)
		}
		if again := Plain(got); again != got {
			t.Errorf("Plain(%q) = %q, and of that %q", s, got, again)
		}
		if !strings.ContainsFunc(s, control) && got != s {
			t.Errorf("Plain(%q) = %q, though there was nothing to take out", s, got)
		}
	})
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31;1merror:\x1b[0m no":      "error: no",
		"a\x1b]52;c;c2VjcmV0\ab":          "ab",
		"a\x1b]8;;http://x\x1b\\link":     "alink",
		"progress 1\rprogress 2\nnext\tx": "progress 1progress 2\nnext\tx",
		"cut \x1b[31":                     "cut ",
		"‘quoted’":                        "‘quoted’",
	} {
		if got := Plain(in); got != want {
			t.Errorf("Plain(%q) = %q; want %q", in, got, want)
		}
	}
}
