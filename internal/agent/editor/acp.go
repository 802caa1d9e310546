package editor

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"claudebox/internal/agent/object"
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

// deepest is how deep a message may be.
const deepest = 100

// judgeACP judges a message of the Agent Client Protocol.
func judgeACP(line []byte) verdict {
	message, err := readObject(line)
	if err != nil {
		return noMessage
	}
	for name := range message {
		if !slices.Contains(members, name) {
			delete(message, name)
		}
	}
	var method, why string
	switch said, is := message["method"]; {
	case !is: // it answers the editor, in vain perhaps: an error may have an address opened first
		if why = ordered(object.As[any](message["error"])); why != "" {
			failed := object.Parse(message["error"])
			delete(failed, "data")
			message["error"] = object.Encode(failed)
		}
	case json.Unmarshal(said, &method) != nil:
		return noMessage
	case !slices.Contains(shown, method):
		if _, asks := message["id"]; !asks && strings.HasPrefix(method, "_") { // adapters send such notes to any editor
			return verdict{}
		}
		return refused(message, outside(method))
	case strings.HasPrefix(method, "elicitation/"):
		if why := ordered(object.As[any](message["params"])); why != "" {
			return refused(message, why)
		}
	}
	whole, err := encode(message, 0)
	if err != nil {
		return noMessage
	}
	return verdict{message: whole, why: why}
}

// refused is what becomes of a request or a note that does not go on.
func refused(message map[string]json.RawMessage, why string) verdict {
	v := verdict{why: why}
	if id, asks := message["id"]; asks {
		v.reply = object.Encode(map[string]any{
			"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": methodNotFound, "message": why},
		})
	}
	return v
}

// methodNotFound is the error of JSON-RPC for a method that is not there.
const methodNotFound = -32601

// encode writes an object of a message without what is barred, at any depth.
func encode(object map[string]json.RawMessage, depth int) ([]byte, error) {
	for name, value := range object {
		if slices.ContainsFunc(barred, func(b string) bool { return strings.EqualFold(b, name) }) { // as Go reads names
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

// greet takes the offers of files and terminals out of an editor's greeting, and secrets out of all that it sends but
// the user's words.
func greet(line []byte, tell func(string)) []byte {
	message := object.Parse(line)
	method, params := object.As[string](message["method"]), object.Parse(message["params"])
	switch {
	case params == nil || method == "session/prompt":
		return line
	case method == "initialize":
		offers := object.Parse(params["clientCapabilities"])
		for _, offer := range []string{"fs", "terminal", "auth"} {
			delete(offers, offer)
		}
		if offers != nil {
			params["clientCapabilities"] = object.Encode(offers)
		}
	case !hasOffers(line):
		return line
	}
	message["params"] = withoutSecrets("", object.Encode(params), tell)
	return object.Encode(message)
}
