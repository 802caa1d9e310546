package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Left is something of the user's that does not enter a sandbox.
type Left struct {
	Kind  string // what it is, in the singular: "hook", "MCP server"
	Text  string // one sentence: what, why, and how it would enter
	Also  int    `json:",omitempty"` // how many more of its kind the sentence is about
	Red   bool   `json:",omitempty"` // what a commit holds, or where a secret goes, depends on it
	Quiet bool   `json:",omitempty"` // the agent is not told, as it could ask for any file so
}

// Kinds counts a list by kind, in its order: "2 hooks, 1 MCP server".
func Kinds(list []Left) string {
	var kinds, words []string
	count := map[string]int{}
	for _, left := range list {
		if !slices.Contains(kinds, left.Kind) {
			kinds = append(kinds, left.Kind)
		}
		count[left.Kind] += 1 + left.Also
	}
	for _, kind := range kinds {
		word := kind
		switch {
		case count[kind] == 1:
		case strings.HasSuffix(kind, "y"):
			word = strings.TrimSuffix(kind, "y") + "ies"
		default:
			word += "s"
		}
		words = append(words, fmt.Sprintf("%d %s", count[kind], word))
	}
	return strings.Join(words, ", ")
}
