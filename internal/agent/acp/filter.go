package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// shown are the methods by which an agent shows something, or asks the user, and no more.
var shown = []string{
	"session/update", "session/request_permission", "elicitation/create", "elicitation/complete", "$/cancel_request",
}

// Members that a message has, and those that it may have nowhere: they are commands that the editor would run, for a
// user to log in.
var (
	members = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	barred  = []string{"authMethods", "terminal-auth"}
)

// Bounds of a message: its length in bytes, and how deep it is.
const (
	longest = 64 << 20
	deepest = 100
)

// fromAgent copies messages of an agent's to its editor until the first error; the end of in is none. It calls refused
// for each that does not go on, with the reason.
func fromAgent(in io.Reader, out io.Writer, refused func(why string)) error {
	return eachLine(in, func(line []byte) error {
		message, why := judge(line)
		if why != "" {
			refused(why)
		}
		if message == nil {
			return nil
		}
		_, err := out.Write(append(message, '\n'))
		return err
	})
}

// fromEditor copies messages of an editor's to its agent until the first error; the end of in is none. The greeting
// loses the offers of files and terminals; the rest stays as it is.
func fromEditor(in io.Reader, out io.Writer) error {
	return eachLine(in, func(line []byte) error {
		_, err := out.Write(append(greet(line), '\n'))
		return err
	})
}

// eachLine calls do for each line that is not blank, which counts until the next one is read.
func eachLine(in io.Reader, do func(line []byte) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			if err := do(line); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// judge reads a message of an agent's and returns it made anew; nil if it does not go on, with the reason, unless that
// is of no interest.
func judge(line []byte) (message []byte, why string) {
	if !utf8.Valid(line) {
		return nil, "it is no text"
	}
	object, err := readObject(line)
	if err != nil {
		return nil, "it is no message"
	}
	for name := range object {
		if !slices.Contains(members, name) {
			delete(object, name)
		}
	}
	var method string
	switch said, is := object["method"]; {
	case !is: // it answers the editor
	case json.Unmarshal(said, &method) != nil:
		return nil, "it is no message"
	case strings.HasPrefix(method, "_") && object["id"] == nil: // adapters send such notes to any editor
		return nil, ""
	case !slices.Contains(shown, method):
		return nil, "it asks for " + method + ", which an editor does outside"
	}
	whole, err := encode(object, 0)
	if err != nil {
		return nil, "it is no message"
	}
	return whole, ""
}

// readObject reads an object. A name that stands there twice is an error: two readers may take each another one.
func readObject(text []byte) (map[string]json.RawMessage, error) {
	from, object := json.NewDecoder(bytes.NewReader(text)), map[string]json.RawMessage{}
	if open, err := from.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.Join(errors.New("it is no object"), err)
	}
	for from.More() {
		name, err := from.Token()
		if err != nil {
			return nil, err
		}
		key, is := name.(string)
		var value json.RawMessage
		if err := from.Decode(&value); err != nil || !is {
			return nil, errors.Join(errors.New("it is no object"), err)
		}
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("%q stands there twice", key)
		}
		object[key] = value
	}
	if _, err := from.Token(); err != nil {
		return nil, err
	}
	if _, err := from.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows")
	}
	return object, nil
}

// encode writes an object of a message without what is barred, at any depth.
func encode(object map[string]json.RawMessage, depth int) ([]byte, error) {
	for name, value := range object {
		if slices.Contains(barred, name) {
			delete(object, name)
			continue
		}
		clean, err := scrub(value, depth+1)
		if err != nil {
			return nil, err
		}
		object[name] = clean
	}
	return json.Marshal(object)
}

// scrub is [encode] for any value.
func scrub(value []byte, depth int) ([]byte, error) {
	switch {
	case depth > deepest:
		return nil, errors.New("it is too deep")
	case value[0] == '{':
		object, err := readObject(value)
		if err != nil {
			return nil, err
		}
		return encode(object, depth)
	case value[0] != '[':
		return value, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, err
	}
	for i := range list {
		clean, err := scrub(list[i], depth+1)
		if err != nil {
			return nil, err
		}
		list[i] = clean
	}
	return json.Marshal(list)
}

// greet takes the offers of files and terminals out of a message that is an editor's greeting.
func greet(line []byte) []byte {
	if !bytes.Contains(line, []byte(`"clientCapabilities"`)) {
		return line
	}
	var message, params, offers map[string]json.RawMessage
	if json.Unmarshal(line, &message) != nil || json.Unmarshal(message["params"], &params) != nil ||
		json.Unmarshal(params["clientCapabilities"], &offers) != nil || string(message["method"]) != `"initialize"` {
		return line
	}
	for _, outside := range []string{"fs", "terminal", "auth"} {
		delete(offers, outside)
	}
	for _, change := range []struct {
		in   map[string]json.RawMessage
		name string
		to   any
	}{{params, "clientCapabilities", offers}, {message, "params", params}} {
		text, err := json.Marshal(change.to)
		if err != nil {
			return line
		}
		change.in[change.name] = text
	}
	text, err := json.Marshal(message)
	if err != nil {
		return line
	}
	return text
}
