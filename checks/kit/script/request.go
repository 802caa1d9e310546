package script

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Request is what an agent asked of the model.
type Request struct {
	Header   http.Header `json:"-"`
	Model    string      `json:"model"`
	Stream   bool        `json:"stream"`
	System   Blocks      `json:"system"`
	Messages []Message   `json:"messages"`
	Tools    []Tool      `json:"tools"`
}

// Message is one entry of the conversation, oldest first.
type Message struct {
	Role    string `json:"role"`
	Content Blocks `json:"content"`
}

// Tool is a tool that the agent offers to the model.
type Tool struct {
	Name string `json:"name"`
}

// Block is a piece of a message: text, a tool_use or a tool_result. Only the
// fields of its Type are set.
type Block struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Name    string `json:"name"`     // of a tool_use
	Content Blocks `json:"content"`  // of a tool_result
	IsError bool   `json:"is_error"` // of a tool_result
}

// Blocks is a message's content. The API takes a bare string for a single
// block of text; it is decoded to just that.
type Blocks []Block

// UnmarshalJSON takes both forms, a string and a list of blocks.
func (b *Blocks) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte(`"`)) {
		*b = Blocks{{Type: "text"}}
		return json.Unmarshal(data, &(*b)[0].Text)
	}
	return json.Unmarshal(data, (*[]Block)(b))
}

// Text is the text of all blocks, results of tools included, one per line.
func (b Blocks) Text() string {
	var text []string
	for _, block := range b {
		if block.Type == "text" {
			text = append(text, block.Text)
		}
		if len(block.Content) > 0 {
			text = append(text, block.Content.Text())
		}
	}
	return strings.Join(text, "\n")
}

// Prompt is the text that a person or a tool wrote last.
func (r Request) Prompt() string { return r.newest().Text() }

// Text is everything that the model would read: system prompt and messages.
func (r Request) Text() string {
	text := []string{r.System.Text()}
	for _, message := range r.Messages {
		text = append(text, message.Content.Text())
	}
	return strings.Join(text, "\n")
}

// Result is the last tool result of the newest message; ok says that there is
// one.
func (r Request) Result() (result Block, ok bool) {
	for _, block := range r.newest() {
		if block.Type == "tool_result" {
			result, ok = block, true
		}
	}
	return result, ok
}

// newest is the content of the last message of role user. An agent may put
// messages of role system after it.
func (r Request) newest() Blocks {
	for _, message := range slices.Backward(r.Messages) {
		if message.Role == "user" {
			return message.Content
		}
	}
	return nil
}
