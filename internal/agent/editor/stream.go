package editor

import (
	"encoding/json"
	"slices"
	"strings"

	"claudebox/internal/agent/object"
)

// asked are the requests of Claude Code's that ask the user, or a hook of the editor's own. Others ask for the login.
var asked = []string{"can_use_tool", "elicitation", "hook_callback", "mcp_message", "request_user_dialog"}

// judgeStream judges a message of Claude Code's SDK.
func judgeStream(line []byte) verdict {
	message, err := readObject(line)
	if err != nil {
		return noMessage
	}
	var kind string
	if json.Unmarshal(message["type"], &kind) != nil {
		return noMessage
	}
	if kind != "control_request" {
		return remade(message)
	}
	request, err := readObject(message["request"])
	if err != nil {
		return noMessage
	}
	var subtype string
	if json.Unmarshal(request["subtype"], &subtype) != nil {
		return noMessage
	}
	what := subtype
	if subtype == "mcp_message" {
		if what, err = tool(request); err != nil {
			return noMessage
		}
	}
	var why string
	switch {
	case what != "" && (what == "mcp_message" || !slices.Contains(asked, what)):
		why = outside(what)
	case subtype == "elicitation":
		why = ordered(object.As[any](message["request"]))
	}
	if why == "" {
		message["request"] = object.Encode(request)
		return remade(message)
	}
	return verdict{why: why, reply: object.Encode(map[string]any{
		"type": "control_response",
		"response": map[string]any{
			"subtype": "error", "request_id": message["request_id"], "error": why,
		},
	})}
}

// tool reads a message to an MCP server that is in the editor's own process. It returns the tool of it that runs code
// or changes what the user sees; empty: it calls none, or one that only tells something. Servers of a program that uses
// the SDK itself are its own affair.
func tool(request map[string]json.RawMessage) (name string, err error) {
	var server, method string
	if err := json.Unmarshal(request["server_name"], &server); err != nil {
		return "", err
	}
	message, err := readObject(request["message"])
	if err != nil {
		return "", err
	}
	request["message"] = object.Encode(message)
	if said, is := message["method"]; is {
		if err := json.Unmarshal(said, &method); err != nil {
			return "", err
		}
	}
	if method != "tools/call" || server != "ide" && !strings.HasPrefix(server, "claude-") {
		return "", nil
	}
	params, err := readObject(message["params"])
	if err != nil {
		return "", err
	}
	message["params"] = object.Encode(params)
	request["message"] = object.Encode(message)
	if err := json.Unmarshal(params["name"], &name); err != nil || name == "getDiagnostics" {
		return "", err
	}
	return "the tool " + name, nil
}

// greetStream takes secrets out of what Claude Code's SDK sends, but for the user's words and answers.
func greetStream(line []byte, tell func(string)) []byte {
	message := object.Parse(line)
	kind := object.As[string](message["type"])
	if !hasOffers(line) || kind != "control_request" && kind != "update_environment_variables" {
		return line
	}
	return withoutSecrets("", line, tell)
}

// remade passes a message on.
func remade(message map[string]json.RawMessage) verdict {
	return verdict{message: object.Encode(message)}
}
