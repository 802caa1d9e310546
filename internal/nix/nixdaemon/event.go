package nixdaemon

import (
	"strings"

	"claudebox/internal/diag/pattern"
)

// An Event is a report of the daemon while it works: a [Message], a
// [Start], a [Stop] or a [Result]. The daemon sends them whatever the verbosity
// is set to; the receiver filters.
type Event any

// Message is one log message, which may have several lines and
// escape sequences for colour (see [Plain]).
type Message struct{ Text string }

// Start begins an activity. Ids are unique on one connection only.
type Start struct {
	ID     uint64
	Level  uint64 // 0 error … 7 vomit
	Type   Activity
	Text   string
	Fields []Field
	Parent uint64 // 0: none
}

// Stop ends an activity.
type Stop struct{ ID uint64 }

// Result is a report on an activity that has started.
type Result struct {
	ID     uint64
	Type   ResultType
	Fields []Field
}

// Field is one value of an activity or a result: a text if IsText is set, else a number.
type Field struct {
	Number uint64
	Text   string
	IsText bool
}

// Activity is a kind of work that the daemon does (libutil/logging.hh).
type Activity uint64

// The activities that [Progress] uses, the same from Nix 2.8 to 2.34.
const (
	CopyPath  Activity = 100 // fields: path, from, to
	CopyPaths Activity = 103
	Builds    Activity = 104
	Build     Activity = 105 // fields: derivation, machine, round, rounds
)

// ResultType is what a [Result] is about.
type ResultType uint64

const (
	BuildLogLine ResultType = 101 // fields: the line
	Progressed   ResultType = 105 // fields: done, expected, running, failed
	SetExpected  ResultType = 106 // fields: activity type, number
)

// Tags of the messages between a request and its reply: STDERR_NEXT and so on in Nix (worker-protocol.hh).
const (
	tagNext   = 0x6f6c6d67
	tagLast   = 0x616c7473
	tagError  = 0x63787470
	tagStart  = 0x53545254
	tagStop   = 0x53544f50
	tagResult = 0x52534c54
)

// decodeEvent reads the body of a message between a request and its reply. The caller
// handles tagLast and tagError, which end those messages.
func decodeEvent(d *decoder, tag uint64) Event {
	switch tag {
	case tagNext:
		return Message{d.text()}
	case tagStart:
		return decodeStart(d)
	case tagStop:
		return Stop{d.uint()}
	case tagResult:
		return Result{ID: d.uint(), Type: ResultType(d.uint()), Fields: list(d, decodeField)}
	}
	// The daemon's STDERR_READ and STDERR_WRITE belong to operations that this client does not use.
	d.protocolf("message of kind %#x", tag)
	return nil
}

func decodeStart(d *decoder) Start {
	return Start{
		ID: d.uint(), Level: d.uint(), Type: Activity(d.uint()), Text: d.text(),
		Fields: list(d, decodeField), Parent: d.uint(),
	}
}

func decodeField(d *decoder) Field {
	switch kind := d.uint(); kind {
	case 0:
		return Field{Number: d.uint()}
	case 1:
		return Field{Text: d.text(), IsText: true}
	default:
		d.protocolf("field of kind %d", kind)
		return Field{}
	}
}

// decodeError reads the body of an error, in the format of the worker protocol since 1.26, and returns its message. An
// error with a position, which the daemon never sends, breaks the protocol. The first text is always "Error".
func decodeError(d *decoder) string {
	d.text()
	d.uint() // level
	d.text() // name, obsolete
	message := Plain(d.text())
	noPosition(d)
	list(d, func(d *decoder) string { noPosition(d); return d.text() })
	return message
}

func noPosition(d *decoder) {
	if n := d.uint(); n != 0 {
		d.protocolf("an error with a position of kind %d", n)
	}
}

// escapes matches sequences of ECMA-48: CSI ends at 0x40–0x7e, OSC and its kind at
// BEL or before the next ESC, and any other after one character.
const escapes pattern.Expr = `\x1b(?:\[[^@-~]*[@-~]?|[\]PX^_][^\a\x1b]*\a?|(?s:.))?`

// Plain returns s without escape sequences and control characters, except newline and tab: the daemon
// colours its messages, and a build's output may contain anything.
func Plain(s string) string {
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, escapes.Compiled().ReplaceAllLiteralString(s, ""))
}

func control(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }
