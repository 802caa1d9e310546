// Package object changes single keys of Claude Code's JSON files; all others stay
// as they are. It touches nothing itself.
package object

import (
	"bytes"
	"encoding/json"
)

// Object is a JSON object whose values stay as they were written.
type Object map[string]json.RawMessage

// Parse gives nil for what is not a JSON object.
func Parse(src []byte) Object {
	var o Object
	if json.Unmarshal(src, &o) != nil {
		return nil
	}
	return o
}

// Of gives an empty object for what is none.
func Of(src []byte) Object {
	if o := Parse(src); o != nil {
		return o
	}
	return Object{}
}

// Set stores a value that has a JSON form.
func (o Object) Set(key string, value any) { o[key] = Encode(value) }

// Encode writes a value that has a JSON form as Claude Code does: in one line,
// without the escapes that only HTML needs.
func Encode(value any) json.RawMessage { return bytes.TrimRight(Indented(value, ""), "\n") }

// Indented is a value as [Encode] writes it, in lines.
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
