// Package object changes single keys of Claude Code's JSON files; all others stay as they are. It does no I/O.
package object

import (
	"bytes"
	"encoding/json"
)

// Object is a JSON object. Values that are not set anew keep their text.
type Object map[string]json.RawMessage

// Parse reads a JSON object. It returns nil for anything else.
func Parse(src []byte) Object {
	var o Object
	if json.Unmarshal(src, &o) != nil {
		return nil
	}
	return o
}

// Of is like [Parse], but returns an empty object instead of nil.
func Of(src []byte) Object {
	if o := Parse(src); o != nil {
		return o
	}
	return Object{}
}

// As decodes raw as far as it fits a T. What does not fit stays zero, and so does everything if raw is nil.
func As[T any](raw json.RawMessage) (value T) {
	_ = json.Unmarshal(raw, &value)
	return value
}

// Set stores value under key. It panics if value has no JSON form.
func (o Object) Set(key string, value any) { o[key] = Encode(value) }

// Encode writes a value as Claude Code does: in one line, without the escapes that only HTML needs. It panics if
// value has no JSON form.
func Encode(value any) json.RawMessage { return bytes.TrimRight(Indented(value, ""), "\n") }

// Indented is [Encode] with a newline at the end and, unless indent is empty, in several lines.
func Indented(value any, indent string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(value); err != nil {
		panic("bug: " + err.Error())
	}
	return b.Bytes()
}
