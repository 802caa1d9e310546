package script

import (
	"fmt"
	"strings"
)

// Turn is one answer of the model. Text comes before the calls; a turn with
// calls makes the agent run them and come back with their results.
type Turn struct {
	Want  Want   // what the request must show; nil takes any
	Text  string // what the model says
	Calls []Call // the tools that it uses
	Fail  string // what the API says when it refuses the request, instead of all that
	Hold  bool   // after the text, keep the stream open until the agent leaves
	Pause func() // called when half of the text has been sent; the rest follows when it returns
}

// Call is the use of one tool. Input is encoded as JSON.
type Call struct {
	Tool  string
	Input map[string]any
}

// input is never null: the API's is an object.
func (c Call) input() map[string]any {
	if c.Input == nil {
		return map[string]any{}
	}
	return c.Input
}

// Want judges the request that a turn answers. Its error says what is missing
// and shows what was there instead.
type Want func(Request) error

// Say is a turn of text.
func Say(text string) Turn { return Turn{Text: text} }

// Bash is a turn that runs a command with the tool of that name.
func Bash(command string) Turn {
	return Use("Bash", map[string]any{"command": command, "description": "run a step of the script"})
}

// Use is a turn with one call of a tool.
func Use(tool string, input map[string]any) Turn {
	return Turn{Calls: []Call{{Tool: tool, Input: input}}}
}

// After returns the turn with a demand on the request that it answers.
func (t Turn) After(want Want) Turn {
	t.Want = want
	return t
}

// Prompted wants text in the newest message.
func Prompted(text string) Want {
	return func(r Request) error {
		if !strings.Contains(r.Prompt(), text) {
			return fmt.Errorf("newest message lacks %q: %q", text, ending(r.Prompt()))
		}
		return nil
	}
}

// Succeeded wants the last tool call to have gone well, with each text in its
// result.
func Succeeded(texts ...string) Want {
	return func(r Request) error { return judge(r, false, texts) }
}

// Refused wants the last tool call to have ended in an error, with each text
// in its result.
func Refused(texts ...string) Want {
	return func(r Request) error { return judge(r, true, texts) }
}

func judge(r Request, isError bool, texts []string) error {
	result, ok := r.Result()
	if !ok {
		return fmt.Errorf("newest message holds no tool result: %q", ending(r.Prompt()))
	}
	got := result.Content.Text()
	if result.IsError != isError {
		return fmt.Errorf("tool result is_error is %t: %q", result.IsError, ending(got))
	}
	for _, text := range texts {
		if !strings.Contains(got, text) {
			return fmt.Errorf("tool result lacks %q: %q", text, ending(got))
		}
	}
	return nil
}

// ending is as much of a text as an error should show. Agents put reminders
// before what a person wrote, so it is the end that tells.
func ending(text string) string {
	const most = 400
	if runes := []rune(text); len(runes) > most {
		return "…" + string(runes[len(runes)-most:])
	}
	return text
}
