package script

import (
	"encoding/json"
	"fmt"
	"io"

	"claudebox/checks/kit/reply"
)

type object = reply.Object

// blocks is the turn as the API's content blocks. Ids are made from the
// request's number: an agent refuses a tool id that it has seen before.
func (t Turn) blocks(number int) []object {
	content := []object{}
	if t.Text != "" {
		content = append(content, object{"type": "text", "text": t.Text})
	}
	for i, call := range t.Calls {
		id := fmt.Sprintf("toolu_%04d_%d", number, i)
		content = append(content, object{"type": "tool_use", "id": id, "name": call.Tool, "input": call.input()})
	}
	return content
}

func (t Turn) stopReason() string {
	if len(t.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

// message is the turn as the API answers it without streaming.
func (t Turn) message(number int, model string) object {
	return object{
		"id": fmt.Sprintf("msg_%04d", number), "type": "message", "role": "assistant", "model": model,
		"content": t.blocks(number), "stop_reason": t.stopReason(), "stop_sequence": nil,
		"usage": object{"input_tokens": 1, "output_tokens": 1},
	}
}

// start writes the turn as server-sent events up to its end, which finish
// writes; of one with a pause the half of its text, which resume goes on with.
func (t Turn) start(w io.Writer, number int, model string) error {
	head := t.message(number, model)
	head["content"], head["stop_reason"] = []object{}, nil
	events := []object{{"type": "message_start", "message": head}}
	if t.Pause != nil {
		return writeEvents(w, append(events,
			object{"type": "content_block_start", "index": 0, "content_block": object{"type": "text", "text": ""}},
			textDelta(t.Text[:len(t.Text)/2])))
	}
	for i, block := range t.blocks(number) {
		opened, delta, err := split(block)
		if err != nil {
			return err
		}
		events = append(events,
			object{"type": "content_block_start", "index": i, "content_block": opened},
			object{"type": "content_block_delta", "index": i, "delta": delta},
			object{"type": "content_block_stop", "index": i})
	}
	return writeEvents(w, events)
}

// resume writes what is behind a pause.
func (t Turn) resume(w io.Writer) error {
	return writeEvents(w, []object{textDelta(t.Text[len(t.Text)/2:]), {"type": "content_block_stop", "index": 0}})
}

func textDelta(text string) object {
	return object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": text}}
}

func (t Turn) finish(w io.Writer) error {
	return writeEvents(w, []object{
		{
			"type":  "message_delta",
			"delta": object{"stop_reason": t.stopReason(), "stop_sequence": nil},
			"usage": object{"output_tokens": 1},
		},
		{"type": "message_stop"},
	})
}

// split parts a block into the empty one that opens it and the delta that
// fills it.
func split(block object) (opened, delta object, err error) {
	if block["type"] == "text" {
		return object{"type": "text", "text": ""}, object{"type": "text_delta", "text": block["text"]}, nil
	}
	input, err := json.Marshal(block["input"])
	if err != nil {
		return nil, nil, fmt.Errorf("encode input of %s: %w", block["name"], err)
	}
	opened = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}
	return opened, object{"type": "input_json_delta", "partial_json": string(input)}, nil
}

func writeEvents(w io.Writer, events []object) error {
	for _, event := range events {
		data, err := json.Marshal(event)
		if err != nil {
			return fmt.Errorf("encode %s: %w", event["type"], err)
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], data); err != nil {
			return err
		}
	}
	return nil
}
