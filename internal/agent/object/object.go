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

// Plain takes the comments, and the commas behind the last item, out of a JSON text with such.
func Plain(src []byte) []byte {
	var plain []byte
	for i := 0; i < len(src); i++ {
		switch rest := src[i:]; {
		case rest[0] == '"':
			end := 1
			for end < len(rest) && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(rest)-1)
			plain = append(plain, rest[:end+1]...)
			i += end
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				return plain
			}
			i += end - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest, []byte("*/"))
			if end < 0 {
				return plain
			}
			i += end + 1
		case rest[0] == '}' || rest[0] == ']':
			plain = append(bytes.TrimSuffix(bytes.TrimRight(plain, " \t\r\n"), []byte(",")), rest[0])
		default:
			plain = append(plain, rest[0])
		}
	}
	return plain
}
