package agenthome

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"claudebox/internal/agent/object"
)

// HistoryFile is the user's history of prompts, of all projects.
func HistoryFile(r Request) string { return r.Own("history.jsonl") }

// prompt is a line of a history. Contents that were pasted lie elsewhere, and do not enter.
type prompt struct {
	Display   string  `json:"display"`
	Pasted    nothing `json:"pastedContents"`
	Timestamp float64 `json:"timestamp"` // milliseconds since 1970
	Project   string  `json:"project"`
	Session   string  `json:"sessionId,omitempty"`
}

// nothing is written as {}, and read from any value.
type nothing struct{}

func (*nothing) UnmarshalJSON([]byte) error { return nil }

const (
	maxPrompt  = 64 << 10 // bytes
	maxPrompts = 1000     // prompts that one session gives back
)

// prompts returns the prompts that were typed in one of folders, by time and without duplicates. A line that no
// person can have typed is left out: it could control the terminal.
func prompts(history []byte, folders []string) []prompt {
	var list []prompt
	for line := range bytes.Lines(history) {
		var p prompt
		if len(line) > 2*maxPrompt || json.Unmarshal(line, &p) != nil { // twice: escapes and other fields
			continue
		}
		if slices.Contains(folders, p.Project) && p.typed() {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b prompt) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return slices.CompactFunc(list, prompt.equal)
}

func (p prompt) equal(o prompt) bool {
	return p.Timestamp == o.Timestamp && p.Project == o.Project && p.Display == o.Display
}

func (p prompt) typed() bool {
	strange := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == unicode.ReplacementChar)
	}
	const maxSession = 64
	return p.Timestamp > 0 && len(p.Display) <= maxPrompt && !strings.ContainsFunc(p.Display, strange) &&
		len(p.Session) <= maxSession && !strings.ContainsFunc(p.Session, strange)
}

// makeHistory gives an agent that works in the user's own state the prompts of its project, including those of
// earlier sessions inside. What was typed in other projects does not enter.
func makeHistory(r Request, f From) Made {
	if !r.Host {
		return Made{}
	}
	both := slices.Concat(f.Sources[0], []byte("\n"), f.Old) // the last line of the first may not be complete
	return Made{Content: lines(prompts(both, r.Trusted))}
}

// NewPrompts returns the lines of the agent's history that the user's lacks, at most the last maxPrompts of them.
func NewPrompts(r Request, host, inside []byte) []byte {
	known := prompts(host, r.Trusted)
	added := slices.DeleteFunc(prompts(inside, r.Trusted), func(p prompt) bool {
		return slices.ContainsFunc(known, p.equal)
	})
	return lines(added[max(0, len(added)-maxPrompts):])
}

// lines writes prompts as lines of a history; nil for an empty list.
func lines(list []prompt) (text []byte) {
	for _, p := range list {
		text = append(text, object.Indented(p, "")...)
	}
	return text
}

// maxConversations is how long the name of a folder of conversations may be
// without a hash in it (Claude Code 2.1.329).
const maxConversations = 200

// Conversations is the name of the folder below ~/.claude/projects that holds
// the conversations of a folder; empty for one whose path is too long.
func Conversations(folder string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(folder)) {
		if r := rune(unit); r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	if b.Len() > maxConversations {
		return ""
	}
	return b.String()
}

// BegunIn returns the folder in which the conversation of a file with this beginning was begun; empty if it does not
// say so. Within the text of a message the same words have their quotes escaped.
func BegunIn(beginning []byte) (folder string) {
	_, rest, _ := bytes.Cut(beginning, []byte(`"cwd":`))
	if json.NewDecoder(bytes.NewReader(rest)).Decode(&folder) != nil {
		return ""
	}
	return folder
}
