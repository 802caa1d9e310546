package agenthome

import (
	"path"
	"strings"

	"claudebox/internal/secret/leak"
)

// Request says for whom and where files are made. All paths are absolute.
type Request struct {
	UserHome string   // the user's home, where .claude and .claude.json are
	Home     string   // CLAUDEBOX_HOME
	Trusted  []string // canonical folders that the agent is told to trust
	APIKey   string   // the ANTHROPIC_API_KEY that enters; empty: none
	Host     bool     // the agent works in the user's own state
	Path     []string // PATH inside
	Status   string   // what the agent's status line says; empty: nothing
	Servers  []string // MCP servers of the user that enter, by name
	// Inside reports whether a program can be run inside, by name or by path.
	Inside func(program string) bool
}

// Key stands for all that files are made of besides their sources. It holds
// no more of the key than Claude Code itself keeps.
func (r Request) Key() string {
	return strings.Join(r.Trusted, "\x00") + "\x00\x00" + approvedSuffix(r.APIKey) + "\x00" + r.Status + "\x00" +
		strings.Join(r.Servers, " ") + "\x00" + strings.Join(r.Path, ":")
}

// From is what a file is made of.
type From struct {
	Old     []byte   // what is there now; nil when that cannot be read
	Given   string   // [Made.Given] of the last time; empty: there was none
	Sources [][]byte // of the user; nil: missing
}

// Made is a file of the agent's home.
type Made struct {
	Content []byte   // nil: none of ours
	Given   string   // what of the user's it holds, to tell later who changed what
	Notes   []string // what of the user's does not enter; they hold until something changes
	Once    []string // what happened now
	Aside   bool     // what lay there is to be kept under another name
}

// File is a file of the agent's home.
type File struct {
	Name string
	// Sources are the files of the user that it is made of.
	Sources func(r Request) []string
	Make    func(r Request, f From) Made
}

// Files are all that is made.
var Files = []File{
	{".claude.json", ofUser(".claude.json"), makeAnswers},
	{"settings.json", ofUser(".claude/settings.json"), makeSettings},
	{"keybindings.json", ofUser(".claude/keybindings.json"), copyFirst},
	{"CLAUDE.md", MemoryFiles, makeMemory},
	{"history.jsonl", historyFiles, makeHistory},
}

// Folders are those of ~/.claude that hold the user's own additions to Claude
// Code. They are not copied but read where they are.
var Folders = []string{"agents", "commands", "hooks", "skills", "output-styles", "rules", "plugins"}

// ofUser names one file below the user's home.
func ofUser(name string) func(Request) []string {
	return func(r Request) []string { return []string{path.Join(r.UserHome, name)} }
}

// historyFiles is the user's history, where it enters.
func historyFiles(r Request) []string {
	if !r.Host {
		return nil
	}
	return []string{HistoryFile(r)}
}

// copyFirst takes the user's file as it is; without one what is there stays.
func copyFirst(_ Request, f From) Made {
	return Made{Content: f.Sources[0], Notes: leakNotes("keybindings.json", f.Sources[0])}
}

// leakNotes say that a file of the user that enters holds a secret (SEC-01).
func leakNotes(name string, content []byte) []string {
	if what := leak.Text(string(content)); what != "" {
		return []string{"your ~/.claude/" + name + " enters, and holds what looks like " + what}
	}
	return nil
}

// LoginFiles are where a login can be lent from, first come first.
func LoginFiles(r Request) []string {
	return []string{
		path.Join(r.UserHome, ".claude/.credentials.json"),
		path.Join(r.Home, ".credentials.json"),
	}
}
